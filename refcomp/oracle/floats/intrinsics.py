"""Each intrinsic of the IR on operands that carry an error.

An intrinsic is monotone on each side of zero, or has a rule of its own for the propagation of
errors. The references are the C library's functions in WIDE, which are assumed to be right within 8
roundings of WIDE. That of erf is Python's, of f64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle.floats.arithmetic import not_zero, product_of, sum_of
from refcomp.oracle.floats.legal_values import (
    NAN,
    Approx,
    ends,
    over_cases,
    unknown,
    where_bit,
)
from refcomp.oracle.floats.rounded_results import rounded
from refcomp.oracle.floats.rounding import (
    INFINITY,
    REFERENCE_UNIT,
    TRUE,
    WIDE,
    ZERO,
    product_residual,
    to_dtype,
    two_sum,
)
from refcomp.oracle.interpreter.intrinsics import FLOAT_FUNCTIONS
from refcomp.oracle.tensors import arrays
from refcomp.oracle.tensors.arrays import Array

_Function = Callable[..., Array]
# Bounds the error of function(*operands), given the reference, that the operands' errors cause.
_Propagation = Callable[[_Function, Array, Sequence[Approx]], Array]

_REFERENCE_FUNCTION = WIDE(8) * REFERENCE_UNIT  # of a function of the C library
_REFERENCE_ERF = WIDE(2.0**-51)
_ERF_UNDERFLOW = WIDE(2.0**-1074)  # math.erf rounds to f64, whose ulp this is near zero


def call(name: str, operands: list[Approx], dtype: DType, result: DType) -> Approx:
    """Return the intrinsic `name` of operands of `dtype`; its result has the dtype `result`."""
    rule: Callable[..., Approx]
    if not dtype.is_float or not result.is_float:
        rule = partial(_with_integers, name, dtype, result)
    elif name in _RULES:
        rule = partial(_RULES[name], dtype)
    else:
        rule = partial(_function, name, dtype)
    return over_cases(rule, *operands)


def _function(name: str, dtype: DType, *operands: Approx) -> Approx:
    value = _REFERENCES[name](*[a.value for a in operands])
    error = _propagated(name, value, operands)
    doubtful = np.isinf(error)
    if name in _STEPS:
        doubtful = error > 0
    # The NaN may be a signalling one. C libraries return NaN then, even if the value is decided.
    has_nan = _any([a.is_nan for a in operands])
    ignores_nan = has_nan & ~np.isnan(value)
    raw = Approx(
        value=value,
        error=error,
        doubtful=doubtful | _any([a.doubtful for a in operands]),
        magnitude=np.abs(value),
        others=where_bit(ignores_nan, NAN),
    )
    if name in _EXACT:
        return replace(raw, keeps_sign=(error == 0) | not_zero(raw))
    if name == "erf":
        is_tiny = np.abs(value) < 2.0**-1000
        underflow = np.where(is_tiny, _ERF_UNDERFLOW, ZERO)
        raw = replace(raw, error=error + underflow)
        return rounded(raw, dtype, INTRINSICS[name].ulp, _REFERENCE_ERF)
    return rounded(raw, dtype, INTRINSICS[name].ulp or 0.5, _REFERENCE_FUNCTION)


def _propagated(name: str, value: Array, operands: Sequence[Approx]) -> Array:
    """Bound the error of the value that the errors of the operands cause."""
    has_error = _any([~a.is_exact for a in operands])
    if not np.any(has_error):
        return np.zeros(np.shape(value), WIDE)
    propagation = _PROPAGATION.get(name, _by_corners)
    error = propagation(_REFERENCES[name], value, operands)
    is_unknown = np.isnan(error) | _any([a.is_unbounded for a in operands])
    error = np.where(is_unknown, INFINITY, error)
    return np.where(has_error, error, ZERO)


def _any(masks: Sequence[Array]) -> Array:
    return reduce(or_, masks)


def _with_integers(name: str, dtype: DType, result: DType, *operands: Approx) -> Approx:
    """Return a function that takes or returns integers or bools.

    It is exact for exact operands. But a NaN has many bit patterns.
    """
    narrow = [a.value for a in operands]
    if dtype.is_float:
        narrow = [to_dtype(value, dtype) for value in narrow]
    narrow = list(map(np.asarray, narrow))
    value = arrays.call(name, narrow, dtype, result)
    if name in ("isnan", "isinf", "isfinite"):
        is_unknown = _any([a.is_unbounded for a in operands])
        return unknown(value, is_unknown, result)
    is_unknown = _any([~a.is_exact for a in operands])
    if dtype.is_float:
        is_unknown = is_unknown | _any([a.is_nan for a in operands])
    return unknown(value, is_unknown, result)


# Functions with rules of their own.


def _fma(dtype: DType, a: Approx, b: Approx, c: Approx) -> Approx:
    product = product_of(a, b)
    missing = ZERO
    if dtype.bits == 64:  # Products may have more digits than the reference.
        _, left_out = two_sum(product.value, c.value)
        missing = product_residual(a.value, b.value, product.value) + left_out
        missing = np.where(np.isfinite(missing), missing, 0)

    def add(x: Approx) -> Approx:
        total = sum_of(x, c)
        value = total.value + missing
        error = total.error + np.abs(missing) * REFERENCE_UNIT
        return rounded(replace(total, value=value, error=error), dtype)

    return over_cases(add, product)


def _sqrt(dtype: DType, a: Approx) -> Approx:
    """Return the root. NaN is one of several results where an operand may be negative."""
    low, high = ends(a)
    may_be_negative = ~a.is_exact & ~a.is_unbounded & (low < 0) & (high >= 0)
    clipped = np.where(may_be_negative & (a.value < 0), ZERO, a.value)
    value = np.sqrt(clipped)
    reach = ZERO
    for end in (low, high):
        nearer = np.where(may_be_negative, np.fmax(end, 0), end)
        reach = np.maximum(reach, _distance(np.sqrt(nearer), value))
    error = np.where(a.is_exact, ZERO, reach + _reference_error(value))
    error = np.where(a.is_unbounded, INFINITY, error)
    doubtful = a.doubtful | np.isinf(error)
    raw = Approx(
        value=value,
        error=error,
        doubtful=doubtful,
        magnitude=np.abs(value),
        keeps_sign=TRUE,
    )
    result = rounded(raw, dtype)
    return replace(result, others=result.others | where_bit(may_be_negative, NAN))


def _copysign(_dtype: DType, a: Approx, b: Approx) -> Approx:
    """Return `a` with the sign of `b`; with either sign where that is not known.

    The sign of a NaN is not reliable.
    """
    value = np.copysign(a.value, b.value)
    may_change = ~b.is_exact & ~not_zero(b) & ~b.keeps_sign
    flips = b.is_nan | b.is_unbounded | may_change
    distance = np.where(np.isfinite(value), 2 * np.abs(value), INFINITY)
    error = a.error + np.where(flips & ~np.isnan(value), distance, ZERO)
    doubtful = a.doubtful | b.doubtful | flips
    return Approx(
        value=value,
        error=error,
        doubtful=doubtful,
        magnitude=np.abs(value),
        keeps_sign=~flips,
    )


_RULES: dict[str, Callable[..., Approx]] = {
    "fma": _fma,
    "sqrt": _sqrt,
    "copysign": _copysign,
}


# Propagation of errors.


def _by_corners(function: _Function, value: Array, operands: Sequence[Approx]) -> Array:
    """Bound the error of a function that is monotone in each operand on each side of zero.

    Its extremes lie at the ends of the operands' ranges, or at zero.
    """
    ranges = []
    for operand in operands:
        low, high = ends(operand)
        ranges.append((low, high, np.clip(ZERO, low, high)))
    reach = ZERO
    for corner in itertools.product(*ranges):
        reach = np.maximum(reach, _distance(function(*corner), value))
    return reach + _reference_error(value)


def _reference_error(value: Array) -> Array:
    """Bound the error of the reference itself."""
    size = np.where(np.isfinite(value), np.abs(value), ZERO)
    return size * _REFERENCE_FUNCTION


def _distance(a: Array, b: Array) -> Array:
    """Return |a - b|, which is 0 if both are the same infinity or NaN."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, ZERO, np.abs(a - b))


def _step(function: _Function, value: Array, operands: Sequence[Approx]) -> Array:
    """Bound the error of rounding to a whole number, which is monotone and exact."""
    low, high = ends(operands[0])
    below = _distance(function(low), value)
    above = _distance(function(high), value)
    return np.maximum(below, above)


def _lipschitz(
    most: float, _function: _Function, _value: Array, operands: Sequence[Approx]
) -> Array:
    """Bound the error of a function of slope at most 1 whose values differ by at most `most`."""
    total = sum((operand.error for operand in operands), ZERO)
    return np.minimum(total, most)


def _tan(function: _Function, value: Array, operands: Sequence[Approx]) -> Array:
    """Bound the error of the tangent, which jumps where the cosine changes its sign."""
    low, high = ends(operands[0])
    is_short = operands[0].error < 1  # less than a period
    same_sign = (np.cos(low) > 0) == (np.cos(high) > 0)
    same_branch = is_short & same_sign
    by_corners = _by_corners(function, value, operands)
    return np.where(same_branch, by_corners, np.inf)


def _atan2(function: _Function, value: Array, operands: Sequence[Approx]) -> Array:
    """Bound the error of atan2, which jumps where y passes zero left of the origin."""
    y, x = operands
    may_be_left = x.value - x.error <= 0
    jumps = (y.absolute <= y.error) & may_be_left
    by_corners = _by_corners(function, value, operands)
    return np.where(jumps, 2 * math.pi, by_corners)


def _pow(function: _Function, value: Array, operands: Sequence[Approx]) -> Array:
    """Bound the error of a power. A negative base needs an exponent that is whole and exact."""
    base, exponent = operands
    is_whole = exponent.is_exact & (np.trunc(exponent.value) == exponent.value)
    is_defined = (base.value - base.error > 0) | is_whole
    may_be_negative = ~(exponent.value - exponent.error >= 0)
    at_pole = (base.absolute <= base.error) & may_be_negative
    by_corners = _by_corners(function, value, operands)
    return np.where(is_defined & ~at_pole, by_corners, np.inf)


_STEPS = ("floor", "ceil", "trunc", "round")
_EXACT = (*_STEPS, "abs")
_PROPAGATION: dict[str, _Propagation] = {
    "sin": partial(_lipschitz, 2.0),
    "cos": partial(_lipschitz, 2.0),
    "abs": partial(_lipschitz, math.inf),
    "hypot": partial(_lipschitz, math.inf),
    "tan": _tan,
    "atan2": _atan2,
    "pow": _pow,
    **dict.fromkeys(_STEPS, _step),
}


# References.


def _reference_erf(x: Array) -> Array:
    narrow = np.asarray(x, np.float64)
    values = list(map(math.erf, narrow.flat))
    return np.array(values, WIDE).reshape(narrow.shape)


def _reference_pow(x: Array, y: Array) -> Array:
    # In long double, glibc returns inf for (-inf) ** -(2 ** 63): infinite bases go by f64.
    base = np.asarray(x, np.float64)
    exponent = np.asarray(y, np.float64)
    special = np.float_power(base, exponent)
    return np.where(np.isinf(x), special, np.float_power(x, y))


_REFERENCES: dict[str, _Function] = {
    **FLOAT_FUNCTIONS,
    "erf": _reference_erf,
    "pow": _reference_pow,
    "exp10": partial(np.power, WIDE(10)),
}
