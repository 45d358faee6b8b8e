"""Applying one rule to one node: match the pattern, decide the condition, build the result.

A value is a representative, or a Sum for a part of a sum, or an int for a constant. Where a rule
of the INTEGER theory looks into a sum, or computes with one, that sum must be exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign, gcd
from typing import Any, Protocol, cast

from refcomp.arith.bounds import Bounds
from refcomp.arith.constants import fold_integers
from refcomp.arith.linear import Sum, SumTable, is_summable, number
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
Binding = dict[str, Value]


class Rewriter(Protocol):
    """What the application of a rule needs of the engine."""

    @property
    def table(self) -> SumTable: ...
    @property
    def bounds(self) -> Bounds: ...
    def make(self, cls: type[Any], *args: Any) -> Expr: ...
    def finish_sum(self, total: Sum, dtype: DType) -> Expr: ...
    def is_nonnegative(self, total: Sum) -> bool: ...


class Inexact(Exception):
    """A sum may wrap, so that a rule about integers says nothing of it."""


class Application:
    """One rule applied to operands of one dtype, by one engine."""

    def __init__(self, engine: Rewriter, compiled: Compiled, dtype: DType) -> None:
        self._engine, self._table, self._compiled = engine, engine.table, compiled
        self._is_integer = compiled.rule.theory == INTEGER
        self._dtype = dtype.element if compiled.rule.theory == VECTOR else dtype

    def rewrite(self, args: tuple[Any, ...]) -> Expr | None:
        """What a node with operands `args` becomes; None where the rule does not apply."""
        for binding in self._match_all(self._compiled.before.args, args, {}):
            try:
                if all(
                    self._holds(condition, binding)
                    for condition in self._compiled.where
                ):
                    return self._result(binding, args[0].dtype.lanes)
            except Inexact:
                continue
        return None

    def rewrite_sum(self, total: Sum) -> Sum | None:
        """The Sum that the left side of a rule of SIGNS becomes for `total`."""
        for binding in self._match(self._compiled.before.args[0], total, {}):
            try:
                if all(
                    self._holds(condition, binding)
                    for condition in self._compiled.where
                ):
                    after = self._compiled.after
                    assert isinstance(after, Op)
                    return self._sum(self._evaluate(after.args[0], binding))
            except Inexact:
                continue
        return None

    # Matching

    def _match_all(
        self, patterns: tuple[Pattern, ...], values: tuple[Any, ...], binding: Binding
    ) -> Iterator[Binding]:
        """Right operands first, as divisors decide how sums are split."""
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
            total = self._exact_sum(value)
            yield from self._match_sum(Op(Add, (pattern, Number(0))), total, binding)
        else:
            yield from self._match_node(pattern, value, binding)

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

    def _match_node(
        self, pattern: Op, value: Value, binding: Binding
    ) -> Iterator[Binding]:
        if isinstance(value, Sum):
            atom = value.sole_atom()
            value = 0 if atom is None else self._table.expr(atom)
        if type(value) is pattern.cls:
            names = cast(Any, pattern.cls).__match_args__
            args = tuple(getattr(value, name) for name in names)
            yield from self._match_all(pattern.args, args, binding)

    def _match_sum(
        self, pattern: Op, total: Sum | None, binding: Binding
    ) -> Iterator[Binding]:
        if total is None:
            return
        part, rest = pattern.args
        if isinstance(part, Op) and part.cls is Mul:
            factor, multiplier = part.args
            if isinstance(factor, Name):
                splits = self._splits(total, multiplier, binding)
                yield from self._match_splits(
                    (factor, multiplier, rest), splits, binding
                )
            else:
                splits = self._terms(total)
                yield from self._match_splits(
                    (factor, multiplier, rest), splits, binding
                )
        else:
            splits = (
                (atom, k, others) for atom, k, others in self._terms(total) if k == 1
            )
            yield from self._match_splits((part, Number(1), rest), splits, binding)

    def _match_splits(
        self,
        patterns: tuple[Pattern, Pattern, Pattern],
        splits: Iterator[tuple[Value, Value, Value]],
        binding: Binding,
    ) -> Iterator[Binding]:
        for split in splits:
            yield from self._match_all(patterns, split, binding)

    def _terms(self, total: Sum) -> Iterator[tuple[Value, int, Value]]:
        """(atom, k, rest) with total == atom * k + rest."""
        for monomial, k in total.terms.items():
            if len(monomial) == 1:
                others = {m: f for m, f in total.terms.items() if m != monomial}
                yield self._table.expr(monomial[0]), k, Sum(others, total.const)

    def _splits(
        self, total: Sum, multiplier: Pattern, binding: Binding
    ) -> Iterator[tuple[Value, Value, Value]]:
        """(x, m, y) with total == x * m + y and x not zero."""
        assert isinstance(multiplier, Name)
        if multiplier.name in binding:
            yield from self._splits_by(total, binding[multiplier.name])
            return
        bound = [value for value in binding.values() if isinstance(value, int)]
        candidates = {abs(k) for k in total.terms.values()}
        candidates |= {gcd(k, value) for k in candidates for value in bound} | {
            total.divisor
        }
        for candidate in sorted(candidates - {0, 1}, reverse=True):
            yield from self._splits_by(total, candidate)

    def _splits_by(
        self, total: Sum, divisor: Value
    ) -> Iterator[tuple[Value, Value, Value]]:
        whole = self._exact_sum(divisor)
        if whole is None or (whole.is_const and whole.const == 0):
            return
        if whole.is_const:
            x, y = total.split(whole.const)
        else:
            x, y = self._split_symbolic(total, divisor, whole)
        if x.terms or x.const:
            yield x, divisor, y

    def _split_symbolic(
        self, total: Sum, divisor: Value, whole: Sum
    ) -> tuple[Sum, Sum]:
        if len(whole.terms) == 1 and not whole.const:
            ((factors, k),) = whole.terms.items()
            return split_by_product(total, factors, k)
        if isinstance(divisor, Expr):
            x, y = total.split_factor(self._table.serial(divisor))
            if x.terms or x.const:
                return x, y
        first, k = next(iter(whole.terms.items()))
        times = total.terms.get(first, 0) // k
        rest = total.plus(whole, -times)
        return (
            (number(times), rest)
            if len(rest.terms) < len(total.terms)
            else (Sum(), total)
        )

    # Values

    def _has_sum(self, value: Value) -> bool:
        return isinstance(value, Sum) or (
            isinstance(value, Expr) and is_summable(value.dtype)
        )

    def _sum(self, value: Value) -> Sum:
        """The value as a Sum; raises Inexact where the rule needs more than a congruence."""
        total = self._exact_sum(value)
        if total is None:
            raise Inexact
        return total

    def _exact_sum(self, value: Value) -> Sum | None:
        if isinstance(value, int):
            return number(value)
        if isinstance(value, Sum):
            return value
        bounds = self._engine.bounds
        return (
            bounds.exact_sum(value) if self._is_integer else self._table.sum_of(value)
        )

    def _constant(self, value: Any) -> int | None:
        if isinstance(value, Broadcast):
            value = value.value
        if isinstance(value, IntImm):
            return value.value
        if isinstance(value, Sum):
            return value.const if value.is_const else None
        return value if isinstance(value, int) else None

    def _is_number(self, expected: int | float | bool, value: Any) -> bool:
        if isinstance(expected, float):
            inner = value.value if isinstance(value, Broadcast) else value
            return isinstance(inner, FloatImm) and _is_same_float(inner.value, expected)
        constant = self._constant(value)
        if constant is None:
            return False
        is_bool = isinstance(value, Expr) and value.dtype.is_bool
        if is_bool or isinstance(expected, bool):
            return is_bool and isinstance(expected, bool) and constant == expected
        return (constant - expected) % (1 << self._dtype.bits) == 0

    def _is_same(self, a: Value, b: Value) -> bool:
        if a is b or (isinstance(a, int) and isinstance(b, int)):
            return a is b or bool(a == b)
        if not (self._has_sum(a) and self._has_sum(b)):
            return False
        x = self._exact_sum(a)
        y = self._exact_sum(b)
        return x is not None and y is not None and x.equals(y)

    # Conditions and results

    def _holds(self, condition: Op, binding: Binding) -> bool:
        a, b = (self._evaluate(arg, binding) for arg in condition.args)
        if isinstance(a, int) and isinstance(b, int):
            return bool(fold_integers(condition.cls, a, b, I64))
        difference = self._sum(b).plus(self._sum(a), -1)
        if condition.cls is LT:
            return self._engine.is_nonnegative(difference.shift(-1))
        if condition.cls is LE:
            return self._engine.is_nonnegative(difference)
        is_unequal = self._engine.is_nonnegative(difference.shift(-1)) or (
            self._engine.is_nonnegative(difference.scale(-1).shift(-1))
        )
        return condition.cls is NE and is_unequal

    def _evaluate(self, pattern: Pattern, binding: Binding) -> Value:
        if isinstance(pattern, Name):
            return binding[pattern.name]
        if isinstance(pattern, Number):
            return self._literal(pattern.value)
        if pattern.cls in (Broadcast, Ramp):
            *scalars, lanes = (self._evaluate(arg, binding) for arg in pattern.args)
            return self._engine.make(pattern.cls, *map(self._expr, scalars), lanes)
        args = [self._evaluate(arg, binding) for arg in pattern.args]
        constants = [arg for arg in args if isinstance(arg, int)]
        if len(constants) == len(args):
            return self._fold(pattern.cls, *constants)
        if pattern.cls in (Add, Sub) and all(self._is_part_of_sum(arg) for arg in args):
            return self._sum(args[0]).plus(
                self._sum(args[1]), 1 if pattern.cls is Add else -1
            )
        if pattern.cls is Mul and all(self._is_part_of_sum(arg) for arg in args):
            return self._sum(args[0]).times(self._sum(args[1]))
        return self._engine.make(pattern.cls, *(self._operand(arg) for arg in args))

    def _fold(self, cls: type[Any], a: int, b: int) -> int:
        folded = fold_integers(cls, a, b, I64)
        assert folded is not None
        return folded

    def _is_part_of_sum(self, value: Value) -> bool:
        return isinstance(value, int) or self._has_sum(value)

    def _literal(self, value: int | float | bool) -> Value:
        if isinstance(value, bool):
            return self._table.constant(value, BOOL)
        assert isinstance(value, int)
        return value

    def _operand(self, value: Value) -> Expr:
        """The value as an operand of a node that is no sum: exact, in the INTEGER theory."""
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

    def _result(self, binding: Binding, lanes: int) -> Expr:
        value = self._expr(self._evaluate(self._compiled.after, binding))
        is_literal = isinstance(value, IntImm) and lanes > 1
        return self._table.make(Broadcast, value, lanes) if is_literal else value


def split_by_product(total: Sum, factors: tuple[int, ...], k: int) -> tuple[Sum, Sum]:
    """(x, y) with total == k * product(factors) * x + y."""
    quotient = Sum()
    rest = Sum({}, total.const)
    for monomial, coefficient in total.terms.items():
        remaining = _without(monomial, factors)
        if remaining is None or coefficient % k:
            rest.terms[monomial] = coefficient
        else:
            part = (
                Sum({remaining: coefficient // k})
                if remaining
                else number(coefficient // k)
            )
            quotient = quotient.plus(part)
    return quotient, rest


def _without(
    monomial: tuple[int, ...], factors: tuple[int, ...]
) -> tuple[int, ...] | None:
    remaining = list(monomial)
    for factor in factors:
        if factor not in remaining:
            return None
        remaining.remove(factor)
    return tuple(remaining)


def _is_same_float(a: float, b: float) -> bool:
    return a == b and copysign(1.0, a) == copysign(1.0, b)
