"""Comparison of an array with the expected one, within a bound that is known to hold.

Each element gets one verdict:

- exact: the same value. NaN equals NaN, an infinity equals itself, 0.0 equals -0.0.
- within bound: the absolute difference is at most the bound.
- undecidable: the bound is too weak to decide.
- wrong: all other elements.

No tolerance is involved. `judge_bounded` takes the bounds that
`refcomp.oracle.floats.error_bounds` proves. The caller of `compare` chooses the bound, and has to
justify it; the default accepts the same value only.

An element is undecidable in three cases:

1. It is an infinity or NaN, and rounding decides whether an operation overflows.
2. It is within the bound, but rounding decides a branch or a discontinuity. The bound then says
   little or nothing.
3. It is within the bound, but terms of a sum cancel so far that even the sign is uncertain. The
   condition number distinguishes this case from an error (N. J. Higham, Accuracy and Stability of
   Numerical Algorithms, 2nd edition, sections 1.7 and 4.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.oracle.floats.error_bounds import Bounded
from refcomp.oracle.tensors.arrays import Array

EXACT, WITHIN_BOUND, WRONG, UNDECIDABLE = 0, 1, 2, 3
VERDICTS = ("exact", "within bound", "wrong", "undecidable")


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a comparison, which `compare` and `judge_bounded` return.

    The worst element is the one with the greatest ratio of difference to bound. A wrong element is
    worse than all others. `str` summarizes the report in one line.

    Attributes:
        verdicts: int8, of the shape of the arrays: 0 for exact, 1 for within bound, 2 for wrong, 3
            for undecidable.
        worst_index: the index of the worst element; None if all elements are exact.
        worst_ratio: its ratio of difference to bound; 0 if all elements are exact. It is inf if no
            difference is allowed, or if one side is NaN or infinite.
        worst_text: a description of the worst element; empty if all elements are exact.
        ratios: float64, of the shape of the arrays: difference / bound. It is 0 for an exact
            element and 1 for an undecidable one.
        why: why elements are undecidable, or why the worst one is wrong; empty if not known.

    Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, 2002.

    Example::

        >>> report = rc.oracle.compare([1.0, 2.0, 3.5], [1.0, 2.1, 3.0], bound=0.2)
        >>> report.agrees, report.verdict, report.exact, report.wrong
        (False, 'wrong', 1, 1)
        >>> report.worst_index, report.worst_ratio, report.verdicts.tolist()
        ((2,), 2.5, [0, 1, 2])
    """

    verdicts: Array
    worst_index: tuple[int, ...] | None
    worst_ratio: float
    worst_text: str
    ratios: Array
    why: str = ""

    def count(self, verdict: int) -> int:
        """Return the number of elements with this verdict.

        Args:
            verdict: 0 for exact, 1 for within bound, 2 for wrong, 3 for undecidable.

        Example::

            >>> rc.oracle.compare([1.0, 2.0], [1.0, 2.1], bound=0.2).count(1)
            1
        """
        return int(np.count_nonzero(self.verdicts == verdict))

    def indices(self, verdict: int) -> list[tuple[int, ...]]:
        """Return the indices of the elements with this verdict, in row-major order.

        Args:
            verdict: 0 for exact, 1 for within bound, 2 for wrong, 3 for undecidable.

        Example::

            >>> rc.oracle.compare([[1, 2], [3, 4]], [[1, 2], [3, 5]]).indices(2)
            [(1, 1)]
        """
        found = np.argwhere(self.verdicts == verdict)
        return [tuple(index) for index in found.tolist()]

    @property
    def wrong(self) -> int:
        """Return the number of wrong elements."""
        return self.count(WRONG)

    @property
    def exact(self) -> int:
        """Return the number of exact elements."""
        return self.count(EXACT)

    @property
    def agrees(self) -> bool:
        """Return True if no element is wrong."""
        return self.wrong == 0

    @property
    def verdict(self) -> str:
        """Return the worst verdict: wrong, else undecidable, within bound, exact."""
        for verdict in (WRONG, UNDECIDABLE, WITHIN_BOUND):
            if self.count(verdict):
                return VERDICTS[verdict]
        return VERDICTS[EXACT]

    def __str__(self) -> str:
        within = self.count(WITHIN_BOUND)
        undecidable = self.count(UNDECIDABLE)
        text = (
            f"{self.verdicts.size} elements: {self.exact} exact, {within} within bound, "
            f"{self.wrong} wrong"
        )
        if undecidable:
            text += f", {undecidable} undecidable"
        if self.worst_text:
            text += f"; worst {self.worst_text}"
        if self.why:
            text += f"; {self.why}"
        return text


@np.errstate(all="ignore")  # signalling NaN
def compare(actual: ArrayLike, expected: ArrayLike, bound: ArrayLike = 0.0) -> Report:
    """Return the Report on `actual` against `expected`, two arrays of one shape.

    Args:
        actual: the values to judge.
        expected: the right values. Only floats may have another dtype than `actual`.
        bound: allowed absolute difference, >= 0: a number, or an array of the same shape.

    Raises:
        UserError: the shapes or the dtypes do not fit, or `bound` is not a bound.

    Example::

        >>> report = rc.oracle.compare([1.0, 2.0, 3.5], [1.0, 2.1, 3.0], bound=0.2)
        >>> report.agrees
        False
        >>> print(report)
        3 elements: 1 exact, 1 within bound, 1 wrong; worst at (2,): 3.5 for 3.0, allowed 0.2
    """
    found = np.asarray(actual)
    wanted = np.asarray(expected)
    _check(found, wanted)
    try:
        allowed = np.broadcast_to(np.asarray(bound, np.float64), wanted.shape)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"a {type(bound).__name__} is not a bound for arrays of shape {wanted.shape}",
            why=str(error),
            remedy="pass a number, or an array of numbers of that shape",
        ) from error
    return _report(found, wanted, allowed, _difference(found, wanted))


@np.errstate(all="ignore")
def judge_bounded(actual: ArrayLike, bounded: Bounded) -> Report:
    """Return the Report on `actual`, whose elements should be legal values of `bounded`.

    An element is exact if it equals the reference, or the reference rounded once.

    Args:
        actual: the values to judge.
        bounded: what `bound_errors` returned for the tensor.

    Raises:
        UserError: the shapes or the dtypes do not fit.

    Example::

        >>> A = rc.placeholder((3,), name="A")
        >>> B = rc.compute((3,), lambda i: A[i] * 0.1, name="B")
        >>> a = np.array([1, 2, 3], "float32")
        >>> (bounded,) = rc.oracle.bound_errors([B], {A: a})
        >>> print(rc.oracle.judge_bounded(a / np.float32(10), bounded))
        3 elements: 3 exact, 0 within bound, 0 wrong
    """
    if not isinstance(bounded, Bounded):
        raise UserError(
            f"a {type(bounded).__name__} does not say which values are legal",
            remedy="pass what bound_errors returned; compare(a, b) compares two arrays",
        )
    found = np.asarray(actual)
    expected = np.empty(bounded.value.shape, to_numpy(bounded.dtype))
    _check(found, expected)
    is_nearest = _difference(found, bounded.nearest) == 0
    difference = np.where(is_nearest, 0.0, _difference(found, bounded.value))
    cancels = bounded.condition_is_lost & np.isfinite(bounded.value)
    outside = bounded.allows(found)
    report = _report(
        found,
        bounded.nearest,
        bounded.error,
        difference,
        vague=bounded.doubtful | cancels | np.isinf(bounded.error),
        outside=outside,
    )
    return replace(report, why=_reason(report, bounded, outside))


def upper_f64(bound: np.longdouble | float) -> float:
    """Return the least f64 that is not below `bound`, which may be a long double."""
    near = float(bound)
    return near if near >= bound else math.nextafter(near, math.inf)


def _reason(report: Report, bounded: Bounded, outside: Array) -> str:
    """Return why elements are wrong or undecidable, '' if none is."""
    if report.wrong:
        return f"condition number {bounded.condition[report.worst_index]:.3g}"
    undecidable = report.verdicts == UNDECIDABLE
    doubtful = undecidable & (bounded.doubtful | outside)
    cancelled = undecidable & ~doubtful
    reasons = []
    if doubtful.any():
        count = int(doubtful.sum())
        reasons.append(f"rounding decides a branch, a jump or an overflow in {count}")
    if cancelled.any():
        count = int(cancelled.sum())
        worst = float(bounded.condition[cancelled].max())
        reasons.append(f"{count} cancel (condition number up to {worst:.3g})")
    return ", ".join(reasons)


def _check(actual: Array, expected: Array) -> None:
    both_float = all(as_dtype(array.dtype).is_float for array in (actual, expected))
    if actual.shape != expected.shape:
        raise UserError(
            f"arrays of shapes {actual.shape} and {expected.shape} cannot be compared",
            remedy="compare arrays of one shape; nothing is broadcast",
        )
    if actual.dtype != expected.dtype and not both_float:
        raise UserError(
            f"arrays of dtypes {actual.dtype} and {expected.dtype} cannot be compared",
            why="only floats may differ in width",
            remedy="convert one of them first, and mind what that loses",
        )


def _difference(actual: Array, expected: Array) -> Array:
    """Return |actual - expected|.

    It is 0 for the same NaN or infinity, and inf if only one side is NaN or infinite.
    """
    if actual.dtype.kind in "iub":
        # Python's integers: a difference of u64 or i64 may not fit into either.
        exact = np.abs(actual.astype(object) - expected.astype(object))
        return np.asarray(exact, np.float64)
    a = actual.astype(np.longdouble)
    b = expected.astype(np.longdouble)
    difference = np.abs(a - b)
    difference = np.where(np.isnan(difference), np.inf, difference)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, difference)


def _report(
    actual: Array,
    expected: Array,
    allowed: Array,
    difference: Array,
    *,
    vague: Array | bool = False,
    outside: Array | bool = False,
) -> Report:
    """Return the Report, its reason left empty.

    Args:
        actual: the values to judge.
        expected: the values that the text on the worst element cites.
        allowed: greatest difference that is not wrong.
        difference: as `_difference` returns it.
        vague: bool; the bound is too weak to decide.
        outside: bool; legal although it is infinite or NaN.
    """
    within = difference <= allowed
    passed = np.where(within & np.isfinite(difference), WITHIN_BOUND, WRONG)
    passed = np.where((vague & within) | outside, UNDECIDABLE, passed)
    verdicts = np.where(difference == 0, EXACT, passed).astype(np.int8)
    ratios = np.where(np.isfinite(difference), difference / allowed, np.inf)
    ratios[verdicts == UNDECIDABLE] = 1.0
    ratios[verdicts == EXACT] = 0.0
    if not ratios.any():
        return Report(verdicts, None, 0.0, "", ratios)
    # A wrong element is the worst one, whatever other elements there are.
    ranked = np.where(verdicts == WRONG, ratios, np.minimum(ratios, 1.0))
    place = np.unravel_index(np.argmax(ranked), ratios.shape)
    index = tuple(map(int, place))
    limit = upper_f64(allowed[index])
    text = f"at {index}: {actual[index]!s} for {expected[index]!s}, allowed {limit:.3g}"
    return Report(verdicts, index, float(ratios[index]), text, ratios)
