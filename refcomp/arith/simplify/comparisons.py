"""Comparisons of integers: decided where facts allow it, else brought to one readable form.

Both sides are subtracted, shared terms cancel, the difference is divided by what its coefficients
share, and is written with positive terms only: `i * 4 + j < n`, `1 <= i + j`. Upper bounds are
strict and lower bounds are not, so that equal conditions read equally. This needs exact sides;
where a side may wrap, only == and != cancel shared terms.
"""

from __future__ import annotations

from typing import Any

from refcomp.arith.linear import Sum, number, wrapped
from refcomp.arith.simplify.matching import Application, Rewriter
from refcomp.arith.simplify.pattern import compile_rule
from refcomp.arith.simplify.rules import SIGNS
from refcomp.foundation.dtype import DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import EQ, GE, GT, LE, LT, NE, Broadcast, Expr, Ramp

Sides = tuple[type[Any], Expr, Expr]
_Answer = bool | tuple[type[Any], Sum, Sum]


def normal_form(engine: Rewriter, cls: type[Any], a: Expr, b: Expr) -> Sides | bool:
    """The truth of `cls(a, b)` for scalar integers, or the comparison it is the same as."""
    if cls in (GT, GE):
        cls, a, b = (LT if cls is GT else LE), b, a
    x = engine.bounds.exact_sum(a)
    y = engine.bounds.exact_sum(b)
    is_exact, dtype = engine.bounds.is_exact, a.dtype
    if x is None or y is None:
        return _of_congruence(engine, cls, a, b)
    answer = _decide(engine, cls, x.plus(y, -1), dtype)
    if isinstance(answer, bool):
        return answer
    cls_of_answer, left, right = answer
    if not (is_exact(left, dtype) and is_exact(right, dtype)):
        return cls, a, b
    return (
        cls_of_answer,
        engine.table.build(left, dtype),
        engine.table.build(right, dtype),
    )


def _decide(engine: Rewriter, cls: type[Any], difference: Sum, dtype: DType) -> _Answer:
    if cls in (LT, LE):
        return _inequality(engine, difference.shift(0 if cls is LT else -1), dtype)
    answer = _equality(engine, difference, dtype)
    if isinstance(answer, bool):
        return answer == (cls is EQ)
    return cls, *answer


def _of_congruence(engine: Rewriter, cls: type[Any], a: Expr, b: Expr) -> Sides | bool:
    """Sides that may wrap: equal where their difference is 0 modulo 2^bits."""
    if cls not in (EQ, NE):
        return cls, a, b
    x = engine.table.sum_of(a)
    y = engine.table.sum_of(b)
    difference = wrapped(x.plus(y, -1), a.dtype)
    residue = engine.bounds.modular_of_sum(difference).wrapped(a.dtype.bits)
    if difference.is_const or not residue.contains(0):
        return (
            difference.const % (1 << a.dtype.bits) == 0 and residue.contains(0)
        ) == (cls is EQ)
    if _length(difference) == _length(x) + _length(y):
        return cls, a, b
    left, right = (
        engine.table.build(side, a.dtype) for side in _equal_sides(difference)
    )
    return normal_form(engine, cls, left, right)


def _length(total: Sum) -> int:
    return len(total.terms) + bool(total.const)


def _inequality(engine: Rewriter, total: Sum, dtype: DType) -> _Answer:
    """total < 0, decided or as two sides."""
    if engine.is_nonnegative(total.scale(-1).shift(-1)):
        return True
    if engine.is_nonnegative(total):
        return False
    rule = compile_rule(SIGNS[0])
    while (smaller := Application(engine, rule, dtype).rewrite_sum(total)) is not None:
        total = smaller
    return _strict_sides(total)


def _equality(engine: Rewriter, total: Sum, dtype: DType) -> bool | tuple[Sum, Sum]:
    """total == 0, decided or as two sides."""
    interval = engine.bounds.interval_of_sum(total)
    if interval.is_point:
        return interval.low == 0
    if not interval.contains(0) or not engine.bounds.modular_of_sum(total).contains(0):
        return False
    if engine.is_nonnegative(total.shift(-1)):
        return False
    if engine.is_nonnegative(total.scale(-1).shift(-1)):
        return False
    if total.const % total.divisor:
        return False
    return _equal_sides(_divided(total, total.divisor))


def _divided(total: Sum, divisor: int) -> Sum:
    return Sum(
        {m: k // divisor for m, k in total.terms.items()}, total.const // divisor
    )


def _parts(total: Sum) -> tuple[Sum, Sum]:
    """(left, right) without constants, all coefficients positive, total == left - right + const."""
    left = {monomial: k for monomial, k in total.terms.items() if k > 0}
    right = {monomial: -k for monomial, k in total.terms.items() if k < 0}
    return Sum(left), Sum(right)


def _strict_sides(total: Sum) -> tuple[type[Any], Sum, Sum]:
    """total < 0 as left < right, or left <= right where that drops a constant."""
    left, right = _parts(total)
    if left.is_const:
        return LE, number(total.const + 1), right
    if right.is_const:
        return LT, left, number(-total.const)
    if total.const == -1:
        return LE, left, right
    if total.const < 0:
        return LT, left, right.shift(-total.const)
    return LT, left.shift(total.const), right


def _equal_sides(total: Sum) -> tuple[Sum, Sum]:
    left, right = _parts(total)
    if left.is_const:
        return right, number(total.const)
    if right.is_const or total.const < 0:
        return left, right.shift(-total.const)
    return left.shift(total.const), right


def decide_vectors(engine: Rewriter, cls: type[Any], a: Expr, b: Expr) -> bool | None:
    """The truth of a comparison in all lanes, where it is the same at both ends of two ramps."""
    ends_of_a = _ends(engine, a)
    ends_of_b = _ends(engine, b)
    if ends_of_a is None or ends_of_b is None or cls in (EQ, NE):
        return None
    ends = zip(ends_of_a, ends_of_b, strict=True)
    answers = {as_int(engine.make(cls, x, y)) for x, y in ends}
    answer_of_all = answers.pop() if len(answers) == 1 else None
    return None if answer_of_all is None else bool(answer_of_all)


def _ends(engine: Rewriter, vector: Expr) -> tuple[Expr, Expr] | None:
    """The first and the last lane; between them lanes change evenly, as nothing wraps."""
    if isinstance(vector, Broadcast):
        return vector.value, vector.value
    if not isinstance(vector, Ramp):
        return None
    dtype = vector.base.dtype
    first = engine.table.sum_of(vector.base)
    last = first.plus(engine.table.sum_of(vector.stride), vector.lanes - 1)
    if not (
        engine.bounds.is_exact(first, dtype) and engine.bounds.is_exact(last, dtype)
    ):
        return None
    return vector.base, engine.table.build(last, dtype)
