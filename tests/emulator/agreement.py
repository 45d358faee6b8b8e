"""What refcomp prints for AMD GPUs, run emulated and held against the interpreter of the loop IR.

Each function runs its kernels once in a process, whoever asks: what disagreed, what was found, and
which instructions were executed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from refcomp.dtype import to_numpy
from refcomp.emulator.launch import Extents
from refcomp.ir.expr import IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.stmt import For
from refcomp.oracle.interpret import interpret
from tests.codegen.access_cases import DTYPES, access_arguments, access_kernel, accesses
from tests.codegen.device_kernels import TEXTS, device_kernel, draw_arguments
from tests.codegen.host_kernels import same_bits
from tests.codegen.intrinsic_cases import (
    CASES,
    COUNT,
    draw_operands,
    intrinsic_kernel,
    kernel_as_written,
    within_bound,
)
from tests.emulator.kernels import Kernels

# LLVM takes half a minute to optimize them all as it usually does.
_QUICK = {"passes": "always-inline,sroa", "verify": "0"}
LANES = (1, 4)


@dataclass(frozen=True)
class Outcome:
    """`count` kernels; `wrong` tells of each that disagreed, `executed` has mnemonics."""

    count: int
    wrong: tuple[str, ...]
    executed: frozenset[str]


def _every(cases: Sequence[Any], step: int) -> list[Any]:
    return list(cases)[::step]


def _as_threads(func: PrimFunc) -> tuple[PrimFunc, Extents]:
    """The kernel whose outermost loop is one of threads, and how many there are."""
    loop = func.body
    assert isinstance(loop, For) and isinstance(loop.extent, IntImm)
    return replace(func, body=replace(loop, kind="threadIdx.x")), (loop.extent.value, 1, 1)


@cache
def operations(cases: Callable[[], Any], step: int) -> Outcome:
    """Every `step`th of the cases of `tests.codegen.one_operation`, to the bit."""
    drawn = [(case, lanes) for case in _every(list(cases()), step) for lanes in LANES]
    funcs = [_as_threads(case.kernels[lanes]) for case, lanes in drawn]
    kernels, wrong = Kernels([func for func, _ in funcs], **_QUICK), []
    for (case, lanes), (func, block) in zip(drawn, funcs, strict=True):
        result = case.empty_result()
        report = kernels.run(func, [*case.operands, result], (1, 1, 1), block)
        bad = np.flatnonzero(~same_bits(result, case.expected))
        if bad.size:
            inputs = [operand[bad[0]] for operand in case.operands]
            told = f"{inputs} gives {result[bad[0]]}, not {case.expected[bad[0]]}"
            wrong.append(f"{case.name} x{lanes}: {told}")
        wrong += [f"{case.name} x{lanes}: {finding}" for finding in report.findings]
    return Outcome(len(drawn), tuple(wrong), kernels.executed)


@cache
def intrinsics(step: int) -> Outcome:
    """Every `step`th intrinsic of a dtype, within its bound."""
    drawn = [(case, lanes) for case in _every(CASES, step) for lanes in LANES]
    funcs = [_as_threads(intrinsic_kernel(*case, lanes)) for case, lanes in drawn]
    kernels, wrong = Kernels([func for func, _ in funcs], **_QUICK), []
    for ((name, dtype), lanes), (func, block) in zip(drawn, funcs, strict=True):
        operands = draw_operands(name, dtype)
        expected = np.zeros(COUNT, to_numpy(INTRINSICS[name].result_dtype(dtype)))
        interpret(kernel_as_written(name, dtype), [*operands, expected])
        actual = np.zeros_like(expected)
        report = kernels.run(func, [*operands, actual], (1, 1, 1), block)
        bad = np.flatnonzero(~within_bound(name, dtype, actual, expected))
        wrong += [f"{name} {dtype} x{lanes}: {actual[k]}, not {expected[k]}" for k in bad[:1]]
        wrong += map(str, report.findings)
    return Outcome(len(drawn), tuple(wrong), kernels.executed)


@cache
def all_accesses(step: int) -> Outcome:
    """Every `step`th shape of access of a dtype, to the bit."""
    drawn = [(access_kernel(*a, dtype), dtype) for dtype in DTYPES for a in accesses(dtype, 16)]
    drawn = _every(drawn, step)
    kernels, wrong = Kernels([func for func, _ in drawn], **_QUICK), []
    for func, dtype in drawn:
        expected, actual = access_arguments(dtype), access_arguments(dtype)
        interpret(func, expected)
        report = kernels.run(func, actual)
        same = all(same_bits(a, e).all() for a, e in zip(actual, expected, strict=True))
        wrong += [] if same and not report.findings else [func.name]
    return Outcome(len(drawn), tuple(wrong), kernels.executed)


@cache
def whole_kernels() -> Outcome:
    """The kernels of `tests.codegen.device_kernels`, optimized as usual."""
    kernels, wrong = Kernels([device_kernel(name) for name in TEXTS]), []
    for name in TEXTS:
        kernel, args = device_kernel(name), draw_arguments(name)
        expected = copy.deepcopy(args)
        interpret(kernel, expected)
        report = kernels.run(kernel, args, *_extents(kernel, args), shared_bytes=4096)
        pairs = zip(args, expected, strict=True)
        agree = all(np.allclose(a, e, rtol=1e-6, equal_nan=True) for a, e in pairs)
        wrong += [] if agree else [name]
        wrong += [f"{name}: {finding}" for finding in report.findings]
    return Outcome(len(TEXTS), tuple(wrong), kernels.executed)


def _extents(kernel: PrimFunc, args: Sequence[Any]) -> tuple[Extents, Extents]:
    """Grid and block of a kernel with these arguments."""
    known = dict(zip(kernel.params, args, strict=True))
    nest = kernel_nest(next(iter(kernels_in(kernel.body))))
    sides = [
        [e.value if isinstance(e, IntImm) else int(known[e]) for e in side]
        for side in (nest.grid, nest.block)
    ]
    (a, b, c), (x, y, z) = sides
    return (a, b, c), (x, y, z)
