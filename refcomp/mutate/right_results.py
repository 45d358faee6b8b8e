"""What a computation's results must be, by the interpreter, and what tells others from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refcomp.driver.pipeline import run_passes
from refcomp.foundation.dtype import to_numpy
from refcomp.lowering.lower import lower
from refcomp.mutate.host_runs import Ran
from refcomp.mutate.mutant import POLICIES, TOLERANCES
from refcomp.mutate.operations import Operations
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.oracle.lockstep.interpret import interpret

_UNWRITTEN = 77  # what outputs begin with
_MORE_SEEDS = range(3)


class RightResults:
    """A computation of `mutate.operations`, lowered, with its results."""

    def __init__(self, made: Operations) -> None:
        self.name, self._made = made.name, made
        self.func = lower(made.schedule, made.args, "computation")
        self._runnable = run_passes(self.func, "interp")
        self._wanted = self._results(self.arrays())

    def arrays(self, seed: int | None = None) -> list[Any]:
        """Fresh arguments; with a seed other numbers, random bits among them."""
        made = self._made
        inputs = [x.copy() for x in made.inputs]
        if seed is not None:
            rng = np.random.default_rng(seed)
            inputs = [_others(x, rng, not made.inexact) for x in inputs]
        given = iter(inputs)
        return [
            np.full(_shape(arg), _UNWRITTEN, to_numpy(arg.dtype))
            if arg.op.inputs
            else next(given)
            for arg in made.args
        ]

    def told(self, ran: Ran) -> str:
        """By what ours tells these results from the right ones; '' where it does not."""
        return self._told(ran, self._wanted)

    def noticed_by_tolerances(self, ran: Ran) -> set[str]:
        """The tolerances that tell them apart."""
        if ran.failed != self._made.fails or not ran.arrays:
            return set(POLICIES[1:])
        wanted = [
            one if isinstance(one, np.ndarray) else one.nearest for one in self._wanted
        ]
        pairs = [(_wide(a), _wide(b)) for a, b in zip(ran.arrays, wanted, strict=True)]
        return {
            policy
            for policy, rtol in zip(POLICIES[1:], TOLERANCES, strict=True)
            if not all(
                np.allclose(a, b, rtol=rtol, atol=0, equal_nan=True) for a, b in pairs
            )
        }

    def differs_elsewhere(self, run: Callable[[Sequence[Any]], Ran]) -> bool:
        """Whether more numbers tell apart what `run` does."""
        given = [self.arrays(seed) for seed in _MORE_SEEDS]
        return any(self._told(run(arrays), self._results(arrays)) for arrays in given)

    def _results(self, arrays: list[Any]) -> list[Any]:
        """What each argument must be then: an array, or Bounded where the last digits are free."""
        made = self._made
        if made.fails:
            return arrays
        with np.errstate(all="ignore"):
            after = [array.copy() for array in arrays]
            interpret(self._runnable, after)
        feeds = {
            t: a for t, a in zip(made.args, arrays, strict=True) if not t.op.inputs
        }
        free = [k for k, arg in enumerate(made.args) if arg.name in made.inexact]
        for k, bounded in zip(
            free, bound_errors([made.args[k] for k in free], feeds), strict=True
        ):
            after[k] = bounded
        return after

    def _told(self, ran: Ran, wanted: Sequence[Any]) -> str:
        if ran.fault or ran.failed != self._made.fails:
            return ran.fault or "it fails, or does not, the other way round"
        for arg, found, right in zip(self._made.args, ran.arrays, wanted, strict=True):
            if isinstance(right, Bounded):
                report = judge_bounded(found, right)
                if not report.agrees:
                    return f"{arg.name}: {report}"
            elif not _has_the_same_bits(found, right):
                return f"{arg.name}: other bits"
        return ""


def _shape(arg: Any) -> tuple[int, ...]:
    return tuple(dim.value for dim in arg.shape)


def _others(numbers: Any, rng: np.random.Generator, are_any: bool) -> Any:
    """The numbers in another order; if they may be any, random bits for half of the floats."""
    mixed = rng.permutation(numbers.reshape(-1))
    if numbers.dtype.kind == "f" and are_any:
        bits = np.frombuffer(rng.bytes(numbers.nbytes), numbers.dtype)
        mixed = np.where(rng.random(mixed.shape) < 0.5, bits, mixed)
    return mixed.reshape(numbers.shape)


def _has_the_same_bits(a: Any, b: Any) -> bool:
    """NaN is NaN, of whatever bits."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    same = (a == b) & (np.signbit(a) == np.signbit(b))
    return bool((same | (np.isnan(a) & np.isnan(b))).all())


def _wide(numbers: Any) -> Any:
    with np.errstate(all="ignore"):
        return numbers.astype(np.float64)
