"""Products of matrices by the functions that LLVM has for them, held against numpy.

One kernel for each instruction: each lane loads what it holds of A, B and C, calls the function,
and stores what it holds of D. Where elements lie is taken from `matrix_tables`.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from refcomp.emulator.observers.coverage import Coverage
from refcomp.foundation.artifacts import Source
from refcomp.toolchain import compile_source, device_layout
from tests.emulator.agreement import Outcome
from tests.emulator.instructions.matrix.matrix_tables import (
    GFX90A,
    GFX942,
    Row,
    drawn_matrices,
    factor_words,
    sum_words,
    sums_of,
)
from tests.emulator.kernels import GPU, make_gpu

_TABLES = {"gfx942": GFX942, "gfx90a": GFX90A}
_SCALARS = {"f32": "float", "i32": "i32", "f64": "double"}
_KERNEL = """
define amdgpu_kernel void @{name}({params}) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
{loads}
  %d = call {sum} @llvm.amdgcn.{function}({a} %a, {b} %b, {sum} %c, i32 0, i32 0, i32 0)
  %to = getelementptr {sum}, ptr addrspace(1) %D, i32 %i
  store {sum} %d, ptr addrspace(1) %to, align 4
  ret void
}}
declare {sum} @llvm.amdgcn.{function}({a}, {b}, {sum}, i32, i32, i32)
"""
_END = """
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="64,64" }
"""


@cache
def matrix_products(gpu: str = GPU) -> Outcome:
    """Every product of dense matrices that the GPU has."""
    table, coverage, wrong = _TABLES.get(gpu, {}), Coverage(), []
    if not table:
        return Outcome(0, (), {})
    device = make_gpu(observers=[coverage], hazards=True)
    loaded = device.load(_compiled(gpu))
    for name, row in table.items():
        *_, first, second = row
        a, b, c = drawn_matrices(name)
        given = [factor_words(name, a, first), factor_words(name, b, second), sum_words(name, c)]
        result = np.zeros(given[2].size, np.uint32)
        arrays = [np.ascontiguousarray(words).ravel() for words in given]
        report = device.run(loaded, name, (1, 1, 1), (64, 1, 1), [*arrays, result])
        found = sums_of(name, result.reshape(given[2].shape))
        wrong += [] if (found == a @ b.swapaxes(1, 2) + c).all() else [name]
        wrong += [f"{name}: {finding}" for finding in report.findings]
    missing = sorted(set(table) - set(coverage.seen))
    wrong += [f"{name} did not run" for name in missing]
    return Outcome(len(table), tuple(wrong), coverage.seen)


def _compiled(gpu: str) -> bytes:
    table = _TABLES[gpu]
    text = "".join(_kernel(name, row) for name, row in table.items())
    head = f'target datalayout = "{device_layout("rocm")}"\ntarget triple = "amdgcn-amd-amdhsa"\n'
    source = Source(head + text + _END, "llvm", entries=tuple(table))
    options = {"mcpu": gpu, "passes": "always-inline", "verify": "0"}
    return compile_source(source, options, "hsaco", description="rocm").data


def _kernel(symbol: str, row: Row) -> str:
    kinds = {"a": _factor_type(row, row[5]), "b": _factor_type(row, row[6]), "c": _sum_type(row)}
    loads = []
    for name, kind in kinds.items():
        at = f"%{name}.at"
        loads.append(f"  {at} = getelementptr {kind}, ptr addrspace(1) %{name.upper()}, i32 %i")
        loads.append(f"  %{name} = load {kind}, ptr addrspace(1) {at}, align 4")
    return _KERNEL.format(
        name=symbol,
        params=", ".join(f"ptr addrspace(1) noalias %{place}" for place in "ABCD"),
        loads="\n".join(loads),
        function=_function(symbol),
        **{"a": kinds["a"], "b": kinds["b"], "sum": kinds["c"]},
    )


def _factor_type(row: Row, kind: str) -> str:
    held = row[3]
    if kind in ("i8", "fp8", "bf8"):
        return f"i{8 * held}"
    element = {"f16": "half", "bf16": "i16", "xf32": "float"}.get(kind) or _SCALARS[kind]
    return element if held == 1 else f"<{held} x {element}>"


def _sum_type(row: Row) -> str:
    rows, _, blocks, _, total, *_ = row
    count = rows * rows * blocks // 64
    return _SCALARS[total] if count == 1 else f"<{count} x {_SCALARS[total]}>"


def _function(name: str) -> str:
    """mfma.f32.32x32x4bf16.1k of v_mfma_f32_32x32x4_2b_bf16: mostly named as on gfx90a."""
    match = re.fullmatch(r"v_mfma_(\w\d+)_(\d+x\d+x\d+)(?:_\d+b)?(_?)(\w+)", name)
    assert match is not None
    total, shape, is_new, kind = match.groups()
    if kind == "xf32" or "_bf8" in kind or "_fp8" in kind or shape in ("16x16x32", "32x32x16"):
        return f"mfma.{total}.{shape}.{kind.replace('_', '.')}"  # which gfx90a does not have
    kind = "bf16_1k" if is_new and kind == "bf16" else kind
    return f"mfma.{total}.{shape}{kind.replace('_', '.')}"
