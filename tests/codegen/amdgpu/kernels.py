"""Kernels printed for AMD GPUs, in batches through each LLVM, and run on this host without one.

`HostSimulation` rewrites the printed text for this processor: address spaces go, the ids become
arguments, the barrier is a thread library's, ocml is libm. Each thread of a group is a thread of
the system. So the text's meaning is judged by the interpreter, all but the last step to a GPU.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from refcomp.codegen.amdgpu.module import gpu_features, print_amdgpu
from refcomp.codegen.signature import machine_symbol
from refcomp.driver.amd_resources import expected_kernel
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.runtime.launch import KernelSignature, kernel_signature
from refcomp.toolchain import (
    check_code_object,
    compile_source,
    device_layout,
    host_triple_and_layout,
    llvm_major,
)
from tests.codegen.host_kernels import scalar_argument

NEWER_LLVMS = [folder for folder in [os.environ.get("REFCOMP_TEST_LLVM", "")] if folder]
LAYOUT = (
    "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32"
    "-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7"
)
# The LLVMs that tests use, and GPUs that each knows. $REFCOMP_TEST_LLVM names the folder of the
# tools of a newer one, which is tried too.
LLVMS_AND_GPUS = (
    *(("15", "gfx90a"), ("15", "gfx1100"), ("16", "gfx90a"), ("16", "gfx1100")),
    *(("19", "gfx90a"), ("19", "gfx1100"), ("19", "gfx942")),
    *((newer, gpu) for newer in NEWER_LLVMS for gpu in ("gfx90a", "gfx950", "gfx1100", "gfx1200")),
)


def with_llvm(llvm: str, *rest: Any) -> Any:
    """A test's parameters that begin with the version of LLVM which it needs."""
    marks = [getattr(pytest.mark, f"llvm{llvm}")] if llvm in ("15", "16") else []
    return pytest.param(llvm, *rest, marks=marks)


TOOLS_AND_GPUS = [with_llvm(*pair) for pair in LLVMS_AND_GPUS]


def print_kernels(
    kernels: Sequence[PrimFunc], mcpu: str = "gfx90a", layout: str = LAYOUT, **wishes: int
) -> Source:
    """The kernels as text, for a layout of LLVM 16."""
    return print_amdgpu(kernels, layout=layout, mcpu=mcpu, code_object=4, **wishes)


def signatures(kernels: Sequence[PrimFunc]) -> list[KernelSignature]:
    """How the kernels are launched, by the symbols that the printer gives them."""
    return [kernel_signature(kernel, machine_symbol(kernel.name)) for kernel in kernels]


def compile_kernels(
    kernels: Sequence[PrimFunc],
    mcpu: str = "gfx90a",
    wishes: Mapping[str, int] | None = None,
    **options: str,
) -> Binary:
    """The code object of the kernels, checked; with the tools that $REFCOMP_ROCM_LLVM names."""
    asked = {"llvm": llvm_major("rocm"), **(wishes or {})}
    source = print_kernels(kernels, mcpu, device_layout("rocm"), **asked)
    features = gpu_features(kernels, mcpu, asked.get("wavefront", 0), asked["llvm"])
    given = {"mcpu": mcpu, "features": features, **options}
    binary = compile_source(source, given, "hsaco", description="rocm")
    check_code_object(binary, [expected_kernel(kernel) for kernel in kernels], mcpu, 4)
    return binary


def use_llvm(major: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the rocm toolchain take its tools from the LLVM of that version, or from a folder."""
    folder = f"/usr/lib/llvm-{major}/bin" if major.isdigit() else major
    monkeypatch.setenv("REFCOMP_ROCM_LLVM", folder)


def _dot_product(sign: str) -> str:
    """A function that does what the instruction does."""
    lines = [f"define i32 @{sign}dot4(i32 %a, i32 %b, i32 %sum, i1 %stops) {{"]
    lines += [f"  %{name}v = bitcast i32 %{name} to <4 x i8>" for name in "ab"]
    lines += [f"  %{name}w = {sign}ext <4 x i8> %{name}v to <4 x i32>" for name in "ab"]
    lines = [line.replace("uext", "zext") for line in lines]
    lines.append("  %p = mul <4 x i32> %aw, %bw\n  %t = call i32 @llvm.vector.reduce.add.v4i32(")
    lines[-1] += "<4 x i32> %p)\n  %d = add i32 %t, %sum\n  ret i32 %d\n}"
    return "\n".join([*lines, "declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)\n"])


def _exchange_with(mine: str, number: int) -> str:
    """A call for what the lane holds that an instruction calls `number`."""
    near = number - 0x160 if number >= 0x160 else number & 3
    mask = number >> 10 or near
    passed = "i32 %workitem.number, ptr %group.barrier, ptr %group.pieces"
    return f"call i32 @exchange_xor({passed}, i32 {mask}, i32 {mine})"


def _matrix_product() -> str:
    """A function that does what the instruction does for one thread, by what the others hold."""
    passed = "i32 %thread, ptr %barrier, ptr %pieces"
    lines = [f"define <4 x float> @mfma({passed}, float %a, float %b, <4 x float> %c) {{"]
    lines += [f"  %m{name} = bitcast float %{name} to i32" for name in "ab"]
    lines += ["  %lane = and i32 %thread, 63", "  %column = and i32 %lane, 15"]
    lines += ["  %group = lshr i32 %lane, 4", "  %first = shl i32 %group, 2"]
    total = "%c"
    for v, k in itertools.product(range(4), range(4)):
        own, lanes = f"{v}.{k}", {"a": f"%row.{v}.{k}", "b": "%column"}
        lines.append(f"  {lanes['a']} = add i32 %first, {v}")
        for name, lane in lanes.items():
            lines.append(f"  %l{name}.{own} = add i32 {lane}, {16 * k}")
            lines.append(f"  %p{name}.{own} = shl i32 %l{name}.{own}, 2")
            asked = f"{passed}, i32 %p{name}.{own}, i32 %m{name}"
            lines.append(f"  %x{name}.{own} = call i32 @exchange({asked})")
            lines.append(f"  %f{name}.{own} = bitcast i32 %x{name}.{own} to float")
        lines.append(f"  %product.{own} = fmul float %fa.{own}, %fb.{own}")
        lines.append(f"  %before.{own} = extractelement <4 x float> {total}, i32 {v}")
        lines.append(f"  %sum.{own} = fadd float %before.{own}, %product.{own}")
        lines.append(f"  %c.{own} = insertelement <4 x float> {total}, float %sum.{own}, i32 {v}")
        total = f"%c.{own}"
    return "\n".join([*lines, f"  ret <4 x float> {total}", "}", ""])


_IDS = [f"{kind}.{axis}" for kind in ("workgroup.id", "workitem.id") for axis in "xyz"]
_REWRITES = [
    (r"target datalayout = .*\ntarget triple = .*\n", ""),
    (r"declare i32 @llvm\.amdgcn\.work\w+\.id\.[xyz]\(\)\n", ""),
    (
        r"define amdgpu_kernel void (.*?)\) #0 .*\{\n",
        rf"define void \1, {', '.join(f'i32 %{name}' for name in _IDS)}, "
        r"i32 %workitem.number, ptr %group.barrier, ptr %group.pieces) #0 {\n",
    ),
    (r"call i32 @llvm\.amdgcn\.(\S+?)\(\), !range .*", r"add i32 0, %\1"),
    (r"call i32 @llvm\.amdgcn\.mbcnt\.lo\(.*\)", "add i32 0, 0"),
    (r"call i32 @llvm\.amdgcn\.mbcnt\.hi\(.*\)", "urem i32 %workitem.number, 64"),
    (
        r"call i32 @llvm\.amdgcn\.ds\.bpermute\((.*)\)",
        r"call i32 @exchange(i32 %workitem.number, ptr %group.barrier, ptr %group.pieces, \1)",
    ),
    (
        r"call i32 @llvm\.amdgcn\.(?:update\.dpp\.i32\(i32 0, |ds\.swizzle\()"
        r"i32 (\S+), i32 (\d+).*\)",
        lambda match: _exchange_with(match[1], int(match[2])),
    ),
    (
        r"call i32 @llvm\.amdgcn\.readlane\((.*), i32 (\S+)\)",
        r"call i32 @exchange_lane(i32 %workitem.number, ptr %group.barrier, "
        r"ptr %group.pieces, i32 \2, \1)",
    ),
    (
        r"call i32 @llvm\.amdgcn\.readfirstlane\((.*)\)",
        r"call i32 @exchange_lane(i32 %workitem.number, ptr %group.barrier, "
        r"ptr %group.pieces, i32 0, \1)",
    ),
    (r"declare i32 @llvm\.amdgcn\.(mbcnt|ds|update|read).*\n", ""),
    (r"call i32 @llvm\.amdgcn\.([su])dot4", r"call i32 @\1dot4"),
    (r"declare i32 @llvm\.amdgcn\.([su])dot4.*\n", lambda match: _dot_product(match[1])),
    (
        r"call <4 x float> @llvm\.amdgcn\.mfma\.f32\.16x16x4f32\((.*), i32 0, i32 0, i32 0\)",
        r"call <4 x float> @mfma(i32 %workitem.number, ptr %group.barrier, ptr %group.pieces, \1)",
    ),
    (r"declare <4 x float> @llvm\.amdgcn\.mfma.*\n", lambda _: _matrix_product()),
    (
        r"call void @llvm\.amdgcn\.s\.barrier\(\)",
        "call i32 @pthread_barrier_wait(ptr %group.barrier)",
    ),
    (r"declare void @llvm\.amdgcn\.s\.barrier\(\)", "declare i32 @pthread_barrier_wait(ptr)"),
    (r"external addrspace\(3\) global \[0 x i8\]", "internal global [65536 x i8] zeroinitializer"),
    (r",? addrspace\(\d\)", ""),
    (r' syncscope\("\w+"\)', ""),
    (r"(@llvm\.masked\.\S+?)p[135]\(", r"\1p0("),
    (r"@__ocml_(\w+)_f32", r"@\1f"),
    (r"@__ocml_(\w+)_f64", r"@\1"),
    (r"call .* @llvm\.canonicalize\.\S+?\((.*)\)", r"select i1 true, \1, \1"),
    (r"declare .* @llvm\.canonicalize.*\n", ""),
    (r"fence (release|acquire)", "fence seq_cst"),
]


# What a lane reads of another one: all of a group write, wait, read, and wait again.
EXCHANGE = """
define i32 @exchange(i32 %thread, ptr %barrier, ptr %pieces, i32 %address, i32 %mine) {
  %at = getelementptr i32, ptr %pieces, i32 %thread
  store i32 %mine, ptr %at
  %written = call i32 @pthread_barrier_wait(ptr %barrier)
  %lane = lshr i32 %address, 2
  %wave = and i32 %thread, -64
  %other = or i32 %wave, %lane
  %from = getelementptr i32, ptr %pieces, i32 %other
  %theirs = load i32, ptr %from
  %read = call i32 @pthread_barrier_wait(ptr %barrier)
  ret i32 %theirs
}
define i32 @exchange_lane(i32 %thread, ptr %barrier, ptr %pieces, i32 %lane, i32 %mine) {
  %address = shl i32 %lane, 2
  %theirs = call i32 @exchange(i32 %thread, ptr %barrier, ptr %pieces, i32 %address, i32 %mine)
  ret i32 %theirs
}
define i32 @exchange_xor(i32 %thread, ptr %barrier, ptr %pieces, i32 %mask, i32 %mine) {
  %own = and i32 %thread, 63
  %lane = xor i32 %own, %mask
  %address = shl i32 %lane, 2
  %theirs = call i32 @exchange(i32 %thread, ptr %barrier, ptr %pieces, i32 %address, i32 %mine)
  ret i32 %theirs
}
"""


def _to_host_text(text: str) -> str:
    if any(name in text for name in ("bpermute", "update.dpp", "swizzle", "mfma", "lane(")):
        declared = (
            "" if "@llvm.amdgcn.s.barrier" in text else "declare void @llvm.amdgcn.s.barrier()\n"
        )
        text += EXCHANGE + declared
    for pattern, replacement in _REWRITES:
        text = re.sub(pattern, replacement, text)
    return with_host_header(text)


def with_host_header(text: str) -> str:
    """LLVM IR without triple and layout, with those of this host, and each declaration once.

    Functions of several address spaces have become one.
    """
    lines = text.split("\n")
    repeated = {k for k, line in enumerate(lines) if line.startswith("declare ")}
    repeated -= {lines.index(lines[k]) for k in repeated}
    text = "\n".join(line for k, line in enumerate(lines) if k not in repeated)
    triple, layout = host_triple_and_layout()
    return f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n{text}'


class HostSimulation:
    """Kernels printed for AMD GPUs, compiled for this host; `call(kernel, args)` runs one.

    Another dialect of LLVM IR gives its `text`, rewritten for this host.
    """

    def __init__(self, kernels: Sequence[PrimFunc], folder: Path, text: str = "") -> None:
        text = text or _to_host_text(print_kernels(kernels).text)
        source = Source(text, "llvm", (), frozenset({"libm", "libgcc_s"}))
        path = folder / "kernels.so"
        path.write_bytes(compile_source(source, {"passes": "sroa"}, "so").data)
        self._library = ctypes.CDLL(str(path))
        self._libc = ctypes.CDLL(None)

    def call(self, kernel: PrimFunc, args: Sequence[Any], begins: Sequence[int] = ()) -> None:
        """Runs the kernel on numpy arrays, written in place, and numbers.

        `begins` are further arguments: where shared buffers of unknown size begin.
        """
        values = [
            ctypes.c_void_p(arg.ctypes.data) if isinstance(param, Buffer) else _number(param, arg)
            for param, arg in zip(kernel.params, args, strict=True)
        ]
        values += map(ctypes.c_uint64, begins)
        known = dict(zip(kernel.params, args, strict=True))
        grid, block = ([_extent(e, known) for e in part] for part in _grid_and_block(kernel))
        self.run(machine_symbol(kernel.name), values, grid, block)

    def run(
        self, symbol: str, values: Sequence[Any], grid: Sequence[int], block: Sequence[int]
    ) -> None:
        """Runs the kernel `symbol` on C values; `grid` and `block` are extents in x, y and z."""
        function = getattr(self._library, symbol)
        groups, threads = (
            [*itertools.product(*map(range, extents[::-1]))] for extents in (grid, block)
        )
        within, exchange = ctypes.create_string_buffer(64), ctypes.create_string_buffer(4096)
        self._libc.pthread_barrier_init(within, None, len(threads))
        between = threading.Barrier(len(threads))

        def work(thread: tuple[int, ...]) -> None:
            number = threads.index(thread)
            for group in groups:
                ids = map(ctypes.c_int32, (*group[::-1], *thread[::-1], number))
                function(*values, *ids, within, exchange)
                between.wait()

        if len(threads) == 1:
            work(threads[0])
        else:
            _run_threads(work, threads)


def _run_threads(work: Callable[[tuple[int, ...]], None], threads: list[Any]) -> None:
    workers = [threading.Thread(target=work, args=[thread]) for thread in threads]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _grid_and_block(kernel: PrimFunc) -> list[tuple[Any, ...]]:
    nests = [kernel_nest(loop) for loop in kernels_in(kernel.body)]
    return [nests[0].grid, nests[0].block] if nests else [(IntImm(1, I64),) * 3] * 2


def _number(param: Var, value: Any) -> Any:
    return scalar_argument(value, param.dtype.kind, param.dtype.bits)


def _extent(extent: Any, known: dict[Any, Any]) -> int:
    return extent.value if isinstance(extent, IntImm) else int(known[extent])
