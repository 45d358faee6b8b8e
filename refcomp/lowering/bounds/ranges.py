"""Symbolic ranges: all values that an index takes while some of its loops run.

    i * 4 + j + r,  j in 0 .. 3, r in 0 .. 2   ->   from i * 4 to i * 4 + 5, at most 5 apart

Ends are expressions of the variables that stay fixed. A range holds all values and may hold more:
where an operand occurs twice, or behind a remainder. What depends on memory has no range (None).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from refcomp.arith import Facts, interval, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    EQ,
    LE,
    Add,
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
from refcomp.ir.rewrite import memoised, variables_in, walk
from refcomp.te.tensor import TensorRead

# No machine holds as many elements. A greater bound comes from the limits of i64, not from a loop.
_MAX_COUNT = 1 << 40


@dataclass(frozen=True, slots=True)
class Range:
    """All values from `low` to `high`; `span` is a constant that high - low never exceeds, None
    when no such constant is known."""

    low: Expr
    high: Expr
    span: int | None


def upper_bound(expr: Expr, facts: Facts) -> int | None:
    """Return a constant that `expr` never exceeds, None if its dtype alone bounds it."""
    high = interval(expr, facts).high
    return None if high is None or high >= _MAX_COUNT else high


def least(a: Expr, b: Expr, facts: Facts) -> Expr:
    """The lesser of two ends: one of them where that is proved, else their minimum."""
    if prove(LE(a, b), facts):
        return a
    return b if prove(LE(b, a), facts) else simplify(Min(a, b), facts)


def greatest(a: Expr, b: Expr, facts: Facts) -> Expr:
    """The greater of two ends: one of them where that is proved, else their maximum."""
    if prove(LE(b, a), facts):
        return a
    return b if prove(LE(a, b), facts) else simplify(Max(a, b), facts)


def union(a: Range, b: Range, facts: Facts) -> Range:
    """A range that holds the values of both."""
    low, high = least(a.low, b.low, facts), greatest(a.high, b.high, facts)
    return Range(low, high, span_between(low, high, facts))


def intersect(a: Range, b: Range, facts: Facts) -> Range:
    """What both hold, of two ranges that hold all values: `a` with ends of `b` that are proved to
    be tighter."""
    low = b.low if prove(LE(a.low, b.low), facts) else a.low
    high = b.high if prove(LE(b.high, a.high), facts) else a.high
    if low is a.low and high is a.high:
        return a
    spans = [s for s in (a.span, span_between(low, high, facts)) if s is not None]
    return Range(low, high, min(spans, default=None))


def span_between(low: Expr, high: Expr, facts: Facts) -> int | None:
    """A constant that high - low never exceeds, None when none is known."""
    plain = upper_bound(simplify(high - low, facts), facts)
    if isinstance(plain, int) and plain <= 0:
        return plain
    bounds = [plain, *_spans_of_choices(low, high, facts)]
    return min((bound for bound in bounds if bound is not None), default=None)


def _spans_of_choices(low: Expr, high: Expr, facts: Facts) -> Iterator[int | None]:
    """Bounds found by looking at both sides of an end that is an extreme: min(a, b) - low is no
    more than either difference, max(a, b) - low no more than the greater one."""
    end, shift = _without_constant(high)
    if isinstance(end, Min | Max):
        yield _combined(
            end, Min, [span_between(low, e + shift, facts) for e in (end.a, end.b)]
        )
    end, shift = _without_constant(low)
    if isinstance(end, Min | Max):
        yield _combined(
            end, Max, [span_between(e + shift, high, facts) for e in (end.a, end.b)]
        )


def _combined(end: Expr, bounded: type[Expr], spans: list[int | None]) -> int | None:
    known = [span for span in spans if span is not None]
    if isinstance(end, bounded):
        return min(known, default=None)
    return max(known) if len(known) == len(spans) else None


def _without_constant(end: Expr) -> tuple[Expr, int]:
    if isinstance(end, Add) and isinstance(end.b, IntImm):
        return end.a, end.b.value
    return end, 0


class RangeFinder:
    """Finds ranges while the variables of `running` take the values of their ranges, None for those
    of which nothing is known. `facts` hold wherever they do."""

    def __init__(self, running: Mapping[Var, Range | None], facts: Facts) -> None:
        self.running, self.facts = dict(running), facts
        self._of: Callable[[Expr], Range | None]
        self._of = memoised(lambda recurse, expr: self._range(expr))

    def of(self, expr: Expr) -> Range | None:
        """The range of an i64 expression, None when it has no ends that are known here."""
        return self._of(expr)

    def _range(self, expr: Expr) -> Range | None:
        if isinstance(expr, Var) and expr in self.running:
            return self.running[expr]
        if self._is_fixed(expr):
            return Range(expr, expr, 0)
        case = _CASES.get(type(expr))
        return None if case is None or expr.dtype != I64 else case(self, expr)

    def _is_fixed(self, expr: Expr) -> bool:
        if any(isinstance(node, TensorRead | BufferLoad) for node in walk(expr)):
            return False
        return all(var not in self.running for var in variables_in(expr))

    def _both(self, expr: Any) -> tuple[Range, Range] | None:
        a, b = self.of(expr.a), self.of(expr.b)
        return None if a is None or b is None else (a, b)

    def made(self, low: Expr, high: Expr, span: int | None) -> Range:
        """A range of simplified ends."""
        return Range(simplify(low, self.facts), simplify(high, self.facts), span)


def _sum_of(finder: RangeFinder, expr: Any) -> Range | None:
    both = finder._both(expr)
    if both is None:
        return None
    a, b = both
    span = None if a.span is None or b.span is None else a.span + b.span
    if isinstance(expr, Add):
        return finder.made(a.low + b.low, a.high + b.high, span)
    return finder.made(a.low - b.high, a.high - b.low, span)


def _product(finder: RangeFinder, expr: Any) -> Range | None:
    both = finder._both(expr)
    if both is None:
        return None
    a, b = both if both[1].span == 0 else both[::-1]
    if b.span != 0:
        return _product_of_two(finder, a, b)
    signs = interval(b.low, finder.facts)
    span, factor = None, as_int(b.low)
    if factor is not None and a.span is not None:
        span = a.span * abs(factor)
    if signs.is_at_least(0):
        return finder.made(a.low * b.low, a.high * b.low, span)
    return (
        finder.made(a.high * b.low, a.low * b.low, span)
        if signs.is_at_most(0)
        else None
    )


def _product_of_two(finder: RangeFinder, a: Range, b: Range) -> Range | None:
    """Of two factors that both change, where none is negative."""
    if not all(interval(factor.low, finder.facts).is_at_least(0) for factor in (a, b)):
        return None
    low, high = (
        simplify(a.low * b.low, finder.facts),
        simplify(a.high * b.high, finder.facts),
    )
    return Range(low, high, span_between(low, high, finder.facts))


def _fixed_divisor(finder: RangeFinder, expr: Any) -> tuple[Range, Expr] | None:
    """The range divided and the divisor, if that is fixed and positive."""
    both = finder._both(expr)
    if both is None or both[1].span != 0:
        return None
    divided, divisor = both[0], both[1].low
    is_floored = isinstance(expr, FloorDiv | FloorMod)
    if not (is_floored or interval(divided.low, finder.facts).is_at_least(0)):
        return None  # a truncated quotient is a floored one where nothing is negative
    return (
        (divided, divisor) if interval(divisor, finder.facts).is_at_least(1) else None
    )


def _quotient(finder: RangeFinder, expr: Any) -> Range | None:
    parts = _fixed_divisor(finder, expr)
    if parts is None:
        return None
    a, divisor = parts
    least_divisor = interval(divisor, finder.facts).low or 1
    span = None if a.span is None else -(-a.span // least_divisor)
    return finder.made(FloorDiv(a.low, divisor), FloorDiv(a.high, divisor), span)


def _remainder(finder: RangeFinder, expr: Any) -> Range | None:
    parts = _fixed_divisor(finder, expr)
    if parts is None:
        return None
    a, divisor = parts
    if prove(EQ(FloorDiv(a.low, divisor), FloorDiv(a.high, divisor)), finder.facts):
        return finder.made(FloorMod(a.low, divisor), FloorMod(a.high, divisor), a.span)
    constant = as_int(divisor)
    span = None if constant is None else constant - 1
    return finder.made(IntImm(0, I64), divisor - 1, span)


def _extreme(finder: RangeFinder, expr: Any) -> Range | None:
    both = finder._both(expr)
    if both is None:
        return None
    a, b = both
    choose = least if isinstance(expr, Min) else greatest
    low, high = choose(a.low, b.low, finder.facts), choose(a.high, b.high, finder.facts)
    span = None if a.span is None or b.span is None else max(a.span, b.span)
    return Range(low, high, span)


def _choice(finder: RangeFinder, expr: Any) -> Range | None:
    a, b = finder.of(expr.true_value), finder.of(expr.false_value)
    return None if a is None or b is None else union(a, b, finder.facts)


_CASES: dict[type[Expr], Callable[[RangeFinder, Any], Range | None]] = {
    Add: _sum_of,
    Sub: _sum_of,
    Mul: _product,
    FloorDiv: _quotient,
    FloorMod: _remainder,
    Div: _quotient,
    Mod: _remainder,
    Min: _extreme,
    Max: _extreme,
    Select: _choice,
    IfThenElseExpr: _choice,
}
