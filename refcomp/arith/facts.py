"""Facts that hold at one place of a program: ranges of variables, and conditions.

Facts are immutable: `bind`, `nonnegative`, `assume`, `let` and `define` return extended ones. All
facts that stem from one `Facts()` share a table of expressions, so use them for one function only.

The rule on overflow: **i64 index arithmetic of in-range values does not overflow.** It is applied
to a sum if and only if the following hold.

- The sum is of i64.
- It is made of variables that `bind` or `nonnegative` declared, constants, and quotients, minima
  and conversions of these.
- One side of its interval has no known bound.
- It multiplies by constants below 2^32 only. Larger ones are made for wrapping, as in hashes.

A sum with two known bounds is exact if both fit, in every integer type. All other sums wrap, and
only rules that hold modulo 2^bits are applied to them. No fact is about memory, since memory may
change between two reads.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.arith.bounds import Bounds, range_of_dtype
from refcomp.arith.intern import LOOP_RANK, SYMBOL_RANK
from refcomp.arith.interval import Interval
from refcomp.arith.linear import Key, Sum, SumTable, direction, is_summable
from refcomp.arith.modular import Modular
from refcomp.arith.simplify.engine import Simplifier
from refcomp.foundation.dtype import I64
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

_MAX_CONJUNCTS = 64  # of one condition; the others are ignored
_LEAST_I64 = I64.min_value
_GREATEST_I64 = I64.max_value
_MAX_ASSUMED = 24  # inequalities that a proof may subtract: the latest ones


class Facts:
    """Facts that hold at one place (see the module docstring)."""

    def __init__(self) -> None:
        self.table = SumTable()
        self.lower: dict[int, Sum] = {}  # serial number of a variable -> symbolic bound
        self.upper: dict[int, Sum] = {}
        self.assumed: tuple[Sum, ...] = ()  # sums that are >= 0, the latest first
        self.truths: dict[int, bool] = {}  # id of a condition -> its truth
        self.values: dict[int, Expr] = {}  # id of a variable -> what replaces it
        # See the fields of `Bounds` for the next four.
        self._ranges: dict[int, Interval] = {}
        self._indices: frozenset[int] = frozenset()
        self._known: dict[Key, Interval] = {}
        self._residues: dict[Key, Modular] = {}
        self._extended: dict[tuple[object, ...], Facts] = {}  # see `_extended_once`
        # Made when they are first needed. A cached_property would take a lock for each.
        self._bounds: Bounds | None = None
        self._simplifier: Simplifier | None = None

    @property
    def bounds(self) -> Bounds:
        """The intervals and congruences of expressions under these facts."""
        if self._bounds is None:
            self._bounds = Bounds(
                table=self.table,
                ranges=self._ranges,
                indices=self._indices,
                known=self._known,
                residues=self._residues,
            )
        return self._bounds

    @property
    def simplifier(self) -> Simplifier:
        """The simplifier of expressions under these facts."""
        if self._simplifier is None:
            self._simplifier = Simplifier(self)
        return self._simplifier

    def bind(self, var: Var, minimum: Expr, extent: Expr) -> Facts:
        """Return facts in a loop whose variable `var` lies in [minimum, minimum + extent).

        They imply that the extent is at least 1, since the loop's body is entered.
        """
        self.table.declare(var, LOOP_RANK)
        low = self.simplifier.representative(minimum)
        count = self.simplifier.representative(extent)
        return self._extended_once(Facts._bind, var, low, count)

    def _bind(self, var: Var, minimum: Expr, extent: Expr) -> Facts:
        facts = self._in_range(var, minimum, extent, is_index=True)
        if isinstance(extent, IntImm):
            return facts
        return facts._at_least(self._symbolic(extent), 1)

    def nonnegative(self, var: Var) -> Facts:
        """Return facts where `var`, of an integer type, is a shape symbol, and so at least 0."""
        self.table.declare(var, SYMBOL_RANK)
        high = None if var.dtype == I64 else var.dtype.max_value
        return self._with_range(var, Interval(0, high), is_index=True)

    def let(self, var: Var, value: Expr) -> Facts:
        """Return facts where `var` has a value, and stays in the program."""
        value = self.simplifier.representative(value)
        if not is_summable(var.dtype):
            return self
        is_index = self.bounds.is_index(value)
        one = self.table.constant(1, var.dtype)
        return self._in_range(var, value, one, is_index)

    def define(self, var: Var, value: Expr) -> Facts:
        """Return facts where `value` replaces `var`; it must not read memory that may change."""
        facts = self._copy()
        key = id(self.table.intern(var))
        facts.values[key] = self.simplifier.representative(value)
        return facts

    def assume(self, condition: Expr) -> Facts:
        """Return facts where the bool `condition` holds.

        Conjuncts that are vectors or read memory are ignored.
        """
        known = self.simplifier.representative(condition)
        return self._extended_once(Facts._assume, known)

    def _assume(self, condition: Expr) -> Facts:
        facts = self
        count = 0
        stack = [(condition, True)]
        while stack and count < _MAX_CONJUNCTS:
            item, truth = stack.pop()
            if isinstance(item, Not):
                stack.append((item.a, not truth))
            elif isinstance(item, And if truth else Or):
                stack += [(item.b, truth), (item.a, truth)]
            elif item.dtype.lanes == 1 and not self.table.reads_memory(item):
                facts = facts._assume_one(item, truth)
                count += 1
        return facts

    def _extended_once(self, extend: Callable[..., Facts], *args: Expr) -> Facts:
        """Return `extend(self, *args)`, the same object for the same representatives.

        A pass may reach one place from several loops around it. It finds there what was proved
        before.
        """
        key = (extend, *map(id, args))
        if key not in self._extended:
            self._extended[key] = extend(self, *args)
        return self._extended[key]

    def _assume_one(self, condition: Expr, truth: bool) -> Facts:
        if isinstance(condition, IntImm):
            return self
        facts = self._copy()
        facts.truths[id(condition)] = truth
        negated = self.simplifier.make(Not, condition)
        facts.truths[id(negated)] = not truth
        if not truth:
            condition = negated
        if not isinstance(condition, LT | LE | EQ | NE):
            return facts
        if not is_summable(condition.a.dtype):
            return facts
        a = self._symbolic(condition.a)
        b = self._symbolic(condition.b)
        if a is None or b is None:
            return facts
        return facts._assume_comparison(condition, b.plus(a, -1))

    def _assume_comparison(
        self, condition: LT | LE | EQ | NE, difference: Sum
    ) -> Facts:
        """Return facts where a comparison holds whose right less its left side is `difference`."""
        if isinstance(condition, LT):
            return self._at_least(difference, 1)
        if isinstance(condition, LE):
            return self._at_least(difference, 0)
        if isinstance(condition, EQ):
            facts = self._at_least(difference, 0)
            facts = facts._at_least(difference.scale(-1), 0)
            return facts._with_residue(condition.a, condition.b)
        # An interval has no holes, so `!=` is of use only at one of its ends.
        interval = self.bounds.interval_of_sum(difference)
        if interval.low == 0:
            return self._at_least(difference, 1)
        if interval.high == 0:
            return self._at_least(difference.scale(-1), 1)
        return self

    def _with_residue(self, a: Expr, b: Expr) -> Facts:
        """Return facts where a == b, used if that says x mod c == r."""
        if not isinstance(a, FloorMod) or not isinstance(b, IntImm):
            return self
        modulus = a.b
        total = self._symbolic(a.a)
        if not isinstance(modulus, IntImm) or modulus.value == 0:
            return self
        if total is None or total.is_const:
            return self
        key, factor = direction(total)
        # The key stands for total / factor. Congruences can be divided by 1 and -1 only.
        if abs(factor) != 1:
            return self
        residue = Modular(abs(modulus.value), b.value - total.const)
        facts = self._copy()
        facts._residues[key] = residue.scale(factor)
        return facts

    def _at_least(self, total: Sum | None, least: int) -> Facts:
        """Return facts where `total`, over the unbounded integers, is at least `least`."""
        if total is None or total.is_const:
            return self
        total = total.shift(-least)
        key, factor = direction(total)
        facts = self._copy()
        if factor > 0:
            bound = Interval(-(total.const // factor), None)
        else:
            bound = Interval(None, total.const // -factor)
        known = self._known.get(key, Interval())
        facts._known[key] = known.intersect(bound)
        if len(total.terms) > 1:
            facts.assumed = (total, *self.assumed)[:_MAX_ASSUMED]
            return facts
        return facts._with_positive_factors(total)

    def _with_positive_factors(self, total: Sum) -> Facts:
        """Return facts that follow from total >= 0, a sum of one term.

        A product of factors that are not negative is positive only if each factor is.
        """
        ((monomial, k),) = total.terms.items()
        if k <= 0 or total.const >= 0 or len(monomial) < 2:
            return self
        factors = [self.table.expr(atom) for atom in monomial]
        for factor in factors:
            if not self.bounds.interval(factor).is_at_least(0):
                return self
        facts = self
        for factor in factors:
            facts = facts._at_least(self._symbolic(factor), 1)
        return facts

    def _symbolic(self, expr: Expr) -> Sum | None:
        """Return the exact Sum of a simplified expression; None if it reads memory."""
        if self.table.reads_memory(expr):
            return None
        return self.bounds.exact_sum(expr)

    def _in_range(self, var: Var, minimum: Expr, extent: Expr, is_index: bool) -> Facts:
        low: Sum | None = None
        last: Sum | None = None
        # The maximum keeps the range from being empty. Without an iteration any range is right.
        if isinstance(minimum, IntImm) and isinstance(extent, IntImm):
            first = minimum.value
            values = Interval(first, first + max(extent.value - 1, 0))
        else:
            offsets = self.bounds.interval(extent).shift(-1).maximum(Interval.point(0))
            firsts = self.bounds.interval(minimum)
            values = Interval(firsts.low, (firsts + offsets).high)
            low = self._symbolic(minimum)
            count = self._symbolic(extent)
            if low is not None and count is not None:
                last = low.plus(count).shift(-1)
                exact_high = self.bounds.interval_of_sum(last).high
                values = values.intersect(Interval(None, exact_high))
        if is_index and var.dtype == I64:
            values = _without_limits_of_i64(values)
        else:
            values = range_of_dtype(var.dtype).intersect(values)
        facts = self._with_range(var, values, is_index)
        if low is not None and not low.is_const:
            facts.lower[self._serial(var)] = low
        if last is not None and not last.is_const:
            facts.upper[self._serial(var)] = last
        return facts

    def _serial(self, var: Var) -> int:
        return self.table.serial(self.table.intern(var))

    def _with_range(self, var: Var, values: Interval, is_index: bool) -> Facts:
        key = id(self.table.intern(var))
        facts = self._copy()
        known = self._ranges.get(key)
        facts._ranges[key] = values if known is None else known.intersect(values)
        if is_index:
            facts._indices = self._indices | {key}
        return facts

    def _copy(self) -> Facts:
        facts = Facts.__new__(Facts)
        facts.table = self.table
        facts.assumed = self.assumed
        facts.lower = dict(self.lower)
        facts.upper = dict(self.upper)
        facts.truths = dict(self.truths)
        facts.values = dict(self.values)
        facts._indices = self._indices
        facts._ranges = dict(self._ranges)
        facts._known = dict(self._known)
        facts._residues = dict(self._residues)
        facts._extended = {}
        facts._bounds = None
        facts._simplifier = None
        return facts


def _without_limits_of_i64(values: Interval) -> Interval:
    """Return `values` without ends that i64 implies.

    The rule on overflow applies only to a side without a bound, and such ends know nothing.
    """
    low, high = values.low, values.high
    if low is not None and low <= _LEAST_I64:
        low = None
    if high is not None and high >= _GREATEST_I64:
        high = None
    return values if (low, high) == (values.low, values.high) else Interval(low, high)
