"""Application of one rule to one node: match the pattern, decide the condition, build the result.

A value is a representative, a Sum for a part of a sum, or an int for a constant. If a rule of the
INTEGER theory looks into a sum, or computes with one, that sum must be exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign, gcd
from typing import Any, Protocol

from refcomp.arith.bounds import Bounds
from refcomp.arith.constants import fold_integers
from refcomp.arith.linear import (
    Monomial,
    Sum,
    SumTable,
    is_summable,
    number,
    scaled_monomial,
)
from refcomp.arith.simplify.pattern import Compiled, Name, Number, Op, Pattern
from refcomp.arith.simplify.rules import INTEGER, VECTOR
from refcomp.foundation.dtype import BOOL, I64, DType
from refcomp.ir.expr import (
    LE,
    LT,
    NE,
    Add,
    Broadcast,
    Expr,
    FloatImm,
    IntImm,
    Mul,
    Ramp,
    Sub,
)

Value = Expr | Sum | int
Binding = dict[str, Value]  # name in a pattern -> the value it stands for
# (x, m, y) with sum == x * m + y, matched against the patterns of x, m and y
_Split = tuple[Value, Value, Value]


class Rewriter(Protocol):
    """The part of the engine that the application of a rule uses."""

    @property
    def table(self) -> SumTable: ...
    @property
    def bounds(self) -> Bounds: ...
    def make(self, cls: type[Expr], *args: Any) -> Expr: ...
    def finish_sum(self, total: Sum, dtype: DType) -> Expr: ...
    def is_nonnegative(self, total: Sum) -> bool: ...


class Inexact(Exception):
    """A sum may wrap, so that a rule about unbounded integers does not hold for it."""


class Application:
    """One rule, applied to operands of one dtype."""

    def __init__(self, engine: Rewriter, compiled: Compiled, dtype: DType) -> None:
        self._engine = engine
        self._table = engine.table
        self._compiled = compiled
        self._is_integer = compiled.rule.theory == INTEGER
        self._dtype = dtype.element if compiled.rule.theory == VECTOR else dtype
        self._lanes = dtype.lanes

    def rewrite(self, args: tuple[Value, ...]) -> Expr | None:
        """Return the result for a node with operands `args`; None if the rule does not apply."""
        for binding in self._match_all(self._compiled.before.args, args, {}):
            try:
                if self._all_hold(binding):
                    value = self._expr(self._evaluate(self._compiled.after, binding))
                    if self._lanes > 1 and isinstance(value, IntImm):
                        return self._table.make(Broadcast, value, self._lanes)
                    return value
            except Inexact:
                continue
        return None

    def rewrite_sum(self, total: Sum) -> Sum | None:
        """Return the new left side of a comparison, by a rule of SIGNS; None if it does not apply.

        `total` is the left side, and the right side is 0.
        """
        after = self._compiled.after
        assert isinstance(after, Op)
        before = self._compiled.before.args[0]
        for binding in self._match(before, total, {}):
            try:
                if self._all_hold(binding):
                    return self._sum(self._evaluate(after.args[0], binding))
            except Inexact:
                continue
        return None

    # Matching. Each generator yields all extensions of `binding` under which a value matches.

    def _match_all(
        self, patterns: tuple[Pattern, ...], values: tuple[Value, ...], binding: Binding
    ) -> Iterator[Binding]:
        """Match right operands first, because divisors decide how sums are split."""
        if not patterns:
            yield binding
            return
        for extended in self._match(patterns[-1], values[-1], binding):
            yield from self._match_all(patterns[:-1], values[:-1], extended)

    def _match(
        self, pattern: Pattern, value: Value, binding: Binding
    ) -> Iterator[Binding]:
        if isinstance(pattern, Name):
            yield from self._match_name(pattern, value, binding)
        elif isinstance(pattern, Number):
            if self._is_number(pattern.value, value):
                yield binding
        elif pattern.cls is Add and self._has_sum(value):
            yield from self._match_sum(pattern, self._exact_sum(value), binding)
        elif pattern.cls is Mul and self._has_sum(value):
            padded = Op(Add, (pattern, Number(0)))
            yield from self._match_sum(padded, self._exact_sum(value), binding)
        else:
            if isinstance(value, Sum):
                atom = value.sole_atom()
                value = 0 if atom is None else self._table.expr(atom)
            if type(value) is pattern.cls:
                names = pattern.cls.__match_args__
                args = tuple([getattr(value, name) for name in names])
                yield from self._match_all(pattern.args, args, binding)

    def _match_name(
        self, pattern: Name, value: Value, binding: Binding
    ) -> Iterator[Binding]:
        if pattern.is_const:
            constant = self._constant(value)
            if constant is None:
                return
            value = constant
        if pattern.name not in binding:
            yield {**binding, pattern.name: value}
        elif self._is_same(binding[pattern.name], value):
            yield binding

    def _match_sum(
        self, pattern: Op, total: Sum | None, binding: Binding
    ) -> Iterator[Binding]:
        """Match `x * m + y` or `x + y` with a sum, in every way in which it has that form."""
        if total is None:
            return
        part, rest = pattern.args
        splits: Iterator[_Split]
        if isinstance(part, Op) and part.cls is Mul:
            factor, multiplier = part.args
            patterns = (factor, multiplier, rest)
            if isinstance(factor, Name):
                splits = self._splits(total, multiplier, binding)
            else:
                splits = self._terms(total)
        else:
            patterns = (part, Number(1), rest)
            splits = (split for split in self._terms(total) if split[1] == 1)
        for split in splits:
            yield from self._match_all(patterns, split, binding)

    def _terms(self, total: Sum) -> Iterator[tuple[Value, int, Value]]:
        """Yield (atom, k, rest) for each term that is a multiple of one atom."""
        for monomial, k in total.terms.items():
            if len(monomial) == 1:
                others = {m: f for m, f in total.terms.items() if m != monomial}
                atom = self._table.expr(monomial[0])
                yield atom, k, Sum(others, total.const)

    def _splits(
        self, total: Sum, multiplier: Pattern, binding: Binding
    ) -> Iterator[_Split]:
        """Yield splits by the value of `multiplier`, or by all candidates if it has none yet."""
        assert isinstance(multiplier, Name)
        if multiplier.name in binding:
            yield from self._splits_by(total, binding[multiplier.name])
            return
        # A multiplier must divide a coefficient. Of these, only the coefficients are tried, and
        # their common divisors with each other and with constants that are bound already.
        bound = [value for value in binding.values() if isinstance(value, int)]
        candidates = {abs(k) for k in total.terms.values()}
        candidates |= {gcd(k, value) for k in candidates for value in bound}
        candidates.add(total.divisor)
        for candidate in sorted(candidates - {0, 1}, reverse=True):
            yield from self._splits_by(total, candidate)

    def _splits_by(self, total: Sum, divisor: Value) -> Iterator[_Split]:
        """Yield the split of `total` by a multiplier, if its x is not 0."""
        whole = self._exact_sum(divisor)
        if whole is None or not whole.length:
            return
        if whole.is_const:
            x, y = total.split(whole.const)
        else:
            x, y = self._split_symbolic(total, divisor, whole)
        if x.length:
            yield x, divisor, y

    def _split_symbolic(
        self, total: Sum, divisor: Value, whole: Sum
    ) -> tuple[Sum, Sum]:
        """Return (x, y) with total == x * divisor + y; `whole` is the Sum of the divisor."""
        if whole.length == 1:
            ((factors, k),) = whole.terms.items()
            return split_by_product(total, factors, k)
        if isinstance(divisor, Expr):
            x, y = total.split_factor(self._table.serial(divisor))
            if x.length:
                return x, y
        # The terms of the divisor may be scattered: subtract as often as its first term permits.
        first, k = next(iter(whole.terms.items()))
        times = total.terms.get(first, 0) // k
        rest = total.plus(whole, -times)
        if len(rest.terms) < len(total.terms):
            return number(times), rest
        return Sum(), total

    # Values

    def _has_sum(self, value: Value) -> bool:
        if isinstance(value, Sum):
            return True
        return isinstance(value, Expr) and is_summable(value.dtype)

    def _sum(self, value: Value) -> Sum:
        """Return the value as a Sum; raise Inexact if that would be a mere congruence."""
        total = self._exact_sum(value)
        if total is None:
            raise Inexact
        return total

    def _exact_sum(self, value: Value) -> Sum | None:
        if isinstance(value, int):
            return number(value)
        if isinstance(value, Sum):
            return value
        if self._is_integer:
            return self._engine.bounds.exact_sum(value)
        return self._table.sum_of(value)

    def _constant(self, value: Value) -> int | None:
        if isinstance(value, Broadcast):
            value = value.value
        if isinstance(value, IntImm):
            return value.value
        if isinstance(value, Sum):
            return value.const if value.is_const else None
        return value if isinstance(value, int) else None

    def _is_number(self, expected: int | float | bool, value: Value) -> bool:
        if isinstance(expected, float):
            inner = value.value if isinstance(value, Broadcast) else value
            if not isinstance(inner, FloatImm) or inner.value != expected:
                return False
            # x + 0.0 is not x for x = -0.0, so that the sign of a zero counts.
            return copysign(1.0, inner.value) == copysign(1.0, expected)
        constant = self._constant(value)
        if constant is None:
            return False
        is_bool = isinstance(value, Expr) and value.dtype.is_bool
        if is_bool or isinstance(expected, bool):
            return is_bool and isinstance(expected, bool) and constant == expected
        return (constant - expected) % (1 << self._dtype.bits) == 0

    def _is_same(self, a: Value, b: Value) -> bool:
        if a is b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        if not (self._has_sum(a) and self._has_sum(b)):
            return False
        x = self._exact_sum(a)
        y = self._exact_sum(b)
        return x is not None and y is not None and x.equals(y)

    # Conditions and results

    def _all_hold(self, binding: Binding) -> bool:
        return all(self._holds(part, binding) for part in self._compiled.where)

    def _holds(self, condition: Op, binding: Binding) -> bool:
        """Return True if a condition holds: constants are computed with, the rest is proved."""
        a, b = [self._evaluate(arg, binding) for arg in condition.args]
        if isinstance(a, int) and isinstance(b, int):
            return bool(fold_integers(condition.cls, a, b, I64))
        difference = self._sum(b).plus(self._sum(a), -1)
        is_nonnegative = self._engine.is_nonnegative
        if condition.cls is LT:
            return is_nonnegative(difference.shift(-1))
        if condition.cls is LE:
            return is_nonnegative(difference)
        if condition.cls is not NE:
            return False
        # a != b if a < b or b < a is proved.
        if is_nonnegative(difference.shift(-1)):
            return True
        return is_nonnegative(difference.scale(-1).shift(-1))

    def _evaluate(self, pattern: Pattern, binding: Binding) -> Value:
        if isinstance(pattern, Name):
            return binding[pattern.name]
        if isinstance(pattern, Number):
            if isinstance(pattern.value, bool):
                return self._table.constant(pattern.value, BOOL)
            assert isinstance(pattern.value, int)
            return pattern.value
        cls = pattern.cls
        args = [self._evaluate(arg, binding) for arg in pattern.args]
        if cls is Broadcast or cls is Ramp:
            *scalars, lanes = args
            return self._engine.make(cls, *map(self._expr, scalars), lanes)
        constants = [arg for arg in args if isinstance(arg, int)]
        if len(constants) == len(args):
            left, right = constants
            folded = fold_integers(cls, left, right, I64)
            assert folded is not None
            return folded
        is_sum = all(isinstance(arg, int) or self._has_sum(arg) for arg in args)
        if is_sum and cls in (Add, Sub, Mul):
            x = self._sum(args[0])
            y = self._sum(args[1])
            if cls is Mul:
                return x.times(y)
            return x.plus(y) if cls is Add else x.plus(y, -1)
        return self._engine.make(cls, *map(self._operand, args))

    def _operand(self, value: Value) -> Expr:
        """Return the value as an operand of a node that is not a sum.

        Operands of the INTEGER theory must be exact.
        """
        if isinstance(value, Expr):
            return value
        is_exact = self._engine.bounds.is_exact
        if self._is_integer and not is_exact(self._sum(value), self._dtype):
            raise Inexact
        return self._expr(value)

    def _expr(self, value: Value) -> Expr:
        if isinstance(value, Expr):
            return value
        if isinstance(value, int):
            return self._table.constant(value, self._dtype)
        return self._engine.finish_sum(value, self._dtype)


def split_by_product(total: Sum, factors: Monomial, k: int) -> tuple[Sum, Sum]:
    """Return (x, y) with total == k * product(factors) * x + y."""
    quotient = Sum()
    rest = Sum({}, total.const)
    for monomial, coefficient in total.terms.items():
        remaining = _without(monomial, factors)
        if remaining is None or coefficient % k:
            rest.terms[monomial] = coefficient
        else:
            quotient = quotient.plus(scaled_monomial(remaining, coefficient // k))
    return quotient, rest


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """Return `monomial` divided by the product of `factors`; None if it is not a multiple."""
    remaining = list(monomial)
    for factor in factors:
        if factor not in remaining:
            return None
        remaining.remove(factor)
    return tuple(remaining)
