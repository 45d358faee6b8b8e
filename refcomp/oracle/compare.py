"""Compares an array with the expected one, within a bound that is known to be right.

Each element is exact (the same value; NaN equals NaN, an infinity itself, 0.0 equals -0.0), within
the bound (the absolute difference is at most the bound), wrong, or undecidable. There is no
tolerance: a bound is what `refcomp.oracle.floats.error_bounds` proves (`judge_bounded`), or who
compares says what error is allowed, and why (`compare`); without one only the same value is right.

Undecidable is an infinity or NaN where an overflow hangs on rounding; finite values have their
bound there all the same. So is what lies within a bound that says nothing: where a branch or a jump
hangs on rounding, and where the terms of a sum cancel so far that not even the sign is certain. The
condition number tells that apart from an error (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd edition, sections 1.7 and 4.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.oracle.floats.error_bounds import Bounded

EXACT, WITHIN_BOUND, WRONG, UNDECIDABLE = 0, 1, 2, 3
VERDICTS = ("exact", "within bound", "wrong", "undecidable")


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a comparison.

    `verdicts` holds EXACT, WITHIN_BOUND, WRONG or UNDECIDABLE per element (int8, the arrays'
    shape). The worst element is the one with the greatest `worst_ratio` of difference to bound
    (inf where nothing may differ, or where one side is NaN or infinite); None when every element
    is exact. `ratios` are those of all elements, 0 where they are exact, 1 where they are
    undecidable. `why` says why elements are undecidable, or the worst one is wrong; '' for neither.
    """

    verdicts: Any
    worst_index: tuple[int, ...] | None
    worst_ratio: float
    worst_text: str
    ratios: Any
    why: str = ""

    def count(self, verdict: int) -> int:
        """How many elements have this verdict."""
        return int(np.count_nonzero(self.verdicts == verdict))

    def indices(self, verdict: int) -> list[tuple[int, ...]]:
        """The elements that have this verdict."""
        return [
            tuple(map(int, index)) for index in np.argwhere(self.verdicts == verdict)
        ]

    @property
    def wrong(self) -> int:
        """How many elements are wrong."""
        return self.count(WRONG)

    @property
    def exact(self) -> int:
        """How many elements are exact."""
        return self.count(EXACT)

    @property
    def agrees(self) -> bool:
        """Whether no element is wrong."""
        return self.wrong == 0

    @property
    def verdict(self) -> str:
        """The worst one: wrong, else undecidable, within bound, exact."""
        order = (WRONG, UNDECIDABLE, WITHIN_BOUND)
        return VERDICTS[next((v for v in order if self.count(v)), EXACT)]

    def __str__(self) -> str:
        within = self.count(WITHIN_BOUND)
        counts = (
            f"{self.verdicts.size} elements: {self.exact} exact, {within} within bound, "
            f"{self.wrong} wrong"
        )
        if self.count(UNDECIDABLE):
            counts += f", {self.count(UNDECIDABLE)} undecidable"
        parts = [
            counts,
            f"worst {self.worst_text}" if self.worst_text else "",
            self.why,
        ]
        return "; ".join(filter(None, parts))


@np.errstate(all="ignore")  # signalling NaN
def compare(actual: Any, expected: Any, bound: Any = 0.0) -> Report:
    """The Report on `actual` against `expected`, arrays of one shape; `bound` is the allowed
    absolute difference, a scalar or an array of that shape, >= 0. Raises UserError when the shapes
    differ, or the dtypes do and are not both floats."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    _check(actual, expected)
    allowed = _as_bound(bound, expected.shape)
    difference = _difference(actual, expected)
    return _report(actual, expected, allowed, difference)


@np.errstate(all="ignore")
def judge_bounded(actual: Any, bounded: Bounded) -> Report:
    """The Report on `actual`, which should be legal values of `bounded`. Exact is the reference
    rounded once. Raises UserError when shapes or dtypes differ."""
    if not isinstance(bounded, Bounded):
        raise UserError(
            f"a {type(bounded).__name__} does not say which values are legal",
            remedy="pass what bound_errors returned; compare(a, b) compares two arrays",
        )
    actual = np.asarray(actual)
    _check(actual, np.empty(bounded.value.shape, to_numpy(bounded.dtype)))
    difference = _difference(actual, bounded.value)
    nearest = _difference(actual, bounded.nearest)
    difference = np.where(nearest == 0, 0.0, difference)
    vague = bounded.doubtful | (bounded.condition_is_lost & np.isfinite(bounded.value))
    vague = vague | np.isinf(bounded.error)
    beside = bounded.allows(actual) if bounded.dtype.is_float else np.False_
    report = _report(actual, bounded.nearest, bounded.error, difference, vague, beside)
    return Report(
        report.verdicts,
        report.worst_index,
        report.worst_ratio,
        report.worst_text,
        report.ratios,
        _reason(report, bounded, beside),
    )


def upper_f64(bound: Any) -> float:
    """Return the least number of f64 that is not below `bound`, which may be a long double."""
    near = float(bound)
    return near if near >= bound else math.nextafter(near, math.inf)


def _reason(report: Report, bounded: Bounded, beside: Any) -> str:
    if report.wrong:
        index = report.worst_index
        return f"condition number {bounded.condition[index]:.3g}"
    cases = report.verdicts == UNDECIDABLE
    doubtful = cases & (bounded.doubtful | beside)
    lost = cases & ~doubtful
    reasons = []
    if doubtful.any():
        count = int(doubtful.sum())
        reasons.append(f"a branch, a jump or an overflow hangs on rounding in {count}")
    if lost.any():
        worst = float(bounded.condition[lost].max())
        reasons.append(f"{int(lost.sum())} cancel (condition number up to {worst:.3g})")
    return ", ".join(reasons)


def _as_bound(bound: Any, shape: tuple[int, ...]) -> Any:
    try:
        return np.broadcast_to(np.asarray(bound, np.float64), shape)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"a {type(bound).__name__} is not a bound for arrays of shape {shape}",
            why=str(error),
            remedy="pass a number, or an array of numbers of that shape",
        ) from error


def _check(actual: Any, expected: Any) -> None:
    for array in (actual, expected):
        as_dtype(array.dtype)  # refuses what is not a number
    if actual.shape != expected.shape:
        raise UserError(
            f"arrays of shapes {actual.shape} and {expected.shape} cannot be compared",
            remedy="compare arrays of one shape; nothing is broadcast",
        )
    if actual.dtype != expected.dtype and not (
        _is_float(actual) and _is_float(expected)
    ):
        raise UserError(
            f"arrays of dtypes {actual.dtype} and {expected.dtype} cannot be compared",
            why="only floats may differ in width",
            remedy="convert one of them first, and mind what that loses",
        )


def _is_float(array: Any) -> bool:
    return as_dtype(array.dtype).is_float


def _difference(actual: Any, expected: Any) -> Any:
    """|actual - expected|; inf where one is NaN or infinite and the other not the same."""
    if actual.dtype.kind in "iub":
        return np.abs(actual.astype(object) - expected.astype(object)).astype(
            np.float64
        )
    a, e = actual.astype(np.longdouble), expected.astype(np.longdouble)
    with np.errstate(all="ignore"):
        difference = np.abs(a - e)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    return np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _report(
    actual: Any,
    expected: Any,
    allowed: Any,
    difference: Any,
    vague: Any = np.False_,
    beside: Any = np.False_,
) -> Report:
    within = (difference <= allowed) & np.isfinite(difference)
    passed = np.where(within, WITHIN_BOUND, WRONG)
    passed = np.where((vague & (difference <= allowed)) | beside, UNDECIDABLE, passed)
    verdicts = np.where(difference == 0, EXACT, passed).astype(np.int8)
    with np.errstate(all="ignore"):
        ratios = np.where(np.isfinite(difference), difference / allowed, np.inf)
    ratios = np.where(
        difference == 0, 0.0, np.where(verdicts == UNDECIDABLE, 1.0, ratios)
    )
    # A wrong element is the worst one, whatever others there are.
    ranked = np.where(verdicts == WRONG, ratios, np.minimum(ratios, 1.0))
    if not ratios.size or not ratios.any():
        return Report(verdicts, None, 0.0, "", ratios)
    index = tuple(int(i) for i in np.unravel_index(np.argmax(ranked), ratios.shape))
    limit = upper_f64(allowed[index])
    text = f"at {index}: {actual[index]!s} for {expected[index]!s}, allowed {limit:.3g}"
    return Report(verdicts, index, float(ratios[index]), text, ratios)
