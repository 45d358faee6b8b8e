"""Computes each operation of the IR on values that are known up to an error.

An Approx (`refcomp.oracle.floats.legal_values`) holds a reference value in more digits than any
dtype of the IR has, and how far a legal value may be from it: one that rounds to nearest after each
operation, or leaves a rounding out (a contraction), and keeps the ulp bounds of
`refcomp.ir.intrinsics`. Errors of operands travel through each operation exactly or upwards.

Why the bounds are sound: each rounding of x adds at most half an ulp of x, which is the unit
roundoff u times |x|, or half the smallest subnormal eta where x is below the normal numbers
(gradual underflow): fl(x) = x (1 + d) + e, |d| <= u, |e| <= eta / 2. Where x is exact, what it
rounds off is known, and taken instead. Errors are kept in WIDE, with 64 digits and a range in which
eta of f64 is an ordinary number. An error is 0 or at least eta / 2, so no product of errors
underflows to 0 there unnoticed, and all roundings of the bounds themselves together are far below
the relative 2^-30 that `refcomp.oracle.floats.error_bounds` adds. Rounding is monotone and keeps 0,
so a result has the sign of what is rounded, or is 0 (`keeps_sign`).

Where a legal result may overflow, the infinity is one more legal value beside the interval
(`others`), and further operations have each combination. A sum may take a product that is not
rounded (`contracted`), and so is finite where the rounded product is infinite. A simplifier may
first remove what leaves a product as it is: a choice, or an operand of 1 or zero. So the results
of these are `contracted`, too.

Integers and bools are exact, or nothing is known of them (error inf). The source is N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2nd edition: section 2.2 (model of rounding, with
the underflow term of section 2.1), section 2.6 (fused multiply-add), section 3.3 (running error
analysis).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.oracle.floats.legal_values import (
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
)
from refcomp.oracle.floats.rounding import (
    REFERENCE_UNIT,
    WIDE,
    half_ulp,
    nearest,
    overflow_limit,
    product_residual,
)
from refcomp.oracle.interpreter.scalars import FORMATS
from refcomp.oracle.tensors import arrays

_Rule = Callable[[Approx, Approx, DType], Approx]


def rounded(
    raw: Approx, dtype: DType, ulps: float = 0.5, reference: Any = REFERENCE_UNIT
) -> Approx:
    """Return what `raw`, the result of one operation, may become in `dtype`: off by `ulps` more.

    `reference` is the relative error with which the reference itself was computed.
    """
    in_any_range = _rounded_in_any_range(raw, dtype, ulps, reference, WIDE(0))
    return _with_overflow(raw, in_any_range, dtype, ulps)


def _rounded_in_any_range(
    raw: Approx, dtype: DType, ulps: float, reference: Any, residual: Any
) -> Approx:
    """Round as if exponents had no upper end. `residual`: how far the exact product of exact
    operands is from the reference; a contraction takes it where it needs no rounding."""
    value, carried = raw.value, np.where(np.isnan(raw.error), WIDE(np.inf), raw.error)
    size = np.abs(value)
    local = 2 * ulps * half_ulp(size + carried, dtype) + size * reference
    keeps_sign: Any = size > (carried + local) * WIDE(1 + 2.0**-50)
    if ulps <= 0.5:
        near = nearest(value, dtype)
        off = np.where(near == value, residual, np.abs(near - value) + size * reference)
        local = np.where(carried == 0, np.fmin(local, off), local)
        keeps_sign = (
            raw.keeps_sign | (size > carried * WIDE(1 + 2.0**-50)) | (carried == 0)
        )
    known = np.isfinite(carried)
    error = np.where(np.isfinite(value), carried + local, WIDE(0))
    error = np.where(known, error, WIDE(np.inf))
    return replace(raw, value=value, error=error, keeps_sign=keeps_sign & known)


def _with_overflow(raw: Approx, result: Approx, dtype: DType, ulps: float) -> Approx:
    """Make infinite what must overflow, and infinity legal for what may. What rounds correctly
    overflows where `raw` reaches the limit, another function where its result does."""
    value, limit = raw.value, overflow_limit(dtype)
    carried = np.where(np.isnan(raw.error), WIDE(np.inf), raw.error)
    size = np.abs(value)
    reach = (carried if ulps <= 0.5 else result.error) + size * REFERENCE_UNIT
    near = np.isfinite(value) & np.isfinite(carried) & (size + reach >= limit)
    if not np.any(near):
        return result
    beyond = near & (size - reach >= limit)
    high, low = (near & ~beyond & (end + reach >= limit) for end in (value, -value))
    others = np.where(high, PLUS_INF, NO_OTHERS) | np.where(low, MINUS_INF, NO_OTHERS)
    return replace(
        result,
        value=np.where(beyond, np.copysign(WIDE(np.inf), value), value),
        error=np.where(beyond, WIDE(0), result.error),
        others=result.others | others,
    )


# Operators.


def binary(node: type[ir.BinaryExpr], a: Approx, b: Approx, dtype: DType) -> Approx:
    """Return the result of a binary node on operands of `dtype`."""
    if node in _COMPARES:
        return over_cases(lambda x, y: _compare(node, x, y, dtype), a, b)
    if dtype.is_float:
        return _of_floats(node, a, b, dtype)
    if node in (ir.And, ir.Or):
        return _logic(node, a, b)
    return unknown(
        arrays.OPERATORS[node](a.value, b.value), (a.error > 0) | (b.error > 0), dtype
    )


def _of_floats(node: type[ir.BinaryExpr], a: Approx, b: Approx, dtype: DType) -> Approx:
    def rule(x: Approx, y: Approx) -> Approx:
        return _FLOATS[node](x, y, dtype)

    result = over_cases(rule, a, b)
    if a.contracted is None and b.contracted is None:
        return result
    if node in (ir.Add, ir.Sub):
        result = _with_contractions(rule, a, b, result)
    return _keeping_products(node, a, b, result)


def _with_contractions(
    rule: Callable[[Approx, Approx], Approx], a: Approx, b: Approx, result: Approx
) -> Approx:
    """Add to the sum `result` what it is with one of its products contracted."""
    for product, operands in ((a, (a.contracted, b)), (b, (a, b.contracted))):
        if product.contracted is not None:  # of two products one is contracted
            overflows = (product.others != 0) | (
                product.value != product.contracted.value
            )
            fused = over_cases(rule, *(x for x in operands if x is not None))
            result = join(
                result, fused, overflows & np.isfinite(product.contracted.value)
            )
    return result


# Operands on the left, and on the right, that leave any other operand as it is.
_IDENTITIES: dict[type[ir.BinaryExpr], tuple[float | None, float | None]] = {
    ir.Mul: (1.0, 1.0),
    ir.Div: (None, 1.0),
    ir.Add: (-0.0, -0.0),  # -0.0 + 0.0 is 0.0
    ir.Sub: (None, 0.0),
}


def _keeping_products(
    node: type[ir.BinaryExpr], a: Approx, b: Approx, result: Approx
) -> Approx:
    """Let a sum take the unrounded products that `node` leaves as they are."""
    left, right = _IDENTITIES.get(node, (None, None))
    kept = [(a, _is_exactly(b, right)), (b, _is_exactly(a, left))]
    if node in (ir.Min, ir.Max):
        x, y = a.unrounded, b.unrounded
        kept = [(a, (x.value == y.value) & (x.error == y.error))]
    unrounded = result.unrounded
    for operand, where in kept:
        if operand.contracted is not None and np.any(where):
            unrounded = pick(where, operand.contracted, unrounded)
    return (
        result
        if unrounded is result.unrounded
        else replace(result, contracted=unrounded)
    )


def _is_exactly(a: Approx, number: float | None) -> Any:
    """Return where `a` is `number`, with its sign, and nothing else."""
    if number is None:
        return np.False_
    is_it = (a.value == number) & (np.signbit(a.value) == np.signbit(number))
    return is_it & (a.error == 0) & (a.others == 0)


_COMPARES = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)


def _compare(node: type[ir.BinaryExpr], a: Approx, b: Approx, dtype: DType) -> Approx:
    truth = arrays.OPERATORS[node](a.value, b.value)
    undecided = (a.error > 0) | (b.error > 0)
    if dtype.is_float and np.any(undecided):
        undecided = undecided & ~_decided(node, a, b)
    return unknown_truth(truth, undecided)


def _decided(node: type[ir.BinaryExpr], a: Approx, b: Approx) -> Any:
    """Return where the ends of both intervals have one answer, or one side is NaN."""
    (a_low, a_high), (b_low, b_high) = ends(a), ends(b)
    below, above = a_high < b_low, a_low > b_high
    if node in (ir.LT, ir.GE):
        above = a_low >= b_high
    if node in (ir.GT, ir.LE):
        below = a_high <= b_low
    nan = (np.isnan(a.value) & np.isfinite(a.error)) | (
        np.isnan(b.value) & np.isfinite(b.error)
    )
    return below | above | nan


def _logic(node: type[ir.BinaryExpr], a: Approx, b: Approx) -> Approx:
    deciding = node is ir.Or  # the value that decides, whatever the other operand is
    settled = ((a.error == 0) & (a.value == deciding)) | (
        (b.error == 0) & (b.value == deciding)
    )
    truth = np.where(settled, deciding, arrays.OPERATORS[node](a.value, b.value))
    return unknown_truth(truth, ~settled & ((a.error > 0) | (b.error > 0)))


def _part(size: Any, error: Any) -> Any:
    """Return |size| * error; 0 for an exact operand, however great `size` is."""
    return np.where(error == 0, WIDE(0), np.abs(size) * error)


def _sum(a: Approx, b: Approx, dtype: DType) -> Approx:
    return rounded(sum_of(a, b), dtype)


def sum_of(a: Approx, b: Approx) -> Approx:
    """Return the sum before it is rounded."""
    return Approx(
        a.value + b.value,
        a.error + b.error,
        a.doubtful | b.doubtful,
        a.magnitude + b.magnitude,
        keeps_sign=a.keeps_sign
        & b.keeps_sign
        & (np.signbit(a.value) == np.signbit(b.value)),
    )


def _difference(a: Approx, b: Approx, dtype: DType) -> Approx:
    return _sum(a, replace(b, value=-b.value), dtype)


def _product(a: Approx, b: Approx, dtype: DType) -> Approx:
    raw = product_of(a, b)
    # Products of narrower types have no more digits than WIDE.
    residual: Any = WIDE(0)
    if dtype.bits == 64:
        residual = np.abs(product_residual(a.value, b.value, raw.value))
    in_any_range = _rounded_in_any_range(raw, dtype, 0.5, REFERENCE_UNIT, residual)
    result = _with_overflow(raw, in_any_range, dtype, 0.5)
    return (
        result if result is in_any_range else replace(result, contracted=in_any_range)
    )


def product_of(a: Approx, b: Approx) -> Approx:
    """Return the product before it is rounded."""
    error = _part(a.value, b.error) + _part(b.value, a.error) + a.error * b.error
    value, keeps_sign = a.value * b.value, a.keeps_sign & b.keeps_sign
    others: Any = NO_OTHERS
    infinite = np.isinf(a.value) | np.isinf(b.value)
    if np.any(infinite):
        infinite = infinite & np.isfinite(a.error) & np.isfinite(b.error)
        error = np.where(infinite, WIDE(0), error)
        # Of infinity and an interval with 0: NaN, or an infinity of a sign that may be known.
        meets_zero = (
            infinite & ((a.error > 0) | (b.error > 0)) & ~(not_zero(a) & not_zero(b))
        )
        is_known = keeps_sign & ~np.isnan(value)
        more = np.where(is_known, code_of(value), PLUS_INF | MINUS_INF) | NAN
        others = np.where(meets_zero, more, NO_OTHERS)
    doubtful = a.doubtful | b.doubtful
    return Approx(value, error, doubtful, a.magnitude * b.magnitude, others, keeps_sign)


def not_zero(a: Approx) -> Any:
    """Return where no legal value is 0, or has another sign."""
    return np.abs(a.value) > a.error * WIDE(1 + 2.0**-40)


def _quotient(a: Approx, b: Approx, dtype: DType) -> Approx:
    value, room = a.value / b.value, np.abs(b.value) - b.error
    reached = a.error + _part(value, b.error)
    error = np.where(room > 0, reached / room, WIDE(np.inf))
    error = np.where(np.isinf(a.value) & not_zero(b) | (reached == 0), WIDE(0), error)
    magnitude = a.magnitude / np.abs(b.value) * (b.magnitude / np.abs(b.value))
    doubtful = a.doubtful | b.doubtful | np.isinf(error)
    keeps_sign = a.keeps_sign & b.keeps_sign
    result = rounded(
        Approx(value, error, doubtful, magnitude, keeps_sign=keeps_sign), dtype
    )
    pole = (b.error > 0) & ~not_zero(b)
    return _at_pole(a, b, result, dtype) if np.any(pole | np.isinf(error)) else result


def _at_pole(a: Approx, b: Approx, result: Approx, dtype: DType) -> Approx:
    """Make quotients infinite whose divisor is 0, or so near to 0 that they must overflow.

    0 / 0 may be NaN.
    """
    least = (np.abs(a.value) - a.error) / (np.abs(b.value) + b.error)
    sure = np.isinf(result.error) & (
        least * WIDE(1 - 2.0**-40) >= overflow_limit(dtype)
    )
    is_negative = np.signbit(a.value) != np.signbit(b.value)
    either = ~(a.keeps_sign & b.keeps_sign)
    others = np.where(
        sure & either, np.where(is_negative, PLUS_INF, MINUS_INF), NO_OTHERS
    )
    of_zero = (a.value == 0) & (a.error == 0) & (b.error > 0) & ~not_zero(b)
    zero = np.where(either, np.where(is_negative, PLUS_ZERO, MINUS_ZERO), NO_OTHERS)
    others |= np.where(of_zero, zero | NAN, NO_OTHERS)
    infinity = np.where(is_negative, -WIDE(np.inf), WIDE(np.inf))
    return replace(
        result,
        value=np.where(sure, infinity, result.value),
        error=np.where(sure, WIDE(0), result.error),
        doubtful=np.where(sure, a.doubtful | b.doubtful, result.doubtful),
        others=result.others | others,
    )


def _remainder(a: Approx, b: Approx, dtype: DType) -> Approx:
    """Return fmod, which is exact but jumps where the quotient passes a whole number."""
    value, whole = np.fmod(a.value, b.value), np.trunc(a.value / b.value)
    quotients = [
        np.trunc((a.value + i * a.error) / (b.value + j * b.error)) for i, j in _CORNERS
    ]
    safe = not_zero(b) & np.logical_and.reduce([end == whole for end in quotients])
    is_exact = (a.error == 0) & (b.error == 0)
    moved = a.error + _part(whole, b.error)
    most = np.where(
        not_zero(b), np.abs(value) + np.abs(b.value) + b.error, WIDE(np.inf)
    )
    error = np.where(is_exact, WIDE(0), np.where(safe, moved, most))
    doubtful = a.doubtful | b.doubtful | ~(is_exact | safe)
    raw = Approx(value, error, doubtful, np.abs(value), keeps_sign=a.keeps_sign)
    return rounded(raw, dtype)


_CORNERS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def _extremum(node: type[ir.BinaryExpr]) -> _Rule:
    def meaning(a: Approx, b: Approx, _dtype: DType) -> Approx:
        """Never rounds: as far off as the operand that it is, or the worse one."""
        value = arrays.OPERATORS[node](a.value, b.value)
        apart = np.abs(a.value - b.value) > (a.error + b.error) * WIDE(1 + 2.0**-40)
        is_a = value == a.value
        error = np.where(is_a, a.error, b.error)
        error = np.where(apart, error, np.maximum(a.error, b.error))
        # NaN wins, whatever the other operand is; nothing is apart from it.
        is_nan = [np.isnan(x.value) & (x.error == 0) for x in (a, b)]
        error = np.where(is_nan[0] | is_nan[1], WIDE(0), error)
        doubtful = np.where(
            apart, np.where(is_a, a.doubtful, b.doubtful), a.doubtful | b.doubtful
        )
        one_sign = (
            a.keeps_sign & b.keeps_sign & (np.signbit(a.value) == np.signbit(b.value))
        )
        keeps_sign = np.where(
            apart, np.where(is_a, a.keeps_sign, b.keeps_sign), one_sign
        )
        magnitude = np.where(is_a, a.magnitude, b.magnitude)
        return Approx(value, error, doubtful, magnitude, keeps_sign=keeps_sign)

    return meaning


_FLOATS: dict[type[ir.BinaryExpr], _Rule] = {
    ir.Add: _sum,
    ir.Sub: _difference,
    ir.Mul: _product,
    ir.Div: _quotient,
    ir.Mod: _remainder,
    ir.Min: _extremum(ir.Min),
    ir.Max: _extremum(ir.Max),
}


def choose(condition: Approx, yes: Approx, no: Approx) -> Approx:
    """Return Select: where the condition is undecided, both branches are legal."""
    taken = pick(condition.value, yes, no)
    undecided = condition.error > 0
    return (
        join(taken, pick(condition.value, no, yes), undecided)
        if np.any(undecided)
        else taken
    )


def convert(a: Approx, source: DType, target: DType) -> Approx:
    """Return Cast. Any integer is legal where a float could be cut off to either of two."""
    return over_cases(lambda x: _converted(x, source, target), a)


def _converted(a: Approx, source: DType, target: DType) -> Approx:
    if target.is_float:
        wide = a.value.astype(WIDE)
        magnitude = a.magnitude if source.is_float else np.abs(wide)
        if source.is_float and _holds(target, source):
            return a if target == source else replace(a, contracted=None)  # exact
        raw = Approx(wide, a.error, a.doubtful, magnitude, keeps_sign=a.keeps_sign)
        return rounded(raw, target)
    if target.is_bool:
        undecided = (a.error > 0) & ~(np.abs(a.value) > a.error)
        return unknown_truth(np.not_equal(a.value, 0), undecided)
    if not source.is_float:
        return unknown(arrays.convert(a.value, target), a.error > 0, target)
    # A legal value is a number of the source: it lies between the ends rounded to that.
    points = (nearest(point, source) for point in (a.value, *ends(a)))
    value, low, high = (arrays.convert(point, target) for point in points)
    return unknown(value, (a.error > 0) & ((low != value) | (high != value)), target)


def _holds(target: DType, source: DType) -> bool:
    """Return True if each number of the float type `source` is one of `target`."""
    (digits, least, greatest), (fewer, above, below) = (
        FORMATS[dtype.kind, dtype.bits] for dtype in (target, source)
    )
    least_subnormal = above - fewer + 1
    return (
        digits >= fewer and least - digits + 1 <= least_subnormal and greatest >= below
    )
