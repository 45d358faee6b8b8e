"""The least and the greatest value that an index attains over a box of axes.

The *ends* of an index are its least and its greatest value. They are computed only if some
iteration attains each of them. Then an end outside of a dimension means that an access out of
bounds happens. So a condition that `Box.judge` states is *necessary*: a call that breaks it
accesses an element that does not exist. Conditions are on symbols: sizes and scalar arguments,
which a caller chooses.

The ends of these expressions are computed:

- sums and differences of independent axes
- floor quotients, minima and maxima
- products with a value that does not depend on axes
- products and squares of axes that are not negative
- remainders of an axis by a symbol
- other expressions that have few, constant points: all points are tried

Arithmetic in a type narrower than i64 wraps around. An expression of symbols alone keeps its type.
An expression with axes is computed in i64. A condition on it permits each call in which it wraps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from refcomp.arith.ends import (
    RULES,
    Attained,
    Bound,
    as_expr,
    greater,
    in_i64,
    is_constant,
    remainder_of_axis,
    smaller,
    square,
    typed,
)
from refcomp.arith.enumerated import Enumeration
from refcomp.arith.facts import Facts
from refcomp.arith.guards import AtMost, comparisons, linear
from refcomp.arith.prove import prove, simplify
from refcomp.foundation.dtype import I64, U64, DType
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    LE,
    LT,
    Add,
    BinaryExpr,
    Cast,
    Expr,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Sub,
    Var,
)
from refcomp.ir.rewrite import variables_in, with_changes


class Judgement(NamedTuple):
    """The judgement on one dimension of an access. It is empty if the index is in range."""

    beyond: Bound | None = None  # an index out of range that occurs in every call
    # A call that breaks one of these accesses an index out of range.
    conditions: tuple[Expr, ...] = ()
    # True if the index is in range in each call that fulfils the conditions.
    is_exact: bool = False


class Box:
    """The axes around an access. Each takes all values of its range, for any data.

    Args:
        facts: facts about symbols. They hold even if an axis is empty.
        symbols: the variables that conditions may name; None permits any that is not an axis.
    """

    def __init__(self, facts: Facts, symbols: frozenset[Var] | None = None) -> None:
        self.facts = facts
        self.symbols = symbols
        # False if an axis has no values or unknown ones. Nothing is judged then.
        self.is_known = True
        # True if the accesses are certainly not made.
        self.is_empty = False
        self._ranges: dict[Var, Attained] = {}  # of axes, and of lets that are followed
        # The first and the last value of each axis whose range depends on other axes.
        self._dependent: dict[Var, tuple[Expr, Expr]] = {}
        # Each axis with minimum and extent, outermost first.
        self._axes: tuple[tuple[Var, Expr, Expr], ...] = ()
        self._constant: dict[Var, range] = {}  # the axes of constant ranges
        self._lets: dict[Var, Expr] = {}
        self._points = Enumeration(self._constant, self._lets)
        self._extents: tuple[Expr, ...] = ()  # extents that are not proved positive
        self._inside: Facts | None = None
        # True below a guard: perhaps the accesses do not happen, whatever the sizes are.
        self._is_guarded = False

    def with_axis(self, var: Var, minimum: Expr, extent: Expr) -> Box:
        """Return this box with one more axis, whose range may depend on the axes so far."""
        first = self.attained(minimum)
        count = self.attained(extent)
        if first is None or first.wraps:
            return self.unknown()
        if count is None or count.axes:
            return self._with_dependent_axis(var, minimum, extent)
        size = self._size(count.high)
        last = first.high + (size - 1)
        box = self._copy()
        box._ranges[var] = Attained(first.low, last, first.axes | {var})
        if first.axes:
            box._dependent[var] = (minimum, minimum + extent - 1)
        box._axes = (*self._axes, (var, minimum, extent))
        if not isinstance(size, int):
            box._extents = (*self._extents, as_expr(size))
        elif size <= 0:
            return box._empty()
        elif isinstance(first.low, int) and not first.axes:
            box._constant[var] = range(first.low, first.low + size)
        return box

    def _with_dependent_axis(self, var: Var, minimum: Expr, extent: Expr) -> Box:
        """Return this box with an axis whose extent depends on the axes so far.

        Only those iterations of the axes so far are kept in which the new axis has an iteration.
        """
        box = self
        is_entered = LT(IntImm(0, I64), extent)
        facts = self.inside
        for axis in self._axes:
            facts = facts.bind(*axis)
        if not prove(is_entered, facts):
            box = self.with_guard(is_entered)
        if not box.is_known:
            return self.unknown()
        end = simplify(minimum + extent - 1, self.facts)
        first = box.attained(minimum)
        last = box.attained(end)
        if first is None or last is None or first.wraps or last.wraps:
            return self.unknown()
        box = box._copy()
        # As for any loop, the sizes decide whether there is an iteration.
        box._is_guarded = self._is_guarded
        axes = {var, *variables_in(minimum), *variables_in(extent)} & {
            var,
            *box._ranges,
        }
        depends = first.axes | last.axes | axes
        box._ranges[var] = Attained(first.low, last.high, depends)
        box._dependent[var] = (minimum, end)
        box._axes = (*self._axes, (var, minimum, extent))
        return box

    def unknown(self) -> Box:
        """Return a box in which nothing is judged."""
        box = Box(self.facts, self.symbols)
        box.is_known = False
        return box

    def _empty(self) -> Box:
        """Return a box without points."""
        box = self.unknown()
        box.is_empty = True
        return box

    def with_let(self, var: Var, value: Expr) -> Box:
        """Return this box where `var` has a value, which is followed if possible."""
        box = self._copy()
        box._lets[var] = value
        found = self.attained(value)
        if found is not None:
            box._ranges[var] = found
        return box

    def with_guard(self, condition: Expr, holds: bool = True) -> Box:
        """Return this box where `condition` holds, or where it does not.

        Each comparison must be of symbols, or linear in one axis on which no other axis depends.
        Otherwise the box is unknown.
        """
        parts = comparisons(condition, holds)
        if parts is None:
            return self.unknown()
        box = self._copy()
        box._is_guarded = True
        for part in parts:
            if box.is_known:
                box = box._where(part)
        return box

    def _where(self, part: AtMost) -> Box:
        """Return this box where `part` holds."""
        small = self.attained(part.small)
        large = self.attained(part.large)
        named = {*variables_in(part.small), *variables_in(part.large)}
        ranges = self._ranges
        axes = [var for var in named if var in ranges and ranges[var].axes]
        if not axes and small is not None and large is not None:
            difference = in_i64(large).low - in_i64(small).low
            return self._where_positive(difference + (1 - part.gap))
        if not all(map(self._is_independent, axes)):
            return self.unknown()
        if len(axes) == 2:
            return self._where_ordered(part, axes[0], axes[1])
        if len(axes) != 1:
            return self.unknown()
        below = linear(part.small, axes[0])
        above = linear(part.large, axes[0])
        if below is None or above is None:
            return self.unknown()
        rest = self.attained(above.rest - below.rest - part.gap)
        if rest is None or rest.axes:
            return self.unknown()
        factor = above.factor - below.factor
        return self._where_nonnegative(axes[0], factor, rest.low)

    def _where_ordered(self, part: AtMost, first: Var, second: Var) -> Box:
        """Return this box where `part`, such as first < second, holds of two axes.

        Both must have the factor 1 or -1. Then each axis attains all values for which the other
        has a value left. But the two are not independent of each other.
        """
        difference = simplify(part.large - part.small - part.gap, self.facts)
        outer = linear(difference, first)
        inner = None if outer is None else linear(outer.rest, second)
        if outer is None or inner is None:
            return self.unknown()
        rest = self.attained(inner.rest)
        if rest is None or rest.axes or {abs(outer.factor), abs(inner.factor)} != {1}:
            return self.unknown()
        # Each axis has its greatest part of the sum at one end: sum + rest >= 0.
        ranges = self._ranges
        most = {
            axis: ranges[axis].high if form.factor > 0 else 0 - ranges[axis].low
            for axis, form in ((first, outer), (second, inner))
        }
        box = self._where_positive(most[first] + most[second] + rest.low + 1)
        if not box.is_known:
            return box
        both = frozenset((first, second))
        for axis, other, form in ((first, second, outer), (second, first, inner)):
            low, high = ranges[axis].low, ranges[axis].high
            reach = most[other] + rest.low  # factor * axis >= -reach
            if form.factor > 0:
                low = greater(low, 0 - reach)
            else:
                high = smaller(high, reach)
            box._ranges[axis] = Attained(low, high, both)
            box._constant.pop(axis, None)
        return box

    def _is_independent(self, axis: Var) -> bool:
        """Return True if the range of `axis` does not depend on other axes, nor they on it."""
        if self._ranges[axis].axes != {axis}:
            return False
        for var, found in self._ranges.items():
            if var is not axis and axis in found.axes:
                return False
        return True

    def _where_nonnegative(self, axis: Var, factor: int, rest: Bound) -> Box:
        """Return this box where `factor * axis + rest` is at least 0."""
        if factor == 0:
            return self._where_positive(rest + 1)
        # The axis must keep a value. So each operand of an end that is a minimum or a maximum must
        # leave one.
        box = self
        low, high = self._ranges[axis].low, self._ranges[axis].high
        if factor > 0:
            least = 0 - rest // factor
            for end in _operands(high, Min):
                box = box._where_positive(end - least + 1)
            low = greater(low, least)
        else:
            most = rest // -factor
            for end in _operands(low, Max):
                box = box._where_positive(most - end + 1)
            high = smaller(high, most)
        if not box.is_known:
            return box
        box._ranges[axis] = Attained(low, high, frozenset((axis,)))
        box._constant.pop(axis, None)
        if isinstance(low, int) and isinstance(high, int):
            box._constant[axis] = range(low, high + 1)
        return box

    def _where_positive(self, extent: Bound) -> Box:
        """Return this box where `extent` is positive."""
        size = self._size(extent)
        box = self._copy()
        if not isinstance(size, int):
            box._extents = (*self._extents, size)
        elif size <= 0:
            return self._empty()
        return box

    def _size(self, extent: Bound) -> Bound:
        """Return `extent` as a plain integer if it is constant once simplified."""
        if isinstance(extent, int):
            return extent
        simplified = simplify(extent, self.facts)
        size = as_int(simplified)
        return simplified if size is None else size

    def _copy(self) -> Box:
        box = Box(self.facts, self.symbols)
        box.is_known = self.is_known
        box._ranges.update(self._ranges)
        box._dependent.update(self._dependent)
        box._axes = self._axes
        box._constant.update(self._constant)
        box._lets.update(self._lets)
        box._extents = self._extents
        box._is_guarded = self._is_guarded
        return box

    @property
    def inside(self) -> Facts:
        """The facts that hold inside all axes, where none of them is empty."""
        if self._inside is None:
            facts = self.facts
            for extent in self._extents:
                for part in _positive_parts(extent):
                    facts = facts.assume(LT(IntImm(0, part.dtype), part))
            self._inside = facts
        return self._inside

    def judge(self, index: Expr, dim: Expr) -> Judgement:
        """Judge an access at `index` in a dimension of `dim` elements."""
        # A fresh memo, so that it does not keep the arrays of every index.
        self._points = Enumeration(self._constant, self._lets)
        values = self.attained(index)
        count = self.attained(dim)
        if not self.is_known or values is None or count is None or count.axes:
            return Judgement()
        low, high, end = values.low, values.high, count.high
        conditions: list[Expr] = []
        for bound, limit in ((low, None), (high, end)):
            verdict = self._compare(bound, limit)
            if verdict is False and (values.wraps or self._is_guarded):
                # Out of range, but not in every call.
                verdict = self._condition(bound, limit)
            if verdict is False:
                return Judgement(beyond=self._simplified(bound), is_exact=True)
            if isinstance(verdict, Expr):
                condition = self._unless_wrapped(verdict, values.wraps)
                if condition is not None:
                    conditions.append(self._unless_empty(condition))
        return Judgement(conditions=tuple(conditions), is_exact=not values.wraps)

    def _compare(self, bound: Bound, limit: Bound | None) -> bool | Expr:
        """Return True if bound < limit is proved, False if the opposite is, else the condition.

        Without a limit the condition is bound >= 0.
        """
        if isinstance(bound, int):
            if limit is None:
                return bound >= 0
            if isinstance(limit, int):
                return bound < limit
        holds = self._condition(bound, limit)
        opposite = LT if isinstance(holds, LE) else LE
        fails = opposite(holds.b, holds.a)
        if prove(fails, self.inside):
            return False
        return True if prove(holds, self.inside) else holds

    def _condition(self, bound: Bound, limit: Bound | None) -> LE | LT:
        value = as_expr(self._simplified(bound))
        if limit is None:
            return LE(IntImm(0, I64), value)
        return LT(value, as_expr(self._simplified(limit)))

    def _simplified(self, bound: Bound) -> Bound:
        return bound if isinstance(bound, int) else simplify(bound, self.inside)

    def _unless_wrapped(self, condition: Expr, wraps: Iterable[Expr]) -> Expr | None:
        """Return the condition "one of `wraps`, or `condition`, holds"; None if it always holds.

        Parts of `wraps` that imply `condition` are left out.
        """
        for wrap in wraps:
            if prove(condition, self.inside.assume(Not(wrap))):
                return None
            if not prove(condition, self.inside.assume(wrap)):
                condition = Or(wrap, condition)
        return condition

    def _unless_empty(self, condition: Expr) -> Expr:
        """Return the condition "an extent is <= 0, or `condition` holds".

        An extent is left out if `condition` holds whenever the extent is <= 0.
        """
        intern = self.facts.table.intern
        distinct = {id(intern(extent)): extent for extent in self._extents}
        for extent in reversed(distinct.values()):
            zero = IntImm(0, extent.dtype)
            is_empty = LE(simplify(extent, self.facts), zero)
            if not prove(condition, self.facts.assume(is_empty)):
                condition = Or(is_empty, condition)
        return condition

    def attained(self, expr: Expr) -> Attained | None:
        """Return the ends of `expr`; None if they may not be attained."""
        found = self._attained_by_rules(expr)
        if found is None and self._dependent:
            found = self._attained_without_dependent_axis(expr)
        if found is not None or not expr.dtype.is_int:
            return found
        values = self._points.values(expr)
        if values is None:
            return None
        low = int(values.array.min())
        high = int(values.array.max())
        return Attained(low, high, values.axes)

    def _attained_without_dependent_axis(self, expr: Expr) -> Attained | None:
        """Return the ends of an expression that is linear in an axis whose range depends on others.

        They are attained at the first or at the last value of that axis.
        """
        named = set(variables_in(expr))
        for var, (first, last) in reversed(self._dependent.items()):
            form = linear(expr, var) if var in named else None
            if form is None:
                continue
            # Simplified, so that i - (i + 1 - 1) is 0.
            at_first = simplify(form.rest + first * form.factor, self.facts)
            at_last = simplify(form.rest + last * form.factor, self.facts)
            if form.factor < 0:
                at_first, at_last = at_last, at_first
            low = self.attained(at_first)
            high = self.attained(at_last)
            if low is None or high is None or low.wraps or high.wraps:
                return None
            return Attained(low.low, high.high, low.axes | high.axes | {var})
        return None

    def _attained_by_rules(self, expr: Expr) -> Attained | None:
        match expr:
            case IntImm(value=value):
                return Attained(value, value)
            case Var() if expr in self._ranges:
                return self._ranges[expr]
            case Var() if self.symbols is None or expr in self.symbols:
                return Attained(expr, expr)
            case Cast(dtype=dtype, value=Add() | Sub() | Mul() as value) if (
                dtype == I64 and value.dtype == U64
            ):
                # The same bits, so that the sum is the same if its operands are converted first.
                a = _signed(value.a)
                b = _signed(value.b)
                return self.attained(type(value)(a, b))
            case Cast(dtype=dtype, value=value):
                return self._converted(self.attained(value), value.dtype, dtype)
            case BinaryExpr() if type(expr) in RULES:
                return self._attained_by_operands(expr)
            case Mod(a=a, b=b):
                return self._attained_on_axis(expr, self.attained(a), self.attained(b))
        return None

    def _attained_by_operands(self, expr: BinaryExpr) -> Attained | None:
        left = self.attained(expr.a)
        right = self.attained(expr.b)
        found = self._attained_on_axis(expr, left, right)
        if found is not None:
            return found
        # On an axis in common, both operands need not attain their ends at one point.
        if left is None or right is None or left.axes & right.axes:
            return None
        if not (left.axes or right.axes or is_constant(left, right)):
            a = typed(left.low, expr.a.dtype)
            b = typed(right.low, expr.b.dtype)
            value = with_changes(expr, a=a, b=b)
            return Attained(value, value)
        rule = RULES[type(expr)]
        found = rule(self.is_nonnegative, in_i64(left), in_i64(right))
        if found is not None:
            wraps = dict.fromkeys((*left.wraps, *right.wraps))
            found = replace(found, wraps=tuple(wraps))
        return self._fitted(found, expr.dtype)

    def _attained_on_axis(
        self, expr: BinaryExpr, left: Attained | None, right: Attained | None
    ) -> Attained | None:
        """Return the ends of the square of an axis, or of its remainder by a symbol."""
        # Such an axis has all values between its ends.
        if left is None or right is None or not isinstance(expr.a, Var):
            return None
        if left.axes != {expr.a}:
            return None
        if isinstance(expr, Mul) and expr.a is expr.b:
            return square(self.is_nonnegative, left)
        if isinstance(expr, FloorMod | Mod):
            return remainder_of_axis(self.is_nonnegative, left, right)
        return None

    def _converted(
        self, values: Attained | None, source: DType, dtype: DType
    ) -> Attained | None:
        if values is None or not dtype.is_int:
            return None
        if values.axes or isinstance(values.low, int):
            if source == U64 and dtype != U64:
                return None
            return self._fitted(values, dtype)
        value = values.low if source == dtype else Cast(dtype, values.low)
        return Attained(value, value)

    def _fitted(self, values: Attained | None, dtype: DType) -> Attained | None:
        """Return `values` with the conditions under which they wrap around in `dtype`.

        Return None if that is not followed.
        """
        if values is None or not dtype.is_int:
            return None
        low, high = values.low, values.high
        if isinstance(low, int) and isinstance(high, int):
            fits = dtype.min_value <= low and high <= dtype.max_value
            return values if fits else None
        if dtype == I64:
            return values
        if dtype == U64:
            return None
        fits_below = self._compare(low - dtype.min_value, None)
        fits_above = self._compare(high, dtype.max_value + 1)
        if fits_below is False or fits_above is False:
            return None
        wraps = list(values.wraps)
        if fits_below is not True:
            least = IntImm(dtype.min_value, I64)
            wraps.append(LT(as_expr(self._simplified(low)), least))
        if fits_above is not True:
            most = IntImm(dtype.max_value, I64)
            wraps.append(LT(most, as_expr(self._simplified(high))))
        return replace(values, wraps=tuple(wraps))

    def is_nonnegative(self, bound: Bound) -> bool:
        """Return True if `bound` is proved to be at least 0 inside all axes."""
        if isinstance(bound, int):
            return bound >= 0
        return prove(LE(IntImm(0, bound.dtype), bound), self.inside)


def is_size(var: Var) -> bool:
    """Return True for a scalar that conditions may name. u64 is named as i64(scalar) there."""
    return var.dtype.is_int


def _positive_parts(extent: Expr) -> list[Expr]:
    """Return expressions that are positive if `extent` is, such as m - 2 for max(m - 2, 0)."""
    parts = [extent]
    while isinstance(extent, Max) and isinstance(extent.b, IntImm):
        if extent.b.value > 0:
            break
        extent = extent.a
        parts.append(extent)
    return parts


def _signed(expr: Expr) -> Expr:
    """Return `expr` of u64 as i64."""
    if isinstance(expr, Cast) and expr.value.dtype == I64:
        return expr.value
    return Cast(I64, expr)


def _operands(bound: Bound, kind: type[Min] | type[Max]) -> list[Bound]:
    """Return the operands of the minimum or maximum `bound`."""
    if not isinstance(bound, kind):
        return [bound]
    return _operands(bound.a, kind) + _operands(bound.b, kind)
