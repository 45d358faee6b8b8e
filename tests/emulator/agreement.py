"""What refcomp prints for AMD GPUs, run emulated and held against the interpreter of the loop IR.

Each function runs its kernels once in a process, whoever asks: what disagreed, what was found, and
what was seen of each instruction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from refcomp.emulator.execution.launch import Extents
from refcomp.emulator.observers.coverage import Seen
from refcomp.foundation.dtype import I64, to_numpy
from refcomp.ir.expr import EQ, IntImm, Mod
from refcomp.ir.func import PrimFunc
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.stmt import For, IfThenElse
from refcomp.oracle.lockstep.interpret import interpret
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
from tests.codegen.one_operation import (
    binary_cases,
    cast_cases,
    choice_cases,
    constant_cases,
    let_cases,
)
from tests.emulator.kernels import GPU, Kernels

# LLVM takes half a minute to optimize them all as it usually does.
QUICK = {"passes": "always-inline,sroa", "verify": "0"}
GENERATORS = (binary_cases, cast_cases, choice_cases, let_cases, constant_cases)


@dataclass(frozen=True)
class Outcome:
    """`count` kernels; `wrong` tells of each that disagreed, `seen` what ran."""

    count: int
    wrong: tuple[str, ...]
    seen: dict[str, Seen]


def _every(cases: Sequence[Any], step: int) -> list[Any]:
    return list(cases)[::step]


def _outermost(func: PrimFunc) -> tuple[For, int]:
    loop = func.body
    assert isinstance(loop, For) and isinstance(loop.extent, IntImm)
    return loop, loop.extent.value


def as_threads(func: PrimFunc) -> tuple[PrimFunc, Extents, Extents]:
    """The kernel whose outermost loop is one of threads; its grid and its block."""
    loop, count = _outermost(func)
    return replace(func, body=replace(loop, kind="threadIdx.x")), (1, 1, 1), (count, 1, 1)


def _in_halves(func: PrimFunc) -> tuple[PrimFunc, Extents, Extents]:
    """The same where each wave does it twice, with every other lane switched off."""
    loop, _ = _outermost(func)
    is_even = EQ(Mod(loop.var, IntImm(2, I64)), IntImm(0, I64))
    body = IfThenElse(is_even, loop.body, loop.body)
    halves = replace(func, name=f"{func.name}_halves", body=replace(loop, body=body))
    return as_threads(halves)


def _as_groups(func: PrimFunc) -> tuple[PrimFunc, Extents, Extents]:
    """The same where each group has one element: what all its lanes have is in scalar registers."""
    loop, count = _outermost(func)
    body = replace(loop, kind="blockIdx.x")
    return replace(func, name=f"{func.name}_groups", body=body), (count, 1, 1), (1, 1, 1)


def _ways_to_run(
    func: Callable[[int], PrimFunc], number: int, is_float: bool
) -> list[tuple[Any, ...]]:
    """With some lanes off, and with all on, one of the two as vectors; and, of what is no float, by
    scalar instructions."""
    ways = [_in_halves(func(1 if number % 2 else 4)), as_threads(func(4 if number % 2 else 1))]
    return ways if is_float else [*ways, _as_groups(func(1))]


@cache
def operations(cases: Callable[[], Any], step: int, gpu: str = GPU) -> Outcome:
    """Every `step`th of the cases of `tests.codegen.one_operation`, to the bit."""
    drawn = _every(list(cases()), step)
    ways = [
        (case, *way)
        for number, case in enumerate(drawn)
        for way in _ways_to_run(case.kernels.get, number, case.dtype.is_float)
    ]
    kernels, wrong = Kernels([func for _, func, *_ in ways], gpu, **QUICK), []
    for case, func, grid, block in ways:
        result = case.empty_result()
        report = kernels.run(func, [*case.operands, result], grid, block)
        bad = np.flatnonzero(~same_bits(result, case.expected))
        if bad.size:
            inputs = [operand[bad[0]] for operand in case.operands]
            told = f"{inputs} gives {result[bad[0]]}, not {case.expected[bad[0]]}"
            wrong.append(f"{func.name}: {told}")
        wrong += [f"{func.name}: {finding}" for finding in report.findings]
    return Outcome(len(drawn), tuple(wrong), kernels.coverage.seen)


@cache
def intrinsics(step: int, gpu: str = GPU) -> Outcome:
    """Every `step`th intrinsic of a dtype, within its bound."""
    drawn = _every(CASES, step)
    ways = [
        (case, *way)
        for number, case in enumerate(drawn)
        for way in _ways_to_run(partial(intrinsic_kernel, *case), number, case[1].is_float)
    ]
    kernels, wrong = Kernels([func for _, func, *_ in ways], gpu, **QUICK), []
    for (name, dtype), func, grid, block in ways:
        operands = draw_operands(name, dtype)
        expected = np.zeros(COUNT, to_numpy(INTRINSICS[name].result_dtype(dtype)))
        interpret(kernel_as_written(name, dtype), [*operands, expected])
        actual = np.zeros_like(expected)
        report = kernels.run(func, [*operands, actual], grid, block)
        bad = np.flatnonzero(~within_bound(name, dtype, actual, expected))
        wrong += [f"{func.name}: {actual[k]}, not {expected[k]}" for k in bad[:1]]
        wrong += map(str, report.findings)
    return Outcome(len(drawn), tuple(wrong), kernels.coverage.seen)


@cache
def all_accesses(step: int, gpu: str = GPU) -> Outcome:
    """Every `step`th shape of access of a dtype, to the bit."""
    drawn = [(access_kernel(*a, dtype), dtype) for dtype in DTYPES for a in accesses(dtype, 16)]
    drawn = _every(drawn, step)
    kernels, wrong = Kernels([func for func, _ in drawn], gpu, **QUICK), []
    for func, dtype in drawn:
        expected, actual = access_arguments(dtype), access_arguments(dtype)
        interpret(func, expected)
        report = kernels.run(func, actual)
        same = all(same_bits(a, e).all() for a, e in zip(actual, expected, strict=True))
        wrong += [] if same and not report.findings else [func.name]
    return Outcome(len(drawn), tuple(wrong), kernels.coverage.seen)


_EXP = INTRINSICS["exp"].ulp + 0.5
# How many units in the last place kernels with an `exp` may differ by; all others agree to the bit.
# Of the softmax of 16: its own exp, 16 others in the sum, and what each of the sums rounds.
_ULPS = {"vectors": _EXP, "softmax": 2 * _EXP + 16}


def _near(actual: Any, expected: Any, ulps: float) -> bool:
    if not isinstance(actual, np.ndarray):
        return bool(actual == expected)
    same = same_bits(actual, expected)
    if ulps and actual.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            same |= np.abs(actual - expected) <= ulps * np.spacing(np.abs(expected))
    return bool(same.all())


@cache
def whole_kernels(gpu: str = GPU) -> Outcome:
    """The kernels of `tests.codegen.device_kernels`, optimized as usual, and without hazards."""
    kernels, wrong = Kernels([device_kernel(name) for name in TEXTS], gpu, hazards=True), []
    for name in TEXTS:
        kernel, args = device_kernel(name), draw_arguments(name)
        expected = copy.deepcopy(args)
        interpret(kernel, expected)
        report = kernels.run(kernel, args, *_extents(kernel, args), shared_bytes=4096)
        pairs = zip(args, expected, strict=True)
        agree = all(_near(a, e, _ULPS.get(name, 0)) for a, e in pairs)
        wrong += [] if agree else [name]
        wrong += [f"{name}: {finding}" for finding in report.findings]
    return Outcome(len(TEXTS), tuple(wrong), kernels.coverage.seen)


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
