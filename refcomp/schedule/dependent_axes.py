"""The loops over reduction axes whose ranges depend on other axes, or on elements of tensors.

    k in 0 .. i, inside the loop over i         for k in range(i + 1)
    k in 0 .. i, outside of the loop over i     for k in range(n), with the guard k <= i
    k in 0 .. i, split by 4                     for k.outer in range((i + 4) // 4), ...

The range of a loop may depend on the loops around it. If it depends on a loop further inside, the
loop covers the union of all its ranges. A guard then skips the iterations outside of the range. A
bound that is read from a tensor is stored in a variable before the loop.

Refuses a loop whose bound is read at the index of a loop further inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from refcomp.arith import Facts, interval, simplify
from refcomp.arith.attained import Box
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.records import record
from refcomp.ir.buffer import SHARED
from refcomp.ir.expr import LE, LT, Expr, IntImm, Max, Var
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.schedule.axes import AxisGuard, Region, infer_extents, root_indices
from refcomp.schedule.placement import loops_around
from refcomp.schedule.relations import Relation, Split
from refcomp.schedule.stage import Stage
from refcomp.te.dependent_ranges import dependent_axes, reads_element
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import AxisRange, IterVar

_ZERO = IntImm(0, I64)


@record(eq=False)
class ReadBound:
    """A bound of a range, whose value is read from tensors before a loop."""

    var: Var  # stands for the bound in extents, indices and guards
    value: Expr  # in terms of the axes of the operation
    loop: IterVar  # the loop before which it is read


@record(eq=False)
class LoopRanges:
    """The ranges of all axes of a stage."""

    begins: Mapping[IterVar, Expr]  # the first values of loops, and of dependent axes
    extents: Mapping[IterVar, Expr]
    guards: tuple[AxisGuard, ...] = ()  # of loops that go over more than one range
    read: tuple[ReadBound, ...] = ()
    dependent: frozenset[IterVar] = frozenset()  # axes whose ranges depend on others


@dataclass(frozen=True, slots=True)
class LoopPlace:
    """The place of a stage's loops, for `infer_ranges`."""

    facts: Facts  # what holds outside of them
    variables: Mapping[IterVar, Var]  # the variables of the loops
    region: Region | None = None  # the part of the tensors that is computed; None: all
    # Loops before this position run on the host, around the kernel.
    kernel_start: int = 0
    # The variables of the threads of a group.
    threads: frozenset[Var] = frozenset()
    # True to leave bounds that are read from tensors as they are.
    keeps_reads: bool = False


def infer_ranges(stage: Stage, reduce: Reduce | None, around: LoopPlace) -> LoopRanges:
    """Return the ranges of all axes of the stage.

    Args:
        stage: the stage.
        reduce: its reduction after inlining; None if it has none.
        around: the place of its loops.

    Raises:
        UserError: a range is read from a tensor at an axis whose loop is further inside.
    """
    own = [axis.var for axis in getattr(stage.op, "axis", ())]
    ranges = dependent_axes(reduce, own)
    if not ranges:
        begins = {leaf: leaf.minimum for leaf in stage.loops.leaves}
        return LoopRanges(begins, infer_extents(stage, around.region))
    resolver = _Resolver(stage, ranges, around)
    for axis in ranges:
        resolver.resolve(axis)
    return resolver.found()


def bind_loops(
    facts: Facts,
    leaves: Sequence[IterVar],
    ranges: LoopRanges,
    variables: Mapping[IterVar, Var],
) -> Facts:
    """Return what holds inside of the loops `leaves`."""
    for bound in ranges.read:
        facts = facts.nonnegative(bound.var) if _is_count(bound) else facts
    for leaf in leaves:
        facts = facts.bind(variables[leaf], ranges.begins[leaf], ranges.extents[leaf])
    return facts


def _is_count(bound: ReadBound) -> bool:
    return isinstance(bound.value, Max)  # with 0, see `te.dependent_ranges`


@dataclass(slots=True)
class _Resolver:
    """Finds the ranges of one dependent axis after the other, in terms of loop variables."""

    stage: Stage
    ranges: Mapping[IterVar, AxisRange]  # in terms of the axes of the operation
    around: LoopPlace
    known: dict[IterVar, AxisRange] = field(default_factory=dict)
    # Axes whose loops cover more than their ranges.
    widened: list[IterVar] = field(default_factory=list)
    read: list[ReadBound] = field(default_factory=list)
    # Variable of a bound that is read -> the variables of loops on which it depends.
    needs: dict[Var, set[Var]] = field(default_factory=dict)

    def found(self) -> LoopRanges:
        """Return the ranges, once all axes are resolved."""
        begins = {leaf: leaf.minimum for leaf in self.stage.loops.leaves}
        begins |= {axis: known.minimum for axis, known in self.known.items()}
        return LoopRanges(
            begins,
            self._extents({}),
            tuple(self._guards()),
            tuple(self.read),
            frozenset(self.ranges),
        )

    def _guards(self) -> Iterator[AxisGuard]:
        at = self._values()
        facts = self._facts()
        for axis in self.widened:
            given = self.ranges[axis]
            value = at[axis.var]
            first = substitute(given.minimum, at)
            end = substitute(given.minimum + given.extent, at)
            yield AxisGuard(axis, simplify(LE(first, value), facts))
            yield AxisGuard(axis, simplify(LT(value, end), facts))

    def resolve(self, axis: IterVar) -> None:
        """Find the range of `axis`. Those on which it depends are resolved."""
        # The index of an axis that is fused with this one is not known yet.
        touched = connected(axis, self.stage.loops.relations)
        fused = {one.var for one in self.stage.roots if one in touched}
        at = {var: value for var, value in self._values().items() if var not in fused}
        given = self.ranges[axis]
        own = AxisRange(
            self._bound(axis, "begin", given.minimum, at),
            self._bound(axis, "extent", given.extent, at),
        )
        missing = self._missing(axis, own)
        missing |= fused & (self._expanded(own.minimum) | self._expanded(own.extent))
        self.known[axis] = own
        if missing:
            self.known[axis] = self._hull(axis, own, missing)
            self.widened.append(axis)

    def _bound(
        self, axis: IterVar, name: str, given: Expr, at: Mapping[Var, Expr]
    ) -> Expr:
        """Return a bound in terms of loop variables, or the variable that gets its value."""
        value = substitute(given, at)
        if self.around.keeps_reads or not reads_element(value):
            return simplify(value, self._facts())
        var = Var(f"{axis.name}.{name}", I64)
        loops = {*self.around.variables.values(), *self.around.threads}
        self.needs[var] = self._expanded(value) & loops
        self.read.append(ReadBound(var, given, self._home(axis, self.needs[var])))
        return var

    def _home(self, axis: IterVar, needed: set[Var]) -> IterVar:
        """Return the loop before which a bound is read. The bound needs the variables `needed`."""
        bound = self.stage.threads.bound
        loops = [leaf for leaf in self._component(axis) if leaf not in bound]
        for leaf in loops:
            if needed <= self._available(leaf):
                return leaf
        return (loops or self._component(axis))[0]

    def _expanded(self, expr: Expr) -> set[Var]:
        """Return the variables of `expr`, and those that its bounds from tensors need."""
        found = set(variables_in(expr))
        for var in tuple(found):
            found |= self.needs.get(var, set())
        return found

    # Loops.

    def _extents(self, more: Mapping[IterVar, AxisRange]) -> dict[IterVar, Expr]:
        """Return the extents of all axes. Those of axes that are not resolved are variables."""
        dependent: dict[IterVar, Expr] = {}
        for axis in self.ranges:
            known = more.get(axis) or self.known.get(axis)
            dependent[axis] = Var("unknown", I64) if known is None else known.extent
        region = self.around.region
        return infer_extents(self.stage, region, dependent, self.around.facts)

    def _facts(self) -> Facts:
        """Return what holds inside of the loops whose ranges are known."""
        extents = self._extents({})
        facts = self.around.facts
        for bound in self.read:
            if _is_count(bound):
                facts = facts.nonnegative(bound.var)
        for leaf in self.stage.loops.leaves:
            if self._is_known(leaf):
                begin = self._begin(leaf)
                facts = facts.bind(self.around.variables[leaf], begin, extents[leaf])
        return facts

    def _is_known(self, leaf: IterVar) -> bool:
        unknown = [axis for axis in self.ranges if axis not in self.known]
        return not any(leaf in self._component(axis) for axis in unknown)

    def _begin(self, axis: IterVar) -> Expr:
        known = self.known.get(axis)
        return axis.minimum if known is None else known.minimum

    def _values(self) -> dict[Var, Expr]:
        """Return the operation's axes in terms of loop variables."""
        begins = {axis: known.minimum for axis, known in self.known.items()}
        found = root_indices(
            self.stage,
            self._extents({}),
            self.around.facts,
            self.around.variables,
            self.around.region,
            begins,
        )
        return {axis.var: found.values[axis] for axis in self.stage.roots}

    def _component(self, axis: IterVar) -> list[IterVar]:
        """Return the loops that `axis` was split into or fused with, outermost first."""
        touched = connected(axis, self.stage.loops.relations)
        return [leaf for leaf in self.stage.loops.leaves if leaf in touched]

    def _missing(self, axis: IterVar, own: AxisRange) -> set[Var]:
        """Return the loop variables that have no value yet where a range of `own` needs them."""
        extents = self._extents({axis: own})
        missing: set[Var] = set()
        for leaf in self._component(axis):
            needed = self._expanded(extents[leaf])
            if leaf is axis:
                needed |= self._expanded(own.minimum)
            missing |= needed - self._available(leaf)
            if self._shares_memory(leaf):
                missing |= needed & self.around.threads
        for bound in self.read:
            # Its value stands before the outermost of the loops.
            if bound.var in (own.minimum, own.extent):
                missing |= self.needs[bound.var] - self._available(bound.loop)
        loops = {*self.around.variables.values(), *self.around.threads}
        return missing & loops

    def _available(self, leaf: IterVar) -> set[Var]:
        """Return the variables of the loops of this stage, and of the threads, around `leaf`."""
        bound = self.stage.threads.bound
        variables = self.around.variables
        if leaf in bound:
            return set()  # the loops of a kernel stand side by side
        position = self.stage.loops.position(leaf)
        outside = self.stage.loops.leaves[:position]
        threads: Iterable[Var] = ()
        if position >= self.around.kernel_start:
            outside = [*outside, *bound]
            threads = self.around.threads
        return {*threads, *(variables[one] for one in outside)}

    def _shares_memory(self, leaf: IterVar) -> bool:
        """Return True if threads fill shared memory inside of the loop, which needs barriers.

        All threads of a group reach a barrier equally often.
        """
        position = self.stage.loops.position
        for other in self.stage.siblings:
            if other.memory.scope != SHARED:
                continue
            for loop in loops_around(other):
                if loop.stage is self.stage and position(loop.axis) >= position(leaf):
                    return True
        return False

    # Loops over more than one range.

    def _hull(self, axis: IterVar, own: AxisRange, missing: set[Var]) -> AxisRange:
        """Return the range that holds `own` for all values of the variables `missing`."""
        read = [bound.var for bound in self.read]
        for end in (own.minimum, own.extent):
            if reads_element(end) or not self._expanded(end).isdisjoint(read):
                self._refuse(axis, missing)
        box = Box(self.around.facts)
        facts = self.around.facts
        extents = self._extents({})
        # The variables of bounds of these loops run, too.
        for leaf in reversed(self.stage.loops.leaves):
            if self.around.variables[leaf] in missing:
                missing = missing | set(variables_in(extents[leaf]))
        own_loops = set(self.around.variables.values())
        for thread in sorted(missing & self.around.threads - own_loops, key=str):
            values = interval(thread, facts)  # of a kernel that begins around the stage
            if values.low is None or values.high is None:
                self._refuse(axis, missing)
            count = IntImm(values.high - values.low + 1, I64)
            box = box.with_axis(thread, IntImm(values.low, I64), count)
        for leaf in self.stage.loops.leaves:
            var = self.around.variables[leaf]
            begin = self._begin(leaf)
            if self._is_known(leaf):
                facts = facts.bind(var, begin, extents[leaf])
                if var in missing:
                    box = box.with_axis(var, begin, extents[leaf])
        last = simplify(own.minimum + own.extent - 1, facts)
        for one in self.stage.roots:
            if one.var in missing:  # fused with this axis
                known = self.known.get(one, AxisRange(one.minimum, one.extent))
                facts = facts.bind(one.var, known.minimum, known.extent)
                box = box.with_axis(one.var, known.minimum, known.extent)
        low = box.attained(own.minimum) if box.is_known else None
        high = box.attained(last) if box.is_known else None
        if low is not None and high is not None and not (low.wraps or high.wraps):
            return _range(low.low, high.high, self.around.facts)
        least = interval(own.minimum, facts).low
        most = interval(last, facts).high
        if least is None or most is None or most >= _MAX_COUNT:
            self._refuse(axis, missing)
        return _range(least, most, self.around.facts)

    def _refuse(self, axis: IterVar, missing: set[Var]) -> NoReturn:
        variables = self.around.variables
        first = self._component(axis)[0]
        loops = [x for x in self.stage.loops.leaves if variables[x] in missing]
        inner = [x.name for x in loops] or sorted(var.name for var in missing)
        names = ", ".join(inner)
        why = "which has no value outside of its own loop"
        remedy = f"reorder so that {names} is outside of {first.name}"
        if missing & self.around.threads:
            why = "but all threads of a group fill shared memory inside of the loop"
            remedy = f"fill shared memory outside of {first.name}, or use local memory"
        raise UserError(
            f"loop {first.name} of stage {self.stage.name} has an unknown number of iterations",
            where=f"stage {self.stage.name}",
            why=f"the range of axis {axis.name} depends on {names}, {why}",
            remedy=remedy,
            earlier=[self.stage.declaration()],
        )


# A greater bound follows from the limits of i64 (as in `lowering.bounds.ranges`).
_MAX_COUNT = 1 << 40


def _range(low: int | Expr, high: int | Expr, facts: Facts) -> AxisRange:
    first = IntImm(low, I64) if isinstance(low, int) else low
    last = IntImm(high, I64) if isinstance(high, int) else high
    return AxisRange(first, simplify(Max(last - first + 1, _ZERO), facts))


def connected(axis: IterVar, relations: Sequence[Relation]) -> set[IterVar]:
    """Return all axes that splits and fusions connect with `axis`."""
    touched = {axis}
    # Each round finds another relation, or the set is closed: as many rounds are enough.
    for _ in relations:
        for relation in relations:
            third = relation.parent if isinstance(relation, Split) else relation.fused
            if not touched.isdisjoint({relation.outer, relation.inner, third}):
                touched |= {relation.outer, relation.inner, third}
    return touched
