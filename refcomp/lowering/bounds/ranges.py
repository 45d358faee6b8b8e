"""Symbolic ranges: all values that an index takes while some of its loops run.

    i * 4 + j + r,  j in 0 .. 3, r in 0 .. 2   ->   from i * 4 to i * 4 + 5, at most 5 apart

The ends are expressions of the variables that stay fixed. A range holds all values of
the index, and may hold more: if an operand occurs twice, or under a remainder. An index
that depends on memory has no range (None).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from refcomp.arith import Facts, interval, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    EQ,
    LE,
    Add,
    BinaryExpr,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    Sub,
    Var,
)
from refcomp.ir.rewrite import memoised, walk
from refcomp.te.tensor import TensorRead

# No machine has memory for as many elements. So a greater bound is not the bound of a
# loop: it follows from the limits of i64.
_MAX_COUNT = 1 << 40


@dataclass(frozen=True, slots=True)
class Range:
    """All values from `low` to `high`."""

    low: Expr
    high: Expr
    # A constant that high - low never exceeds, if one is known.
    span: int | None


def upper_bound(expr: Expr, facts: Facts) -> int | None:
    """Return a constant that `expr` never exceeds, None if only its dtype bounds it."""
    high = interval(expr, facts).high
    return None if high is None or high >= _MAX_COUNT else high


def is_at_most(a: Expr, b: Expr, facts: Facts) -> bool:
    """Return True if a <= b is proved."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value <= b.value
    return a is b or prove(LE(a, b), facts)


def least(a: Expr, b: Expr, facts: Facts) -> Expr:
    """Return the lesser of `a` and `b` if that is proved, else their minimum."""
    if is_at_most(a, b, facts):
        return a
    if is_at_most(b, a, facts):
        return b
    return simplify(Min(a, b), facts)


def greatest(a: Expr, b: Expr, facts: Facts) -> Expr:
    """Return the greater of `a` and `b` if that is proved, else their maximum."""
    if is_at_most(b, a, facts):
        return a
    if is_at_most(a, b, facts):
        return b
    return simplify(Max(a, b), facts)


def union(a: Range, b: Range, facts: Facts) -> Range:
    """Return a range that holds the values of both."""
    low = least(a.low, b.low, facts)
    high = greatest(a.high, b.high, facts)
    return Range(low, high, span_between(low, high, facts))


def intersect(a: Range, b: Range, facts: Facts) -> Range:
    """Return `a` with those ends of `b` that are proved to be tighter.

    Both ranges hold all values of the index, so that the result does, too.
    """
    low = a.low
    high = a.high
    if is_at_most(low, b.low, facts):
        low = b.low
    if is_at_most(b.high, high, facts):
        high = b.high
    if low is a.low and high is a.high:
        return a
    spans = [a.span, span_between(low, high, facts)]
    return Range(low, high, _least_known(spans))


def span_between(low: Expr, high: Expr, facts: Facts) -> int | None:
    """Return a constant that high - low never exceeds, None if none is known."""
    plain = upper_bound(simplify(high - low, facts), facts)
    if plain is not None and plain <= 0:
        return plain
    # If an end is a minimum or a maximum, its operands give more bounds. The difference
    # min(a, b) - low is at most a - low, and at most b - low. The difference
    # max(a, b) - low is at most the greater of the two. For `low`, it is the other way
    # round.
    bounds = [plain]
    end, shift = _without_constant(high)
    if isinstance(end, Min | Max):
        spans = [span_between(low, part + shift, facts) for part in (end.a, end.b)]
        choose = _least_known if isinstance(end, Min) else _greatest
        bounds.append(choose(spans))
    end, shift = _without_constant(low)
    if isinstance(end, Min | Max):
        spans = [span_between(part + shift, high, facts) for part in (end.a, end.b)]
        choose = _least_known if isinstance(end, Max) else _greatest
        bounds.append(choose(spans))
    return _least_known(bounds)


def _least_known(spans: list[int | None]) -> int | None:
    return min((span for span in spans if span is not None), default=None)


def _greatest(spans: list[int | None]) -> int | None:
    """Return the greatest span, None if one is not known."""
    known = [span for span in spans if span is not None]
    return max(known) if len(known) == len(spans) else None


def _without_constant(end: Expr) -> tuple[Expr, int]:
    if isinstance(end, Add) and isinstance(end.b, IntImm):
        return end.a, end.b.value
    return end, 0


def is_equal(a: Expr, b: Expr, facts: Facts) -> bool:
    """Return True if `a` and `b` are proved to be equal."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    return prove(EQ(simplify(a, facts), simplify(b, facts)), facts)


class RangeFinder:
    """Finds ranges of expressions while some variables run.

    Attributes:
        running: each variable that runs, with its range (None: not known).
        facts: what holds wherever the expressions are evaluated.
    """

    def __init__(self, running: Mapping[Var, Range | None], facts: Facts) -> None:
        self.running = dict(running)
        self.facts = facts
        self._of: Callable[[Expr], Range | None]
        self._of = memoised(lambda recurse, expr: self._range(expr))

    def of(self, expr: Expr) -> Range | None:
        """Return the range of an i64 expression, None if it is not known."""
        return self._of(expr)

    def _range(self, expr: Expr) -> Range | None:
        if isinstance(expr, Var) and expr in self.running:
            return self.running[expr]
        is_fixed = not any(
            isinstance(node, TensorRead | BufferLoad) or node in self.running
            for node in walk(expr)
        )
        if is_fixed:
            return Range(expr, expr, 0)
        if expr.dtype != I64:
            return None
        if isinstance(expr, Select | IfThenElseExpr):
            a = self.of(expr.true_value)
            b = self.of(expr.false_value)
            if a is None or b is None:
                return None
            return union(a, b, self.facts)
        case = _CASES.get(type(expr))
        if case is None:
            return None
        assert isinstance(expr, BinaryExpr)
        a = self.of(expr.a)
        b = self.of(expr.b)
        if a is None or b is None:
            return None
        return case(expr, a, b, self.facts)


# One function for each kind of expression, given the ranges of both operands.


def _simplified(low: Expr, high: Expr, span: int | None, facts: Facts) -> Range:
    return Range(simplify(low, facts), simplify(high, facts), span)


def _sum(expr: BinaryExpr, a: Range, b: Range, facts: Facts) -> Range:
    span = None
    if a.span is not None and b.span is not None:
        span = a.span + b.span
    if isinstance(expr, Add):
        return _simplified(a.low + b.low, a.high + b.high, span, facts)
    return _simplified(a.low - b.high, a.high - b.low, span, facts)


def _product(expr: BinaryExpr, a: Range, b: Range, facts: Facts) -> Range | None:
    if b.span != 0:
        a, b = b, a
    signs = interval(b.low, facts)
    if b.span != 0:  # both factors change
        if not signs.is_at_least(0) or not interval(a.low, facts).is_at_least(0):
            return None
        low = simplify(a.low * b.low, facts)
        high = simplify(a.high * b.high, facts)
        return Range(low, high, span_between(low, high, facts))
    factor = as_int(b.low)
    span = None
    if factor is not None and a.span is not None:
        span = a.span * abs(factor)
    # A negative factor exchanges the ends.
    if signs.is_at_least(0):
        return _simplified(a.low * b.low, a.high * b.low, span, facts)
    if signs.is_at_most(0):
        return _simplified(a.high * b.low, a.low * b.low, span, facts)
    return None


def _has_plain_divisor(expr: BinaryExpr, a: Range, b: Range, facts: Facts) -> bool:
    """Return True for a fixed positive divisor and a quotient that is rounded down.

    A truncated quotient is rounded down if the dividend is never negative.
    """
    is_floored = isinstance(expr, FloorDiv | FloorMod)
    if b.span != 0 or not interval(b.low, facts).is_at_least(1):
        return False
    return is_floored or interval(a.low, facts).is_at_least(0)


def _quotient(expr: BinaryExpr, a: Range, b: Range, facts: Facts) -> Range | None:
    if not _has_plain_divisor(expr, a, b, facts):
        return None
    divisor = b.low
    span = None
    if a.span is not None:
        # Rounded up: the range may cross one multiple more than it is long.
        least_divisor = interval(divisor, facts).low or 1
        span = -(-a.span // least_divisor)
    low = FloorDiv(a.low, divisor)
    high = FloorDiv(a.high, divisor)
    return _simplified(low, high, span, facts)


def _remainder(expr: BinaryExpr, a: Range, b: Range, facts: Facts) -> Range | None:
    if not _has_plain_divisor(expr, a, b, facts):
        return None
    divisor = b.low
    first_quotient = FloorDiv(a.low, divisor)
    last_quotient = FloorDiv(a.high, divisor)
    # The remainder only grows while the quotient stays the same.
    if prove(EQ(first_quotient, last_quotient), facts):
        low = FloorMod(a.low, divisor)
        high = FloorMod(a.high, divisor)
        return _simplified(low, high, a.span, facts)
    constant = as_int(divisor)
    span = None if constant is None else constant - 1
    return _simplified(IntImm(0, I64), divisor - 1, span, facts)


def _extreme(expr: BinaryExpr, a: Range, b: Range, facts: Facts) -> Range:
    choose = least if isinstance(expr, Min) else greatest
    low = choose(a.low, b.low, facts)
    high = choose(a.high, b.high, facts)
    span = None
    if a.span is not None and b.span is not None:
        span = max(a.span, b.span)
    return Range(low, high, span)


_Case = Callable[[BinaryExpr, Range, Range, Facts], Range | None]
_CASES: dict[type[Expr], _Case] = {
    Add: _sum,
    Sub: _sum,
    Mul: _product,
    FloorDiv: _quotient,
    FloorMod: _remainder,
    Div: _quotient,
    Mod: _remainder,
    Min: _extreme,
    Max: _extreme,
}
