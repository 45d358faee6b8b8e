"""What is known at a place in the program: ranges of variables, and conditions that hold.

Facts are immutable; `bind`, `nonnegative`, `assume`, `let` and `define` return extended ones, and
all that stem from one `Facts()` share a table of expressions and so must be used for one function.

The rule on overflow: **i64 index arithmetic of in-range values does not overflow.** It is applied
where, and only where, an i64 sum is made of variables declared by `bind` or `nonnegative` (and of
constants, quotients, minima and conversions of these), has a side without a known bound, and
multiplies by constants below 2^32 only (larger ones are made for wrapping: hashes, generators).
Sums with two known bounds are exact if these fit, in every integer type; all others wrap, and
only rules that hold modulo 2^bits are applied to them. Facts never speak of memory, as it may
change between two reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from refcomp.arith.bounds import Bounds, range_of_dtype
from refcomp.arith.intern import LOOP_RANK, SYMBOL_RANK
from refcomp.arith.interval import Interval
from refcomp.arith.linear import Key, Sum, SumTable, direction, is_summable
from refcomp.arith.modular import Modular
from refcomp.arith.simplify.engine import Simplifier
from refcomp.foundation.dtype import I64, DType
from refcomp.ir.expr import (
    EQ,
    LE,
    LT,
    NE,
    And,
    Expr,
    FloorMod,
    IntImm,
    Not,
    Or,
    Var,
)

_MOST_CONJUNCTS = 64  # of one condition; the rest is not used
_MOST_ASSUMED = 24  # latest inequalities that proofs may subtract


class Facts:
    """Facts that hold at one place. See the module docstring."""

    def __init__(self) -> None:
        self.table = SumTable()
        self.lower: dict[int, Sum] = {}
        self.upper: dict[int, Sum] = {}
        self.assumed: tuple[Sum, ...] = ()
        self.truths: dict[int, bool] = {}
        self.values: dict[int, Expr] = {}
        self._ranges: dict[int, Interval] = {}
        self._indices: frozenset[int] = frozenset()
        self._known: dict[Key, Interval] = {}
        self._residues: dict[Key, Modular] = {}
        self._extended: dict[tuple[object, ...], Facts] = {}

    @cached_property
    def bounds(self) -> Bounds:
        """Intervals and remainders under these facts."""
        return Bounds(
            self.table, self._ranges, self._indices, self._known, self._residues
        )

    @cached_property
    def simplifier(self) -> Simplifier:
        """Simplifies under these facts."""
        return Simplifier(self)

    def bind(self, var: Var, minimum: Expr, extent: Expr) -> Facts:
        """`var`, of an integer type, is a loop variable in [minimum, minimum + extent).

        As the loop's body is entered, the extent is at least 1.
        """
        self.table.declare(var, LOOP_RANK)
        low = self.simplifier.representative(minimum)
        count = self.simplifier.representative(extent)
        return self._extended_once(Facts._bind, var, low, count)

    def _bind(self, var: Var, minimum: Expr, extent: Expr) -> Facts:
        facts = self._in_range(var, minimum, extent, is_index=True)
        return facts._with_least(self._symbolic(extent), 1)

    def nonnegative(self, var: Var) -> Facts:
        """`var`, of an integer type, is a shape symbol, and so at least 0."""
        self.table.declare(var, SYMBOL_RANK)
        high = None if var.dtype == I64 else var.dtype.max_value
        return self._with_range(var, Interval(0, high), is_index=True)

    def let(self, var: Var, value: Expr) -> Facts:
        """`var` is bound to `value`, and stays in the program."""
        value = self.simplifier.representative(value)
        if not is_summable(var.dtype):
            return self
        is_index = self.bounds.is_index(value)
        return self._in_range(var, value, self.table.constant(1, var.dtype), is_index)

    def define(self, var: Var, value: Expr) -> Facts:
        """`var` is written as `value` from now on; `value` must read no memory that may change."""
        facts = self._copy()
        facts.values[id(self.table.intern(var))] = self.simplifier.representative(value)
        return facts

    def assume(self, condition: Expr) -> Facts:
        """`condition`, a bool, holds. Vectors and what is read from memory are not used."""
        return self._extended_once(
            Facts._assume, self.simplifier.representative(condition)
        )

    def _assume(self, condition: Expr) -> Facts:
        facts = self
        for conjunct, truth in self._conjuncts(condition):
            facts = facts._assume_one(conjunct, truth)
        return facts

    def _extended_once(self, extend: Callable[..., Facts], *args: Expr) -> Facts:
        """`extend(self, *args)`, the same object for the same representatives: who looks at one
        place from several loops around it finds there what was proved before."""
        key = (extend, *map(id, args))
        if key not in self._extended:
            self._extended[key] = extend(self, *args)
        return self._extended[key]

    def _conjuncts(self, condition: Expr) -> list[tuple[Expr, bool]]:
        found: list[tuple[Expr, bool]] = []
        stack = [(condition, True)]
        while stack and len(found) < _MOST_CONJUNCTS:
            item, truth = stack.pop()
            if isinstance(item, Not):
                stack.append((item.a, not truth))
            elif isinstance(item, And if truth else Or):
                stack += [(item.b, truth), (item.a, truth)]
            elif item.dtype.lanes == 1 and not self.table.reads_memory(item):
                found.append((item, truth))
        return found

    def _assume_one(self, condition: Expr, truth: bool) -> Facts:
        if isinstance(condition, IntImm):
            return self
        facts = self._copy()
        facts.truths[id(condition)] = truth
        negated = self.simplifier.make(Not, condition)
        facts.truths[id(negated)] = not truth
        if not truth:
            condition = negated
        if not isinstance(condition, LT | LE | EQ | NE) or not is_summable(
            condition.a.dtype
        ):
            return facts
        a = self._symbolic(condition.a)
        b = self._symbolic(condition.b)
        if a is None or b is None:
            return facts
        return facts._assume_difference(condition, b.plus(a, -1))

    def _assume_difference(
        self, condition: LT | LE | EQ | NE, difference: Sum
    ) -> Facts:
        """A comparison of exact sides, of which `difference` is the right less the left."""
        if isinstance(condition, LT):
            return self._with_least(difference, 1)
        if isinstance(condition, LE):
            return self._with_least(difference, 0)
        if isinstance(condition, NE):
            return self._with_unequal(difference)
        facts = self._with_least(difference, 0)._with_least(difference.scale(-1), 0)
        return facts._with_residue(condition.a, condition.b)

    def _with_unequal(self, difference: Sum) -> Facts:
        interval = self.bounds.interval_of_sum(difference)
        if interval.low == 0:
            return self._with_least(difference, 1)
        return self._with_least(difference.scale(-1), 1) if interval.high == 0 else self

    def _with_residue(self, a: Expr, b: Expr) -> Facts:
        """x mod c == r."""
        if not (
            isinstance(a, FloorMod)
            and isinstance(a.b, IntImm)
            and isinstance(b, IntImm)
        ):
            return self
        total = self._symbolic(a.a)
        if total is None or a.b.value == 0 or total.is_const:
            return self
        key, factor = direction(total)
        if abs(factor) != 1:
            return self
        facts = self._copy()
        facts._residues[key] = Modular(abs(a.b.value), b.value - total.const).scale(
            factor
        )
        return facts

    def _with_least(self, total: Sum | None, least: int) -> Facts:
        """`total`, over the integers, is at least `least`."""
        if total is None or total.is_const:
            return self
        total = total.shift(-least)
        key, factor = direction(total)
        facts = self._copy()
        if factor > 0:
            bound = Interval(-(total.const // factor), None)
        else:
            bound = Interval(None, total.const // -factor)
        facts._known[key] = self._known.get(key, Interval()).intersect(bound)
        if len(total.terms) > 1:
            facts.assumed = (total, *self.assumed)[:_MOST_ASSUMED]
        return facts._with_positive_factors(total)

    def _with_positive_factors(self, total: Sum) -> Facts:
        """A product of factors that are not negative is positive only if each is."""
        ((monomial, k),) = total.terms.items() if len(total.terms) == 1 else (((), 0),)
        if k <= 0 or total.const >= 0 or len(monomial) < 2:
            return self
        factors = [self.table.expr(atom) for atom in monomial]
        facts = self
        if all(self.bounds.interval(factor).is_at_least(0) for factor in factors):
            for factor in factors:
                facts = facts._with_least(self._symbolic(factor), 1)
        return facts

    def _symbolic(self, expr: Expr) -> Sum | None:
        """The exact Sum of a simplified expression, if it reads no memory."""
        if self.table.reads_memory(expr):
            return None
        return self.bounds.exact_sum(expr)

    def _in_range(self, var: Var, minimum: Expr, extent: Expr, is_index: bool) -> Facts:
        lengths = self.bounds.interval(extent).shift(-1).maximum(Interval.point(0))
        first = self.bounds.interval(minimum)
        values = Interval(first.low, (first + lengths).high)
        low = self._symbolic(minimum)
        count = self._symbolic(extent)
        last = None if low is None or count is None else low.plus(count).shift(-1)
        if last is not None:
            exact_high = self.bounds.interval_of_sum(last).high
            values = values.intersect(Interval(None, exact_high))
        facts = self._with_range(var, _within(values, var.dtype, is_index), is_index)
        serial = self.table.serial(self.table.intern(var))
        if low is not None and not low.is_const:
            facts.lower[serial] = low
        if last is not None and not last.is_const:
            facts.upper[serial] = last
        return facts

    def _with_range(self, var: Var, values: Interval, is_index: bool) -> Facts:
        key = id(self.table.intern(var))
        facts = self._copy()
        facts._ranges[key] = self._ranges.get(key, Interval()).intersect(values)
        if is_index:
            facts._indices = self._indices | {key}
        return facts

    def _copy(self) -> Facts:
        facts = Facts.__new__(Facts)
        facts.table, facts.assumed, facts._indices = (
            self.table,
            self.assumed,
            self._indices,
        )
        facts.lower = dict(self.lower)
        facts.upper = dict(self.upper)
        facts.truths = dict(self.truths)
        facts.values = dict(self.values)
        facts._ranges = dict(self._ranges)
        facts._known = dict(self._known)
        facts._residues = dict(self._residues)
        facts._extended = {}
        return facts


def _within(values: Interval, dtype: DType, is_index: bool) -> Interval:
    """The interval cut to `dtype`; an end of i64 itself says nothing, and is no bound."""
    full = range_of_dtype(dtype)
    if not (is_index and dtype == I64):
        return full.intersect(values)
    low = (
        values.low if values.low is not None and values.low > dtype.min_value else None
    )
    high = (
        values.high
        if values.high is not None and values.high < dtype.max_value
        else None
    )
    return Interval(low, high)
