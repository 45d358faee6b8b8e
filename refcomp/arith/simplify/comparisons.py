"""Comparisons of integers: decided if the facts permit that, else brought to one normal form.

One side is subtracted from the other, so that shared terms cancel. The difference is divided by the
common divisor of its coefficients. It is written with positive terms only, as in `i * 4 + j < n`
and `1 <= i + j`. Upper bounds are strict and lower bounds are not, so that equal conditions read
equally. This needs exact sides. If a side may wrap, only == and != cancel shared terms.
"""

from __future__ import annotations

from refcomp.arith.linear import Sum, Terms, number, wrapped
from refcomp.arith.simplify.matching import Application, Rewriter
from refcomp.arith.simplify.pattern import compile_rule
from refcomp.arith.simplify.rules import SIGNS
from refcomp.foundation.dtype import DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import EQ, GE, GT, LE, LT, NE, Broadcast, Expr, Ramp

# A comparison: its class, its left and right side.
Sides = tuple[type[Expr], Expr, Expr]
_SumSides = tuple[type[Expr], Sum, Sum]


def normal_form(engine: Rewriter, cls: type[Expr], a: Expr, b: Expr) -> Sides | bool:
    """Return the truth of `cls(a, b)` for scalar integers, or else its normal form."""
    if cls is GT or cls is GE:
        cls = LT if cls is GT else LE
        a, b = b, a
    dtype = a.dtype
    x = engine.bounds.exact_sum(a)
    y = engine.bounds.exact_sum(b)
    if x is None or y is None:
        return _of_congruence(engine, cls, a, b)
    difference = x.plus(y, -1)
    if cls is LT or cls is LE:
        # Over the integers x <= y is x < y + 1.
        less = difference if cls is LT else difference.shift(-1)
        answer = _inequality(engine, less, dtype)
    else:
        answer = _equality(engine, cls, difference)
    if isinstance(answer, bool):
        return answer
    normal_cls, left, right = answer
    is_exact = engine.bounds.is_exact
    if not (is_exact(left, dtype) and is_exact(right, dtype)):
        return cls, a, b
    build = engine.table.build
    return normal_cls, build(left, dtype), build(right, dtype)


def _of_congruence(engine: Rewriter, cls: type[Expr], a: Expr, b: Expr) -> Sides | bool:
    """Return the normal form of a comparison whose sides may wrap.

    Such sides are equal if and only if their difference is 0 modulo 2^bits.
    """
    if cls not in (EQ, NE):
        return cls, a, b
    dtype = a.dtype
    x = engine.table.sum_of(a)
    y = engine.table.sum_of(b)
    difference = wrapped(x.plus(y, -1), dtype)
    residue = engine.bounds.modular_of_sum(difference).wrapped(dtype.bits)
    if not residue.contains(0):
        return cls is NE
    if difference.is_const:
        is_equal = difference.const % (1 << dtype.bits) == 0
        return is_equal == (cls is EQ)
    # Without this test the recursion would not end: it goes on only while terms cancel.
    if difference.length == x.length + y.length:
        return cls, a, b
    left, right = _equal_sides(difference)
    build = engine.table.build
    return normal_form(engine, cls, build(left, dtype), build(right, dtype))


def _inequality(engine: Rewriter, total: Sum, dtype: DType) -> _SumSides | bool:
    """Return the truth of total < 0, or else its normal form."""
    sign = engine.bounds.interval_of_sum(total)
    if sign.is_at_most(-1) or sign.is_at_least(0):
        return sign.is_at_most(-1)
    if engine.is_nonnegative(total.scale(-1).shift(-1)):
        return True
    if engine.is_nonnegative(total):
        return False
    application = Application(engine, compile_rule(SIGNS[0]), dtype)
    while (smaller := application.rewrite_sum(total)) is not None:
        total = smaller
    left, right = _positive_parts(total)
    if left.is_const:
        return LE, number(total.const + 1), right
    if right.is_const:
        return LT, left, number(-total.const)
    if total.const == -1:
        return LE, left, right
    if total.const < 0:
        return LT, left, right.shift(-total.const)
    return LT, left.shift(total.const), right


def _equality(engine: Rewriter, cls: type[Expr], total: Sum) -> _SumSides | bool:
    """Return the truth of total == 0 (or != 0, as `cls` says), or else its normal form."""
    interval = engine.bounds.interval_of_sum(total)
    if interval.is_point:
        return (interval.low == 0) == (cls is EQ)
    if (
        not interval.contains(0)
        or not engine.bounds.modular_of_sum(total).contains(0)
        or engine.is_nonnegative(total.shift(-1))
        or engine.is_nonnegative(total.scale(-1).shift(-1))
    ):
        return cls is NE
    divisor = total.divisor
    # A multiple of the divisor plus a constant that is not a multiple is never 0.
    if total.const % divisor:
        return cls is NE
    terms = {monomial: k // divisor for monomial, k in total.terms.items()}
    left, right = _equal_sides(Sum(terms, total.const // divisor))
    return cls, left, right


def _positive_parts(total: Sum) -> tuple[Sum, Sum]:
    """Return (left, right) with total == left - right + const, all coefficients positive."""
    left: Terms = {}
    right: Terms = {}
    for monomial, k in total.terms.items():
        if k > 0:
            left[monomial] = k
        else:
            right[monomial] = -k
    return Sum(left), Sum(right)


def _equal_sides(total: Sum) -> tuple[Sum, Sum]:
    """Return (left, right) without negative terms, equal if and only if total == 0."""
    left, right = _positive_parts(total)
    if left.is_const:
        return right, number(total.const)
    if right.is_const or total.const < 0:
        return left, right.shift(-total.const)
    return left.shift(total.const), right


def decide_vectors(engine: Rewriter, cls: type[Expr], a: Expr, b: Expr) -> bool | None:
    """Return the truth of an inequality in all lanes; None if it is unknown or not the same.

    The difference of two ramps is linear in the lane, so that the first and the last lane decide.
    """
    ends_of_a = _ends(engine, a)
    ends_of_b = _ends(engine, b)
    if ends_of_a is None or ends_of_b is None or cls in (EQ, NE):
        return None
    firsts, lasts = zip(ends_of_a, ends_of_b, strict=True)
    first = as_int(engine.make(cls, *firsts))
    last = as_int(engine.make(cls, *lasts))
    if first is None or first != last:
        return None
    return bool(first)


def _ends(engine: Rewriter, vector: Expr) -> tuple[Expr, Expr] | None:
    """Return the first and the last lane of a vector in which no lane wraps."""
    if isinstance(vector, Broadcast):
        return vector.value, vector.value
    if not isinstance(vector, Ramp):
        return None
    dtype = vector.base.dtype
    first = engine.table.sum_of(vector.base)
    stride = engine.table.sum_of(vector.stride)
    last = first.plus(stride, vector.lanes - 1)
    is_exact = engine.bounds.is_exact
    if not (is_exact(first, dtype) and is_exact(last, dtype)):
        return None
    return vector.base, engine.table.build(last, dtype)
