"""Operations of LLVM IR, compiled from one text for an emulated GPU and for this machine.

On the GPU each lane does an operation while every other one is switched off, half of them at a
time; and once more in groups of one work item, where scalar instructions may do it. The numbers
are all pairs of values at the borders of their types, with a third one that goes with them.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from refcomp.emulator.observers.coverage import Coverage
from refcomp.foundation.artifacts import Source
from refcomp.foundation.dtype import as_dtype
from refcomp.toolchain import compile_source, device_layout, host_triple_and_layout
from tests.codegen.host_kernels import same_bits
from tests.codegen.one_operation import edge_values
from tests.emulator.agreement import Outcome
from tests.emulator.instructions.amdgpu_operations import amdgpu_operations
from tests.emulator.instructions.ir_operations import Operation, operations
from tests.emulator.kernels import GPU, make_gpu

COUNT = 256
_THREADS = 64
_DTYPES = {"half": "f16", "float": "f32", "double": "f64"}

_GPU_KERNEL = """
define amdgpu_kernel void @{name}({params}) #0 {{
  %item = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %start = mul i32 %group, 64
  %i = add i32 %start, %item
  %bit = and i32 %item, 1
  %is.odd = icmp ne i32 %bit, 0
  br i1 %is.odd, label %odd, label %even
odd:
{odd}
  br label %end
even:
{even}
  br label %end
end:
  ret void
}}
"""
_GPU_SCALAR = """
define amdgpu_kernel void @{name}.scalar({params}) #1 {{
  %i = call i32 @llvm.amdgcn.workgroup.id.x()
{once}
  ret void
}}
"""
_GPU_END = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="64,64" "amdgpu-no-implicitarg-ptr" }
attributes #1 = { nounwind "amdgpu-flat-work-group-size"="1,1" "amdgpu-no-implicitarg-ptr" }
"""
_HOST_LOOP = """
define void @{name}({params}) {{
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
{once}
  %next = add i32 %i, 1
  %is.over = icmp eq i32 %next, 256
  br i1 %is.over, label %end, label %loop
end:
  ret void
}}
"""


@cache
def ir_operations(step: int, gpu: str = GPU) -> Outcome:
    """Every `step`th operation, to the bit."""
    drawn = [*operations(), *amdgpu_operations(gpu)][::step]
    with TemporaryDirectory() as folder:
        expected = on_host(drawn, Path(folder))
    text = "".join(_gpu_text(one) for one in drawn)
    names = [n for one in drawn for n in (one.name, f"{one.name}.scalar")[: 1 + one.is_scalar]]
    layout = device_layout("rocm")
    source = Source(
        module_text(drawn, text + _GPU_END, "amdgcn-amd-amdhsa", layout),
        "llvm",
        entries=tuple(names),
    )
    options = {"mcpu": gpu, "passes": "always-inline,sroa", "verify": "0"}
    binary = compile_source(source, options, "hsaco", description="rocm")
    coverage, wrong = Coverage(), []
    device = make_gpu(observers=[coverage])
    loaded = device.load(binary.data)
    for one in drawn:
        for name, grid, block in _launches(one):
            result = empty_of(one)
            report = device.run(loaded, name, grid, block, [*operands_of(one), result])
            wrong += told_of(one, name, result, expected[one.name])
            wrong += [f"{name}: {finding}" for finding in report.findings]
    return Outcome(len(drawn), tuple(wrong), coverage.seen)


def _launches(one: Operation) -> list[tuple[str, Any, Any]]:
    by_lanes = (one.name, (COUNT // _THREADS, 1, 1), (_THREADS, 1, 1))
    by_groups = (f"{one.name}.scalar", (COUNT, 1, 1), (1, 1, 1))
    return [by_lanes, by_groups] if one.is_scalar else [by_lanes]


def told_of(one: Operation, name: str, result: Any, expected: Any) -> list[str]:
    same = same_bits(result, expected)
    if one.any_zero:
        same |= (result == 0) & (expected == 0)
    bad = np.flatnonzero(~same)
    if not bad.size:
        return []
    first = bad[0] // (result.size // COUNT)
    given = [operand.reshape(COUNT, -1)[first] for operand in operands_of(one)]
    return [f"{name}{given} gives {result[bad[0]]}, not {expected[bad[0]]}, {bad.size} times"]


# Numbers.


def _element(kind: str) -> tuple[str, int]:
    match = re.fullmatch(r"<(\d) x (\w+)>", kind)
    element, count = (match[2], int(match[1])) if match else (kind, 1)
    return _DTYPES.get(element, element), count


@cache
def _operand(kind: str, place: int) -> Any:
    """Of all pairs of borders the first or the second ones; the third ones go through all, too."""
    dtype, count = _element(kind)
    borders = edge_values(as_dtype(dtype))
    i = np.arange(COUNT)
    chosen = (i // 16, i % 16, (i * 7 + i // 16) % 16)[place]
    columns = [borders[(chosen + 5 * n * (i + n)) % 16] for n in range(count)]
    return np.stack(columns, axis=1).ravel()


def operands_of(one: Operation) -> list[Any]:
    return [_operand(kind, place) for place, kind in enumerate(one.args)]


def empty_of(one: Operation) -> Any:
    return np.zeros_like(_operand(one.result, 0))


# Text.


def module_text(drawn: Sequence[Operation], text: str, triple: str, layout: str) -> str:
    """What both compilers get, but for the kernels or loops around it."""
    is_gpu = triple.startswith(("amdgcn", "nvptx"))
    functions = "".join(_function(one, is_gpu=is_gpu) for one in drawn)
    head = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    used = re.findall(r"call ((?:<.*?>|\{.*?\}|\w+)) (@llvm\.[\w.]+)\((.*)\)", functions)
    declared = {name: f"declare {result} {name}({_types(args)})\n" for result, name, args in used}
    return head + functions + text + "".join(declared.values())


def _types(args: str) -> str:
    """`<2 x i16> %a, i1 false` -> `<2 x i16>, i1`."""
    parts = re.split(r",\s*(?![^<]*>)", args)
    return ", ".join(re.match(r"<.*?>|\w+", part)[0] for part in parts)  # type: ignore[index]


def _function(one: Operation, *, is_gpu: bool) -> str:
    params = ", ".join(f"{kind} %{n}" for kind, n in zip(one.args, "abc", strict=False))
    text = one.on_gpu if is_gpu and one.on_gpu else one.body
    body = text.replace("\n", "\n  ")
    head = f"define internal {one.result} @do.{one.name}({params}) alwaysinline {{"
    return f"{head}\n  {body}\n  ret {one.result} %r\n}}\n"


def parameters_text(one: Operation, space: str) -> str:
    inputs = [f"ptr{space} noalias readonly %{n}" for n, _ in zip("ABC", one.args, strict=False)]
    return ", ".join([*inputs, f"ptr{space} noalias writeonly %R"])


def done_text(one: Operation, space: str, mark: str) -> str:
    """Loads the operands number %i, and stores the result; `mark` makes names unique."""
    lines = []
    for name, kind in zip("ABC", one.args, strict=False):
        at = f"%{name}.{mark}"
        lines.append(f"{at} = getelementptr {kind}, ptr{space} %{name}, i32 %i")
        lines.append(f"{at}.v = load {kind}, ptr{space} {at}, align {_alignment(kind)}")
    given = ", ".join(f"{k} %{n}.{mark}.v" for n, k in zip("ABC", one.args, strict=False))
    lines.append(f"%r.{mark} = call {one.result} @do.{one.name}({given})")
    lines.append(f"%R.{mark} = getelementptr {one.result}, ptr{space} %R, i32 %i")
    lines.append(
        f"store {one.result} %r.{mark}, ptr{space} %R.{mark}, align {_alignment(one.result)}"
    )
    return "\n".join(f"  {line}" for line in lines)


def _alignment(kind: str) -> int:
    dtype, count = _element(kind)
    return as_dtype(dtype).bits // 8 * count


def _gpu_text(one: Operation) -> str:
    space = " addrspace(1)"
    texts = {
        "name": one.name,
        "params": parameters_text(one, space),
        **{mark: done_text(one, space, mark) for mark in ("odd", "even", "once")},
    }
    return _GPU_KERNEL.format(**texts) + (_GPU_SCALAR.format(**texts) if one.is_scalar else "")


def on_host(drawn: Sequence[Operation], folder: Path) -> dict[str, Any]:
    """What this machine computes, by name."""
    loops = [
        _HOST_LOOP.format(
            name=one.name, params=parameters_text(one, ""), once=done_text(one, "", "once")
        )
        for one in drawn
    ]
    triple, layout = host_triple_and_layout()
    text = module_text(drawn, "".join(loops), triple, layout)
    source = Source(text, "llvm", (), frozenset({"libm", "libgcc_s"}))
    path = folder / "operations.so"
    options = {"passes": "always-inline"}
    if triple.startswith("x86_64"):
        # With these instructions LLVM 19 converts a NaN by llvm.fptosi.sat.i16.f16 to -32768.
        options["mattr"] = "-avx512fp16"
    path.write_bytes(compile_source(source, options, "so").data)
    library, results = ctypes.CDLL(str(path)), {}
    for one in drawn:
        result = results[one.name] = empty_of(one)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*operands_of(one), result)]
        getattr(library, one.name)(*pointers)
    return results
