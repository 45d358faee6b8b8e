"""Compares an array with the expected one, within a bound that the caller knows to be right.

Each element is exact (the same value; NaN equals NaN, an infinity itself, 0.0 equals -0.0), within
the bound (the absolute difference is at most `bound`), or wrong. There is no relative tolerance
and no default bound: who compares says what error is allowed, and why.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.dtype import as_dtype
from refcomp.errors import UserError

EXACT, WITHIN_BOUND, WRONG = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of `compare`.

    `verdicts` holds EXACT, WITHIN_BOUND or WRONG per element (int8, the arrays' shape). The worst
    element is the one with the greatest `worst_ratio` of difference to bound (inf where nothing
    may differ, or where one side is NaN or infinite); None when every element is exact.
    """

    verdicts: Any
    worst_index: tuple[int, ...] | None
    worst_ratio: float
    worst_text: str

    @property
    def wrong(self) -> int:
        """How many elements are wrong."""
        return int(np.count_nonzero(self.verdicts == WRONG))

    @property
    def exact(self) -> int:
        """How many elements are exact."""
        return int(np.count_nonzero(self.verdicts == EXACT))

    @property
    def agrees(self) -> bool:
        """Whether no element is wrong."""
        return self.wrong == 0

    def __str__(self) -> str:
        total = self.verdicts.size
        within = total - self.exact - self.wrong
        counts = f"{total} elements: {self.exact} exact, {within} within bound, {self.wrong} wrong"
        return f"{counts}; worst {self.worst_text}" if self.worst_text else counts


def compare(actual: Any, expected: Any, bound: Any = 0.0) -> Report:
    """The Report on `actual` against `expected`, arrays of one shape; `bound` is the allowed
    absolute difference, a scalar or an array of that shape, >= 0. Raises UserError when the shapes
    differ, or the dtypes do and are not both floats."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    _check(actual, expected)
    allowed = np.broadcast_to(np.asarray(bound, np.float64), expected.shape)
    difference = _difference(actual, expected)
    within = (difference <= allowed) & np.isfinite(difference)
    verdicts = np.where(difference == 0, EXACT, np.where(within, WITHIN_BOUND, WRONG))
    with np.errstate(all="ignore"):
        ratios = np.where(np.isfinite(difference), difference / allowed, np.inf)
    ratios = np.where(difference == 0, 0.0, ratios)
    return _report(actual, expected, allowed, verdicts.astype(np.int8), ratios)


def _check(actual: Any, expected: Any) -> None:
    if actual.shape != expected.shape:
        raise UserError(
            f"arrays of shapes {actual.shape} and {expected.shape} cannot be compared",
            remedy="compare arrays of one shape; nothing is broadcast",
        )
    if actual.dtype != expected.dtype and not (_is_float(actual) and _is_float(expected)):
        raise UserError(
            f"arrays of dtypes {actual.dtype} and {expected.dtype} cannot be compared",
            why="only floats may differ in width",
            remedy="convert one of them first, and mind what that loses",
        )


def _is_float(array: Any) -> bool:
    return as_dtype(array.dtype).is_float


def _difference(actual: Any, expected: Any) -> Any:
    """|actual - expected| as f64; inf where one is NaN or infinite and the other not the same."""
    if actual.dtype.kind in "iub":
        return np.abs(actual.astype(object) - expected.astype(object)).astype(np.float64)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        difference = np.abs(a - e)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    return np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _report(actual: Any, expected: Any, allowed: Any, verdicts: Any, ratios: Any) -> Report:
    if not ratios.size or not ratios.any():
        return Report(verdicts, None, 0.0, "")
    index = tuple(int(i) for i in np.unravel_index(np.argmax(ratios), ratios.shape))
    ratio = float(ratios[index])
    text = f"at {index}: {actual[index]!s} for {expected[index]!s}, allowed {allowed[index]:.3g}"
    return Report(verdicts, index, ratio, text)
