"""Each operator of the IR on operands that carry an error.

An Approx (`refcomp.oracle.floats.legal_values`) holds a reference value, with more digits than any
dtype of the IR has, and a bound of the distance of legal values from it. Legal is what rounds to
nearest after each operation, or leaves a rounding out (a contraction), and keeps the ulp bounds of
`refcomp.ir.intrinsics`. The bounds are those of a running error analysis: errors of operands are
propagated, and the rounding error of the operation is added.

The bounds are sound for these reasons:

- Rounding x adds at most half an ulp of x: u |x| for the unit roundoff u, or half the smallest
  subnormal eta where x is below the normal numbers (gradual underflow). In Higham's model,
  fl(x) = x (1 + d) + e with |d| <= u and |e| <= eta / 2.
- Where x is exact, its rounding error is known, and taken instead.
- Errors are kept in WIDE, in whose range eta of f64 is an ordinary number. An error is 0 or at
  least eta / 2, so no product of errors underflows to 0.
- The roundings of the bounds themselves stay far below the relative 2^-30 that
  `refcomp.oracle.floats.error_bounds` adds.
- Rounding is monotone and keeps 0. So a result is 0 or has the sign of what is rounded
  (`keeps_sign`).

Where a legal result may overflow, the infinity is one more legal value beside the interval
(`others`), and later operations have one case for it. A contracted sum takes a product that is not
rounded (`contracted`), and may be finite where the rounded product is infinite. A simplifier may
first remove an operation that keeps a product as it is, such as a choice or a factor of 1. So
results of such operations are `contracted`, too.

Integers and bools are exact, or nothing is known of them (error inf). The source is N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition: sections 2.1 and 2.2 (model of rounding
with underflow), 2.6 (fused multiply-add), 3.3 (running error analysis).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from operator import and_

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.oracle.floats.legal_values import (
    MARGIN,
    MINUS_INF,
    MINUS_ZERO,
    NAN,
    NO_OTHERS,
    PLUS_INF,
    PLUS_ZERO,
    Approx,
    code_of,
    ends,
    join,
    over_cases,
    pick,
    unknown,
    unknown_truth,
    where_bit,
)
from refcomp.oracle.floats.rounding import (
    FALSE,
    GUARD,
    INFINITY,
    REFERENCE_UNIT,
    WIDE,
    ZERO,
    half_ulp,
    nearest,
    overflow_limit,
    product_residual,
)
from refcomp.oracle.interpreter.scalars import FORMATS
from refcomp.oracle.tensors import arrays
from refcomp.oracle.tensors.arrays import Array

_Rule = Callable[[Approx, Approx, DType], Approx]
_Operator = type[ir.BinaryExpr]


def rounded(
    raw: Approx,
    dtype: DType,
    ulps: float = 0.5,
    reference: np.longdouble = REFERENCE_UNIT,
) -> Approx:
    """Return the legal values of a result in `dtype`.

    Args:
        raw: the result of one operation before it is rounded.
        dtype: type of the result.
        ulps: greatest legal error of the operation itself, in ulps; 0.5: it rounds to nearest.
        reference: relative error of the reference itself.
    """
    unlimited = _rounded_without_overflow(raw, dtype, ulps=ulps, reference=reference)
    return _with_overflow(raw, unlimited, dtype, ulps)


def _rounded_without_overflow(
    raw: Approx,
    dtype: DType,
    *,
    ulps: float = 0.5,
    reference: np.longdouble = REFERENCE_UNIT,
    residual: Array = ZERO,
) -> Approx:
    """Round as if the exponent had no upper limit.

    `residual` is the distance of the exact product of exact operands from the reference. It is the
    error of a contraction where the reference itself needs no rounding.
    """
    value = raw.value
    size = np.abs(value)
    propagated = _propagated(raw)
    local = 2 * ulps * half_ulp(size + propagated, dtype) + size * reference
    if ulps <= 0.5:
        near = nearest(value, dtype)
        error = np.where(
            near == value, residual, np.abs(near - value) + size * reference
        )
        is_exact = propagated == 0
        local = np.where(is_exact, np.fmin(local, error), local)
        keeps_sign = raw.keeps_sign | is_exact | (size > propagated * GUARD)
    else:
        keeps_sign = size > (propagated + local) * GUARD
    error = np.where(np.isfinite(value), propagated + local, ZERO)
    is_known = np.isfinite(propagated)
    error = np.where(is_known, error, INFINITY)
    return replace(raw, value=value, error=error, keeps_sign=keeps_sign & is_known)


def _propagated(raw: Approx) -> Array:
    return np.where(np.isnan(raw.error), INFINITY, raw.error)


def _with_overflow(raw: Approx, result: Approx, dtype: DType, ulps: float) -> Approx:
    """Make infinite what must overflow, and infinities legal for what may overflow.

    A correctly rounded result overflows where `raw` reaches the limit, another one where `result`
    does. Returns `result` itself if nothing can overflow.
    """
    value = raw.value
    size = np.abs(value)
    limit = overflow_limit(dtype)
    propagated = _propagated(raw)
    reach = propagated if ulps <= 0.5 else result.error
    reach = reach + size * REFERENCE_UNIT
    is_known = np.isfinite(value) & np.isfinite(propagated)
    may_overflow = is_known & (size + reach >= limit)
    if not np.any(may_overflow):
        return result
    overflows = may_overflow & (size - reach >= limit)
    may_overflow &= ~overflows
    high = where_bit(may_overflow & (value + reach >= limit), PLUS_INF)
    low = where_bit(may_overflow & (reach - value >= limit), MINUS_INF)
    return replace(
        result,
        value=np.where(overflows, np.copysign(INFINITY, value), value),
        error=np.where(overflows, ZERO, result.error),
        others=result.others | high | low,
    )


# Operators.


def binary(node: _Operator, a: Approx, b: Approx, dtype: DType) -> Approx:
    """Return the result of a binary node on operands of `dtype`."""
    if node in _COMPARES:
        return over_cases(lambda x, y: _compare(node, x, y, dtype), a, b)
    if dtype.is_float:
        return _on_floats(node, a, b, dtype)
    value = arrays.OPERATORS[node](a.value, b.value)
    undecided = ~(a.is_exact & b.is_exact)
    if node in (ir.And, ir.Or):
        deciding = node is ir.Or  # this value decides, whatever the other operand is
        a_decides = a.is_exact & (a.value == deciding)
        b_decides = b.is_exact & (b.value == deciding)
        decided = a_decides | b_decides
        truth = np.where(decided, deciding, value)
        return unknown_truth(truth, undecided & ~decided)
    return unknown(value, undecided, dtype)


def _on_floats(node: _Operator, a: Approx, b: Approx, dtype: DType) -> Approx:
    def rule(x: Approx, y: Approx) -> Approx:
        return _FLOATS[node](x, y, dtype)

    result = over_cases(rule, a, b)
    if a.contracted is None and b.contracted is None:
        return result
    if node in (ir.Add, ir.Sub):
        # Of two products, one is contracted into their sum.
        pairs = (
            (a, (a.unrounded, b)),
            (b, (a, b.unrounded)),
        )
        for product, operands in pairs:
            if product.contracted is not None:
                unrounded = product.contracted.value
                overflows = (product.others != 0) | (product.value != unrounded)
                fused = over_cases(rule, *operands)
                result = join(result, fused, overflows & np.isfinite(unrounded))
    return _keeping_products(node, a, b, result)


# Operands on the left, and on the right, that leave any other operand as it is.
_IDENTITIES: dict[_Operator, tuple[float | None, float | None]] = {
    ir.Mul: (1.0, 1.0),
    ir.Div: (None, 1.0),
    ir.Add: (-0.0, -0.0),  # -0.0 + 0.0 is 0.0
    ir.Sub: (None, 0.0),
}


def _keeping_products(node: _Operator, a: Approx, b: Approx, result: Approx) -> Approx:
    """Let a sum contract products that `node` leaves as they are."""
    left, right = _IDENTITIES.get(node, (None, None))
    kept = [
        (a, _is_exactly(b, right)),
        (b, _is_exactly(a, left)),
    ]
    if node in (ir.Min, ir.Max):
        same_value = a.unrounded.value == b.unrounded.value
        same_error = a.unrounded.error == b.unrounded.error
        kept = [(a, same_value & same_error)]
    for operand, where in kept:
        if operand.contracted is not None and np.any(where):
            unrounded = pick(where, operand.contracted, result.unrounded)
            result = replace(result, contracted=unrounded)
    return result


def _is_exactly(a: Approx, number: float | None) -> Array:
    """Return where `a` is `number`, with its sign, and nothing else."""
    if number is None:
        return FALSE
    is_equal = a.value == number
    same_sign = a.is_negative == np.signbit(number)
    return reduce(and_, [a.is_exact, a.others == 0, is_equal, same_sign])


_COMPARES = (
    ir.EQ,
    ir.NE,
    ir.LT,
    ir.LE,
    ir.GT,
    ir.GE,
)


def _compare(node: _Operator, a: Approx, b: Approx, dtype: DType) -> Approx:
    truth = arrays.OPERATORS[node](a.value, b.value)
    undecided = ~(a.is_exact & b.is_exact)
    if dtype.is_float and np.any(undecided):
        a_low, a_high = ends(a)
        b_low, b_high = ends(b)
        # Intervals that only touch decide two comparisons each.
        below = a_high < b_low
        above = a_low > b_high
        if node in (ir.GT, ir.LE):
            below = a_high <= b_low
        if node in (ir.LT, ir.GE):
            above = a_low >= b_high
        a_is_nan = a.is_nan & ~a.is_unbounded
        b_is_nan = b.is_nan & ~b.is_unbounded
        undecided = undecided & ~(below | above | a_is_nan | b_is_nan)
    return unknown_truth(truth, undecided)


def _scaled(size: Array, error: Array) -> Array:
    """Return |size| * error; 0 for an exact operand, even if `size` is infinite."""
    scaled = np.abs(size) * error
    return np.where(error == 0, ZERO, scaled)


def not_zero(a: Approx) -> Array:
    """Return where no legal value is 0 or has the other sign."""
    return a.absolute > a.error * MARGIN


def _same_sign(a: Approx, b: Approx) -> Array:
    """Return where no two legal values have different signs."""
    same_sign = a.is_negative == b.is_negative
    return reduce(and_, [a.keeps_sign, b.keeps_sign, same_sign])


def _add(a: Approx, b: Approx, dtype: DType) -> Approx:
    return rounded(sum_of(a, b), dtype)


def sum_of(a: Approx, b: Approx) -> Approx:
    """Return the sum before it is rounded."""
    return Approx(
        value=a.value + b.value,
        error=a.error + b.error,
        doubtful=a.doubtful | b.doubtful,
        magnitude=a.magnitude + b.magnitude,
        keeps_sign=_same_sign(a, b),
    )


def _subtract(a: Approx, b: Approx, dtype: DType) -> Approx:
    return _add(a, replace(b, value=-b.value), dtype)


def _multiply(a: Approx, b: Approx, dtype: DType) -> Approx:
    raw = product_of(a, b)
    residual = ZERO
    if dtype.bits == 64:  # Products of narrower types are exact in WIDE.
        residual = product_residual(a.value, b.value, raw.value)
    unlimited = _rounded_without_overflow(raw, dtype, residual=np.abs(residual))
    result = _with_overflow(raw, unlimited, dtype, 0.5)
    if result is unlimited:
        return result
    return replace(result, contracted=unlimited)


def product_of(a: Approx, b: Approx) -> Approx:
    """Return the product before it is rounded."""
    value = a.value * b.value
    error = _scaled(a.value, b.error) + _scaled(b.value, a.error)
    error = error + a.error * b.error
    keeps_sign = a.keeps_sign & b.keeps_sign
    others = NO_OTHERS
    infinite = np.isinf(a.value) | np.isinf(b.value)
    if np.any(infinite):
        infinite = infinite & ~a.is_unbounded & ~b.is_unbounded
        error = np.where(infinite, ZERO, error)
        # Infinity times an interval with 0 is NaN, or an infinity whose sign may be known.
        has_error = ~(a.is_exact & b.is_exact)
        meets_zero = infinite & has_error & ~(not_zero(a) & not_zero(b))
        is_known = keeps_sign & ~np.isnan(value)
        infinities = np.where(is_known, code_of(value), PLUS_INF | MINUS_INF)
        others = np.where(meets_zero, infinities | NAN, NO_OTHERS)
    doubtful = a.doubtful | b.doubtful
    return Approx(
        value=value,
        error=error,
        doubtful=doubtful,
        magnitude=a.magnitude * b.magnitude,
        others=others,
        keeps_sign=keeps_sign,
    )


def _divide(a: Approx, b: Approx, dtype: DType) -> Approx:
    size = b.absolute
    value = a.value / b.value
    least_divisor = size - b.error
    scaled = a.error + _scaled(value, b.error)
    error = np.where(least_divisor > 0, scaled / least_divisor, INFINITY)
    is_exact = np.isinf(a.value) & not_zero(b) | (scaled == 0)
    error = np.where(is_exact, ZERO, error)
    raw = Approx(
        value=value,
        error=error,
        doubtful=a.doubtful | b.doubtful | np.isinf(error),
        magnitude=a.magnitude / size * (b.magnitude / size),
        keeps_sign=a.keeps_sign & b.keeps_sign,
    )
    result = rounded(raw, dtype)
    may_be_pole = ~b.is_exact & ~not_zero(b)
    if np.any(may_be_pole | np.isinf(error)):
        return _at_pole(a, b, result, dtype)
    return result


def _at_pole(a: Approx, b: Approx, result: Approx, dtype: DType) -> Approx:
    """Make quotients infinite whose divisor is 0, or so small that they must overflow.

    0 / 0 may be NaN.
    """
    least_dividend = a.absolute - a.error
    least = least_dividend / (b.absolute + b.error)
    overflows = least * WIDE(1 - 2.0**-40) >= overflow_limit(dtype)
    overflows &= result.is_unbounded
    is_negative = a.is_negative != b.is_negative
    either = ~(a.keeps_sign & b.keeps_sign)
    other_infinity = np.where(is_negative, PLUS_INF, MINUS_INF)
    other_zero = np.where(is_negative, PLUS_ZERO, MINUS_ZERO)
    may_be_pole = ~b.is_exact & ~not_zero(b)
    of_zero = (a.value == 0) & a.is_exact & may_be_pole
    others = np.where(overflows & either, other_infinity, NO_OTHERS)
    others |= np.where(of_zero & either, other_zero, NO_OTHERS)
    others |= where_bit(of_zero, NAN)
    infinity = np.where(is_negative, -INFINITY, INFINITY)
    return replace(
        result,
        value=np.where(overflows, infinity, result.value),
        error=np.where(overflows, ZERO, result.error),
        doubtful=np.where(overflows, a.doubtful | b.doubtful, result.doubtful),
        others=result.others | others,
    )


def _remainder(a: Approx, b: Approx, dtype: DType) -> Approx:
    """Return fmod, which is exact but jumps where the quotient passes a whole number."""
    value = np.fmod(a.value, b.value)
    whole = np.trunc(a.value / b.value)
    continuous = not_zero(b)
    for i, j in _CORNERS:
        dividend = a.value + i * a.error
        divisor = b.value + j * b.error
        continuous = continuous & (np.trunc(dividend / divisor) == whole)
    is_exact = a.is_exact & b.is_exact
    propagated = a.error + _scaled(whole, b.error)
    anywhere = np.abs(value) + b.absolute + b.error
    error = np.where(not_zero(b), anywhere, INFINITY)
    error = np.where(continuous, propagated, error)
    error = np.where(is_exact, ZERO, error)
    doubtful = a.doubtful | b.doubtful | ~(is_exact | continuous)
    raw = Approx(
        value=value,
        error=error,
        doubtful=doubtful,
        magnitude=np.abs(value),
        keeps_sign=a.keeps_sign,
    )
    return rounded(raw, dtype)


_CORNERS = (
    (-1, -1),
    (-1, 1),
    (1, -1),
    (1, 1),
)


def _extremum(node: _Operator, a: Approx, b: Approx, _dtype: DType) -> Approx:
    """Return Min or Max, which never rounds.

    The error is that of the operand which is the result, or the greater one if both may be it.
    """
    value = arrays.OPERATORS[node](a.value, b.value)
    result = pick(value == a.value, a, b)
    reach = a.error + b.error
    apart = np.abs(a.value - b.value) > reach * MARGIN
    error = np.maximum(a.error, b.error)
    error = np.where(apart, result.error, error)
    # NaN wins, whatever the other operand is; nothing is apart from it.
    a_is_nan = a.is_nan & a.is_exact
    b_is_nan = b.is_nan & b.is_exact
    return Approx(
        value=value,
        error=np.where(a_is_nan | b_is_nan, ZERO, error),
        doubtful=np.where(apart, result.doubtful, a.doubtful | b.doubtful),
        magnitude=result.magnitude,
        keeps_sign=np.where(apart, result.keeps_sign, _same_sign(a, b)),
    )


_FLOATS: dict[_Operator, _Rule] = {
    ir.Add: _add,
    ir.Sub: _subtract,
    ir.Mul: _multiply,
    ir.Div: _divide,
    ir.Mod: _remainder,
    ir.Min: partial(_extremum, ir.Min),
    ir.Max: partial(_extremum, ir.Max),
}


def choose(condition: Approx, yes: Approx, no: Approx) -> Approx:
    """Return Select: where the condition is undecided, both branches are legal."""
    taken = pick(condition.value, yes, no)
    undecided = ~condition.is_exact
    if not np.any(undecided):
        return taken
    return join(taken, pick(condition.value, no, yes), undecided)


def convert(a: Approx, source: DType, target: DType) -> Approx:
    """Return Cast. Any integer is legal where a float may be truncated to either of two."""
    return over_cases(lambda x: _converted(x, source, target), a)


def _converted(a: Approx, source: DType, target: DType) -> Approx:
    if target.is_float:
        wide = a.value.astype(WIDE)
        magnitude = np.abs(wide)
        if source.is_float:
            magnitude = a.magnitude
            if target == source:
                return a
            if _is_contained(source, target):
                return replace(a, contracted=None)
        raw = Approx(
            value=wide,
            error=a.error,
            doubtful=a.doubtful,
            magnitude=magnitude,
            keeps_sign=a.keeps_sign,
        )
        return rounded(raw, target)
    has_error = ~a.is_exact
    if target.is_bool:
        not_false = a.absolute > a.error
        truth = np.not_equal(a.value, 0)
        return unknown_truth(truth, has_error & ~not_false)
    if not source.is_float:
        value = arrays.convert(a.value, target)
        return unknown(value, has_error, target)
    # A legal value is a number of the source: it lies between the ends rounded to that.
    value, low, high = (
        arrays.convert(nearest(point, source), target) for point in (a.value, *ends(a))
    )
    decided = (low == value) & (high == value)
    return unknown(value, has_error & ~decided, target)


def _is_contained(source: DType, target: DType) -> bool:
    """Return True if each number of the float type `source` is one of `target`."""
    source_digits, source_least, source_greatest = FORMATS[source.kind, source.bits]
    digits, least, greatest = FORMATS[target.kind, target.bits]
    subnormals_fit = least - digits <= source_least - source_digits
    return digits >= source_digits and subnormals_fit and greatest >= source_greatest
