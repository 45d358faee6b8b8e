"""Requirements that are checked at all values of some axes, for indices that no rule follows.

Before:  func f(A: f32[n], C: f32[m] out) { for i in range(m) { C[i] = A[i >> 1] } }
After:   func f(A: f32[n], C: f32[m] out) requires (for i in range(m) i >> 1 < n) { ... }

Such a requirement is exact: a call breaks it if and only if the access happens and leaves its
buffer. But it costs time: the first call with a combination of sizes computes the index at all
points. So it is stated only if nothing else bounds the index (see
`refcomp.lowering.entry_conditions`). It has only the axes on which the index, or a condition around
the access, depends.

Indices and conditions are not stated if they depend on data, on float arguments, or on functions
that targets round differently, such as `exp`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from refcomp.arith import Facts, prove
from refcomp.arith.ends import as_expr
from refcomp.arith.everywhere import first_violation, value_at
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, LT, And, Expr, IntImm, Not, Or, PureExtern, Var
from refcomp.ir.func import Requirement
from refcomp.ir.rewrite import substitute, variables_in, walk
from refcomp.ir.type_rules import type_fault

# A requirement without symbols is checked at once if it has at most so many points.
_MAX_POINTS_AT_BUILD = 1 << 22


class Axis(NamedTuple):
    """A loop variable and its range."""

    var: Var
    minimum: Expr
    extent: Expr


class _Let(NamedTuple):
    var: Var
    value: Expr


@dataclass(frozen=True, eq=False, slots=True)
class AccessContext:
    """The loops, lets and conditions around an access, outermost first."""

    steps: tuple[Axis | _Let | Expr, ...] = ()
    # False if a condition certainly depends on data, so that nothing is stated.
    is_stated: bool = True

    def with_axis(self, var: Var, minimum: Expr, extent: Expr) -> AccessContext:
        """Return the context in a loop."""
        return AccessContext((*self.steps, Axis(var, minimum, extent)), self.is_stated)

    def with_let(self, var: Var, value: Expr) -> AccessContext:
        """Return the context in which `var` is `value`."""
        return AccessContext((*self.steps, _Let(var, value)), self.is_stated)

    def with_guard(self, condition: Expr, holds: bool = True) -> AccessContext:
        """Return the context in which `condition` holds, or does not."""
        by_data = _depends_on_data(condition)
        guard = condition if holds else Not(condition)
        return AccessContext((*self.steps, guard), self.is_stated and not by_data)


def _depends_on_data(expr: Expr) -> bool:
    return any(isinstance(part, BufferLoad | PureExtern) for part in walk(expr))


class OutOfRange(NamedTuple):
    """An index that leaves its dimension in every call."""

    value: int


@dataclass(frozen=True)
class _FlatContext:
    """The axes and conditions around an access, without lets."""

    axes: list[Axis] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)
    lets: dict[Var, Expr] = field(default_factory=dict)
    # Knows the constant ranges of the axes, and nothing else, which is cheap.
    ranges: list[Facts] = field(default_factory=list)

    def holds_in_axes(self, index: Expr, size: Expr) -> bool:
        """Return True if the ranges of the axes prove that `index` is in range."""
        count = as_int(size)
        if count is None or not index.dtype.is_int:
            return False
        if not self.ranges:
            self.ranges.append(self.facts(Facts(), guards=()))
        facts = self.ranges[0]
        found = facts.bounds.interval(facts.table.intern(index))
        low, high = found.low, found.high
        return low is not None and high is not None and low >= 0 and high < count

    def facts(self, facts: Facts, guards: Iterable[Expr] | None = None) -> Facts:
        """Return `facts` inside of the axes, and of all conditions or the given ones."""
        for axis in self.axes:
            facts = facts.bind(*axis)
        for guard in self.guards if guards is None else guards:
            facts = facts.assume(guard)
        return facts


def _nest(around: AccessContext) -> _FlatContext:
    nest = _FlatContext()
    lets = nest.lets
    for step in around.steps:
        match step:
            case Axis(var, minimum, extent):
                low = substitute(minimum, lets)
                nest.axes.append(Axis(var, low, substitute(extent, lets)))
            case _Let(var, value):
                lets[var] = substitute(value, lets)
            case _:
                nest.guards.extend(_conjuncts(substitute(step, lets)))
    return nest


def _conjuncts(condition: Expr, holds: bool = True) -> list[Expr]:
    """Return conditions whose conjunction is `condition`, or its opposite if not `holds`."""
    match condition:
        case Not(a=a):
            return _conjuncts(a, not holds)
        case And(a=a, b=b) | Or(a=a, b=b) if isinstance(condition, And) == holds:
            return _conjuncts(a, holds) + _conjuncts(b, holds)
    return [condition if holds else Not(condition)]


class PointRules:
    """Finds requirements with axes.

    Args:
        symbols: the symbols and scalars that requirements may name.
    """

    def __init__(self, symbols: frozenset[Var]) -> None:
        self._symbols = symbols
        # Many accesses have the same context.
        self._nests: dict[AccessContext, _FlatContext] = {}
        self._inside: dict[tuple[AccessContext, Facts], Facts] = {}

    def required(
        self, around: AccessContext, index: Expr, size: Expr, facts: Facts
    ) -> list[Requirement] | OutOfRange | None:
        """Return the requirements without which an access is certainly out of range.

        Return None if it is not known when an access happens, or at which index.

        Args:
            around: the context of the access.
            index: its index in one dimension.
            size: the number of elements in this dimension.
            facts: what is known about symbols.
        """
        nest = self._nests.get(around)
        if nest is None:
            nest = self._nests[around] = _nest(around)
        if nest.lets:
            index = substitute(index, nest.lets)
        if nest.holds_in_axes(index, size):
            return []
        if not around.is_stated or _depends_on_data(index):
            return None
        index = as_expr(index)
        inside = self._inside.get((around, facts))
        if inside is None:
            inside = self._inside[around, facts] = nest.facts(facts)
        found: list[Requirement] = []
        for bound in (LE(IntImm(0, I64), index), LT(index, as_expr(size))):
            if prove(bound, inside):
                continue
            requirement = _requirement(nest, bound, facts, self._symbols)
            if requirement is None:
                return None
            if not _is_constant(requirement):
                found.append(requirement)
                continue
            at = first_violation(requirement, {})
            if at is not None:
                return OutOfRange(value_at(index, at))
        return found


def _is_constant(requirement: Requirement) -> bool:
    """Return True if no symbol decides, and few points."""
    if not set(variables_in(requirement)) <= set(requirement.axes):
        return False
    counts = [as_int(extent) for extent in requirement.extents]
    return math.prod(1 if n is None else n for n in counts) <= _MAX_POINTS_AT_BUILD


def _requirement(
    nest: _FlatContext, bound: Expr, facts: Facts, symbols: frozenset[Var]
) -> Requirement | None:
    """Return the requirement that `bound` holds at all points of `nest`.

    Return None if it depends on data.
    """
    ranges = {axis.var: axis for axis in nest.axes}
    # An axis whose extent depends on other axes may have no iterations at some of their values.
    dependent = [
        axis.var for axis in nest.axes if ranges.keys() & {*variables_in(axis.extent)}
    ]
    named = (*variables_in(bound), *dependent)
    related = _related(named, nest.guards, ranges)
    others = [g for g in nest.guards if related.isdisjoint(variables_in(g))]
    if others and _hold_first(others, nest, facts):
        guards = [guard for guard in nest.guards if guard not in set(others)]
    else:
        guards = nest.guards
        guarded = (var for guard in guards for var in variables_in(guard))
        related = _related((*named, *guarded), guards, ranges)
    # The other axes must only have iterations.
    counts = [axis.extent for axis in nest.axes if axis.var not in related]
    operands: list[Expr] = [
        LE(count, IntImm(0, count.dtype))
        for count in counts
        if (as_int(count) or 0) <= 0
    ]
    operands += [Not(guard) for guard in guards]
    condition = bound
    for operand in reversed(operands):
        condition = Or(operand, condition)
    axes = [axis for axis in nest.axes if axis.var in related]
    parts = (condition, *(part for axis in axes for part in axis[1:]))
    free = {var for part in parts for var in variables_in(part)} - related
    if not free <= symbols:
        return None
    if not axes and type_fault(Requirement(condition)) is None:
        return Requirement(condition)
    if not axes:
        # A requirement without axes has fewer operators.
        axes = [Axis(Var("once", I64), IntImm(0, I64), IntImm(1, I64))]
    names, minima, extents = zip(*axes, strict=True)
    requirement = Requirement(condition, None, names, minima, extents)
    return requirement if type_fault(requirement) is None else None


def _related(
    named: Iterable[Var], guards: Iterable[Expr], ranges: Mapping[Var, Axis]
) -> set[Var]:
    """Return the axes `named`, those that a guard relates to them, and those of their ranges."""
    related: set[Var] = set()
    wanted = set(named) & ranges.keys()
    while wanted:
        related |= wanted
        parts = [part for var in wanted for part in ranges[var][1:]]
        parts += [g for g in guards if not related.isdisjoint(variables_in(g))]
        further = {var for part in parts for var in variables_in(part)}
        wanted = (further & ranges.keys()) - related
    return related


def _hold_first(guards: Iterable[Expr], nest: _FlatContext, facts: Facts) -> bool:
    """Return True if `guards` are proved to hold in the first iteration of all axes."""
    first: dict[Var, Expr] = {}
    for axis in nest.axes:
        first[axis.var] = substitute(axis.minimum, first)
    known = nest.facts(facts, guards=())
    return all(prove(substitute(guard, first), known) for guard in guards)
