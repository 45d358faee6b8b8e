"""The results that a computation must have, by the interpreter, and what kills others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from refcomp.driver.pipeline import run_passes
from refcomp.foundation.dtype import to_numpy
from refcomp.ir.expr import IntImm
from refcomp.lowering.lower import lower
from refcomp.mutate.host_runs import Ran
from refcomp.mutate.mutant import TOLERANCES, tolerances_exceeded
from refcomp.mutate.operations import Operations
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.oracle.tensors.arrays import Array

_UNWRITTEN = 77  # what outputs begin with
_MORE_SEEDS = range(3)
# For each argument: an array; Bounded where the last digits are free.
_Expected = list[Array | Bounded]


class ExpectedResults:
    """A computation of `mutate.operations`, lowered, with its results."""

    def __init__(self, computation: Operations) -> None:
        self.name = computation.name
        self.computation = computation
        self.func = lower(computation.schedule, computation.args, "computation")
        self._runnable = run_passes(self.func, "interp")
        self._expected = self.of(self.arrays())

    def arrays(self, seed: int | None = None) -> list[Array]:
        """Return fresh arguments; with a seed other numbers, among them random bits."""
        inputs = [array.copy() for array in self.computation.inputs]
        if seed is not None:
            rng = np.random.default_rng(seed)
            with_bits = not self.computation.inexact
            inputs = [_other_numbers(array, rng, with_bits) for array in inputs]
        arrays = []
        for arg in self.computation.args:
            if arg.op.inputs:
                shape = [dim.value for dim in arg.shape if isinstance(dim, IntImm)]
                arrays.append(np.full(shape, _UNWRITTEN, to_numpy(arg.dtype)))
            else:
                arrays.append(inputs.pop(0))
        return arrays

    def of(self, arrays: Sequence[Array]) -> _Expected:
        """Return what each argument must be after the computation ran on `arrays`."""
        computation = self.computation
        if computation.fails:
            return list(arrays)
        after = [array.copy() for array in arrays]
        with np.errstate(all="ignore"):
            interpret(self._runnable, after)
        args = computation.args
        pairs = zip(args, arrays, strict=True)
        feeds = {arg: array for arg, array in pairs if not arg.op.inputs}
        inexact = [arg for arg in args if arg.name in computation.inexact]
        bounds = dict(zip(inexact, bound_errors(inexact, feeds), strict=True))
        return [bounds.get(arg, array) for arg, array in zip(args, after, strict=True)]

    def difference(self, ran: Ran) -> str:
        """Return how our comparison sees that these results are wrong; '' if they survive."""
        return self._difference(ran, self._expected)

    def killing_tolerances(self, ran: Ran) -> set[str]:
        """Return the names of the tolerances that kill these results."""
        if ran.failed != self.computation.fails or not ran.arrays:
            return set(TOLERANCES)
        with np.errstate(all="ignore"):
            return tolerances_exceeded(
                (
                    found.astype(np.float64),
                    (one.nearest if isinstance(one, Bounded) else one).astype(
                        np.float64
                    ),
                )
                for found, one in zip(ran.arrays, self._expected, strict=True)
            )

    def differs_on_more_inputs(self, run: Callable[[Sequence[Array]], Ran]) -> bool:
        """Return True if other numbers show that the results of `run` are wrong."""
        given = [self.arrays(seed) for seed in _MORE_SEEDS]
        return any(self._difference(run(arrays), self.of(arrays)) for arrays in given)

    def _difference(self, ran: Ran, expected: _Expected) -> str:
        if ran.fault:
            return ran.fault
        if ran.failed != self.computation.fails:
            return "it fails, or does not, the other way round"
        args = self.computation.args
        for arg, found, one in zip(args, ran.arrays, expected, strict=True):
            if isinstance(one, Bounded):
                report = judge_bounded(found, one)
                if not report.agrees:
                    return f"{arg.name}: {report}"
            elif not _has_same_bits(found, one):
                return f"{arg.name}: other bits"
        return ""


def _other_numbers(numbers: Array, rng: np.random.Generator, with_bits: bool) -> Array:
    """Return the numbers in another order; half of the floats random bits, if `with_bits`."""
    mixed = rng.permutation(numbers.reshape(-1))
    if numbers.dtype.kind == "f" and with_bits:
        bits = np.frombuffer(rng.bytes(numbers.nbytes), numbers.dtype)
        mixed = np.where(rng.random(mixed.shape) < 0.5, bits, mixed)
    return mixed.reshape(numbers.shape)


def _has_same_bits(a: Array, b: Array) -> bool:
    """Return True if all elements have the same bits, or are both NaN."""
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool((same | (np.isnan(a) & np.isnan(b))).all())
