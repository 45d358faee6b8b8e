"""Computes each intrinsic of the IR on values that are known up to an error.

Needs functions that are monotone on each side of zero, or a rule of their own (`_TRAVELS`). The
references are the C library's in WIDE, taken to be right within 8 roundings; that of erf is
Python's, of f64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle.floats.legal_values import (
    NAN,
    NO_OTHERS,
    Approx,
    ends,
    over_cases,
    unknown,
)
from refcomp.oracle.floats.operations import not_zero, product_of, rounded, sum_of
from refcomp.oracle.floats.rounding import (
    REFERENCE_UNIT,
    WIDE,
    product_residual,
    to_dtype,
    two_sum,
)
from refcomp.oracle.interpreter.intrinsics import FLOAT_FUNCTIONS
from refcomp.oracle.tensors import arrays

_REFERENCE_FUNCTION = 8 * REFERENCE_UNIT  # of one function of the C library
_REFERENCE_ERF = WIDE(2.0**-51)
_LEAST_ERF = WIDE(2.0**-1074)  # math.erf rounds to f64, whose ulp that is near zero


def call(name: str, operands: list[Approx], dtype: DType, result: DType) -> Approx:
    """Return the intrinsic `name` of operands of `dtype`."""
    if not dtype.is_float or not result.is_float:
        return over_cases(lambda *each: _of_bits(name, each, dtype, result), *operands)
    rule = _RULES.get(name)
    if rule is not None:
        return over_cases(lambda *each: rule(*each, dtype), *operands)
    return over_cases(lambda *each: _function(name, each, dtype), *operands)


def _function(name: str, operands: tuple[Approx, ...], dtype: DType) -> Approx:
    value = _REFERENCES[name](*[a.value for a in operands])
    error = _travelled(name, value, operands)
    doubtful = np.isinf(error) | ((error > 0) & (name in _STEPS))
    # A NaN may be a signalling one, of which C libraries make NaN even where the value is decided.
    decided = _any([np.isnan(a.value) for a in operands]) & ~np.isnan(value)
    raw = Approx(
        value,
        error,
        doubtful | _any([a.doubtful for a in operands]),
        np.abs(value),
        others=np.where(decided, NAN, NO_OTHERS),
    )
    if name in _EXACT:
        return replace(raw, keeps_sign=(error == 0) | not_zero(raw))
    if name == "erf":
        raw = replace(
            raw, error=error + np.where(np.abs(value) < 2.0**-1000, _LEAST_ERF, 0)
        )
        return rounded(raw, dtype, INTRINSICS[name].ulp, _REFERENCE_ERF)
    return rounded(raw, dtype, INTRINSICS[name].ulp or 0.5, _REFERENCE_FUNCTION)


def _travelled(name: str, value: Any, operands: tuple[Approx, ...]) -> Any:
    """Return a bound of the error that the operands' errors cause in the value."""
    if not np.any(_any([a.error > 0 for a in operands])):
        return np.zeros(np.shape(value), WIDE)
    travel: Callable[..., Any] = _TRAVELS.get(name, _by_corners)
    error = travel(_REFERENCES[name], value, operands)
    lost = np.isnan(error) | _any([np.isinf(a.error) for a in operands])
    error = np.where(lost, WIDE(np.inf), error)
    return np.where(_any([a.error > 0 for a in operands]), error, WIDE(0))


def _any(masks: list[Any]) -> Any:
    return np.logical_or.reduce(np.broadcast_arrays(*masks))


def _of_bits(
    name: str, operands: tuple[Approx, ...], dtype: DType, result: DType
) -> Approx:
    """Functions with integers or bools on one side: exact of exact operands. NaN has many bits."""
    narrow = [to_dtype(a.value, dtype) if dtype.is_float else a.value for a in operands]
    value = arrays.call(name, [np.asarray(x) for x in narrow], dtype, result)
    lost = [np.isinf(a.error) for a in operands]
    if name not in ("isnan", "isinf", "isfinite"):
        lost = [a.error > 0 for a in operands]
        lost += [np.isnan(a.value) for a in operands if dtype.is_float]
    return unknown(value, _any(lost), result)


# Functions with rules of their own.


def _fma(a: Approx, b: Approx, c: Approx, dtype: DType) -> Approx:
    product = product_of(a, b)
    missing: Any = WIDE(0)
    if dtype.bits == 64:  # whose products may have more digits than the reference
        _, left_out = two_sum(product.value, c.value)
        missing = product_residual(a.value, b.value, product.value) + left_out
        missing = np.where(np.isfinite(missing), missing, 0)

    def added(x: Approx) -> Approx:
        total = sum_of(x, c)
        error = total.error + np.abs(missing) * REFERENCE_UNIT
        return rounded(replace(total, value=total.value + missing, error=error), dtype)

    return over_cases(added, product)


def _sqrt(a: Approx, dtype: DType) -> Approx:
    """NaN is one of several results where an operand may be negative, and may be none."""
    low, high = ends(a)
    crosses = (a.error > 0) & np.isfinite(a.error) & (low < 0) & (high >= 0)
    value = np.sqrt(np.where(crosses & (a.value < 0), WIDE(0), a.value))
    reach = [
        _gap(np.sqrt(np.where(crosses, np.fmax(end, 0), end)), value)
        for end in (low, high)
    ]
    carried = np.maximum(*reach) + _of_reference(value)
    error = np.where(
        np.isinf(a.error), WIDE(np.inf), np.where(a.error > 0, carried, WIDE(0))
    )
    raw = Approx(
        value, error, a.doubtful | np.isinf(error), np.abs(value), keeps_sign=np.True_
    )
    result = rounded(raw, dtype)
    return replace(result, others=result.others | np.where(crosses, NAN, NO_OTHERS))


def _copysign(a: Approx, b: Approx, _dtype: DType) -> Approx:
    """Either sign is legal where that of `b` is not known; NaN has none that can be relied on."""
    value = np.copysign(a.value, b.value)
    flips = np.isnan(b.value) | ((b.error > 0) & ~not_zero(b) & ~b.keeps_sign)
    flips = flips | np.isinf(b.error)
    error = a.error + np.where(flips & np.isfinite(value), 2 * np.abs(value), WIDE(0))
    error = np.where(flips & np.isinf(value), WIDE(np.inf), error)
    doubtful = a.doubtful | b.doubtful | flips
    return Approx(value, error, doubtful, np.abs(value), keeps_sign=~flips)


_RULES: dict[str, Callable[..., Approx]] = {
    "fma": _fma,
    "sqrt": _sqrt,
    "copysign": _copysign,
}


def _by_corners(
    function: Callable[..., Any], value: Any, operands: tuple[Approx, ...]
) -> Any:
    """Bound the error of a function that is monotone in each operand on each side of zero.

    Its extremes lie at the ends of the operands' ranges, or at zero.
    """
    ranges = [(*ends(a), np.clip(WIDE(0), *ends(a))) for a in operands]
    reach = [_gap(function(*point), value) for point in itertools.product(*ranges)]
    return np.maximum.reduce(np.broadcast_arrays(*reach)) + _of_reference(value)


def _of_reference(value: Any) -> Any:
    """Return a bound of the error of the reference itself."""
    return np.where(np.isfinite(value), np.abs(value), WIDE(0)) * _REFERENCE_FUNCTION


def _step(
    function: Callable[..., Any], value: Any, operands: tuple[Approx, ...]
) -> Any:
    """Bound the error of rounding to a whole number, which is monotone and exact."""
    low, high = (_gap(function(end), value) for end in ends(operands[0]))
    return np.maximum(low, high)


def _gap(a: Any, b: Any) -> Any:
    """Return |a - b|, which is 0 if both are the same infinity or NaN."""
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), WIDE(0), np.abs(a - b))


def _lipschitz(most: float) -> Callable[..., Any]:
    """Return the bound for a function of slope at most 1 whose values differ by at most `most`."""

    def error(
        _function: Callable[..., Any], _value: Any, operands: tuple[Approx, ...]
    ) -> Any:
        return np.minimum(sum(a.error for a in operands), most)

    return error


def _tangent(
    function: Callable[..., Any], value: Any, operands: tuple[Approx, ...]
) -> Any:
    """Bound the error of the tangent, which jumps where the cosine changes its sign."""
    low, high = (np.cos(end) > 0 for end in ends(operands[0]))
    between = (low == high) & (operands[0].error < 1)
    return np.where(between, _by_corners(function, value, operands), np.inf)


def _angle(
    function: Callable[..., Any], value: Any, operands: tuple[Approx, ...]
) -> Any:
    """Bound the error of atan2, which jumps where y passes zero left of the origin."""
    y, x = operands
    jumps = (np.abs(y.value) <= y.error) & (x.value - x.error <= 0)
    return np.where(jumps, 2 * math.pi, _by_corners(function, value, operands))


def _power(
    function: Callable[..., Any], value: Any, operands: tuple[Approx, ...]
) -> Any:
    """Bound the error of a power. A negative base needs an exponent that is whole and exact."""
    base, exponent = operands
    whole = (exponent.error == 0) & (np.trunc(exponent.value) == exponent.value)
    known = (base.value - base.error > 0) | whole
    at_pole = (np.abs(base.value) <= base.error) & ~(
        exponent.value - exponent.error >= 0
    )
    return np.where(known & ~at_pole, _by_corners(function, value, operands), np.inf)


_STEPS = ("floor", "ceil", "trunc", "round")
_EXACT = (*_STEPS, "abs")
_TRAVELS: dict[str, Callable[..., Any]] = {
    "sin": _lipschitz(2.0),
    "cos": _lipschitz(2.0),
    "abs": _lipschitz(math.inf),
    "hypot": _lipschitz(math.inf),
    "tan": _tangent,
    "atan2": _angle,
    "pow": _power,
    **dict.fromkeys(_STEPS, _step),
}


def _erf(x: Any) -> Any:
    narrow = np.asarray(x, np.float64)
    return np.array([math.erf(one) for one in narrow.flat], WIDE).reshape(narrow.shape)


def _pow(x: Any, y: Any) -> Any:
    """Return x ** y, for an infinite base computed in f64.

    In long double, glibc returns inf for (-inf) ** -(2 ** 63).
    """
    special = np.float_power(np.asarray(x, np.float64), np.asarray(y, np.float64))
    return np.where(np.isinf(x), special, np.float_power(x, y))


_REFERENCES: dict[str, Callable[..., Any]] = {
    **FLOAT_FUNCTIONS,
    "erf": _erf,
    "pow": _pow,
    "exp10": lambda x: np.power(WIDE(10), x),
}
