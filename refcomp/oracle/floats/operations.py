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

from dataclasses import replace
from functools import reduce
from operator import and_

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.oracle.floats.arithmetic import FLOAT_RULES
from refcomp.oracle.floats.legal_values import (
    Approx,
    ends,
    exact,
    join,
    over_cases,
    pick,
    unknown,
    unknown_truth,
)
from refcomp.oracle.floats.rounded_results import rounded
from refcomp.oracle.floats.rounding import FALSE, WIDE, ZERO, nearest
from refcomp.oracle.interpreter.scalars import FORMATS
from refcomp.oracle.tensors import arrays
from refcomp.oracle.tensors.arrays import Array

_Operator = type[ir.BinaryExpr]


def binary(node: _Operator, a: Approx, b: Approx, dtype: DType) -> Approx:
    """Return the result of a binary node on operands of `dtype`."""
    if node in _COMPARES:
        return over_cases(lambda x, y: _compare(node, x, y, dtype), a, b)
    if dtype.is_float:
        return _on_floats(node, a, b, dtype)
    value = arrays.OPERATORS[node](a.value, b.value)
    if a.is_given and b.is_given:
        is_truth = node in (ir.And, ir.Or)
        return Approx(value, ZERO, FALSE, ZERO) if is_truth else exact(value, dtype)
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
        return FLOAT_RULES[node](x, y, dtype)

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
    if a.is_given and b.is_given:
        return Approx(truth, ZERO, FALSE, ZERO)
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


def choose(condition: Approx, yes: Approx, no: Approx) -> Approx:
    """Return Select: where the condition is undecided, both branches are legal."""
    taken = pick(condition.value, yes, no)
    if condition.is_given:
        return taken
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
        if a.is_given:
            return exact(value, target)
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
