"""Regions: the part of an attached stage that is needed at a time.

Each read of the stage's tensors in a stage inside the same loop has indices. The range
of each index is found over all loops that run while the region stays (see `ranges`). The
region is the box around the ranges of all reads: a tile and its halo. In a kernel, two
more rules hold:

- Shared memory is filled for a whole group, so all its threads count as running.
- Local memory is filled by one thread for itself, so the threads do not run.

The extent of a region is a constant if a bound is proved. Then the region of the last
tile reaches beyond the tensor, and guards keep its stores inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.arith import Facts, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import LOCAL, SHARED, StorageScope
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Max, Var
from refcomp.ir.rewrite import memoised, substitute, variables_in, walk
from refcomp.ir.stmt import BLOCK_TAGS, THREADS_IN_BLOCK_TAGS, VTHREAD
from refcomp.lowering.bounds.kernels import Kernel
from refcomp.lowering.bounds.ranges import (
    Range,
    RangeFinder,
    intersect,
    is_at_most,
    span_between,
    union,
    upper_bound,
)
from refcomp.schedule.axes import Indices, Region
from refcomp.schedule.dependent_axes import LoopRanges
from refcomp.schedule.placement import (
    NestLoop,
    loops_around,
    loops_between,
    place_text,
    placement_lines,
)
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import IterVar, TensorRead

_ZERO = IntImm(0, I64)


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a stage is computed."""

    stage: Stage
    # The scope of the stage's memory.
    scope: StorageScope
    # The kernel that the stage is computed in, if any.
    kernel: Kernel | None
    # What is known outside of the stage's own loops.
    facts: Facts


@dataclass(frozen=True, slots=True)
class StageBounds:
    """The loops and the indices of a stage, as bounds inference found them."""

    place: Place
    # The region that is computed at a time; None: all.
    region: Region | None
    # The ranges of all axes; variables of the loops.
    ranges: LoopRanges
    variables: Mapping[IterVar, Var]
    # The axes as expressions of the loops, and the guards.
    indices: Indices
    # The expressions of the stage after inlining.
    bodies: tuple[Expr, ...]
    # What is known inside the stage's loops.
    facts: Facts
    # What is known where its result is initialised.
    output_facts: Facts

    @property
    def stage(self) -> Stage:
        """The stage."""
        return self.place.stage

    @property
    def extents(self) -> Mapping[IterVar, Expr]:
        """The extents of all axes."""
        return self.ranges.extents


def infer_region(
    place: Place,
    readers: Sequence[StageBounds],
    bounds: Mapping[Stage, StageBounds],
    symbols: Collection[Var],
) -> Region:
    """Return the region of the attached stage of `place`.

    Args:
        place: the stage.
        readers: the bounds of the stages that read it.
        bounds: the bounds of all stages around it and inside the same loop.
        symbols: the shape variables.

    Raises:
        UserError: local or shared memory has a size without a constant bound.
    """
    needs = _Needs(place, bounds)
    boxes = [box for reader in readers for box in needs.boxes(reader)]
    origin: list[Expr] = []
    extents: list[Expr] = []
    for k, dim in enumerate(place.stage.op.outputs[0].shape):
        ranges = [box[k] for box in boxes]
        low, extent = _dimension(ranges, dim, place.facts, symbols)
        origin.append(low)
        extents.append(extent)
    region = Region(tuple(origin), tuple(extents))
    needs.check_size(region, readers)
    return region


def check_size(
    stage: Stage, scope: StorageScope, shape: Iterable[Expr], remedy: str
) -> None:
    """Raise UserError for local or shared memory whose size is not a constant.

    Args:
        stage: the stage whose memory it is.
        scope: the scope of the memory.
        shape: its shape, in elements.
        remedy: what the message advises.
    """
    for k, extent in enumerate(shape):
        if scope in (LOCAL, SHARED) and as_int(extent) is None:
            raise UserError(
                f"{scope} memory of unknown size: dimension {k} of {stage.name} "
                f"is {extent} elements long",
                where=place_text(stage),
                why=f"{scope} memory is laid out before the program runs",
                remedy=remedy,
                earlier=[stage.declaration(), *placement_lines(stage)],
            )


class _Needs:
    """The parts of one stage that its readers need."""

    def __init__(self, place: Place, bounds: Mapping[Stage, StageBounds]) -> None:
        self.stage = place.stage
        self.scope = place.scope
        self.kernel = place.kernel
        self.facts = place.facts
        self.bounds = bounds

    def boxes(self, reader: StageBounds) -> Iterator[list[Range | None]]:
        """Yield the ranges of the indices of each read, one for each dimension.

        Two ranges are intersected: over the loops, which keeps the parts of a fused axis
        together, and over the reader's axes, which cuts off tails.
        """
        facts = reader.facts
        values = {axis.var: _value(reader, axis) for axis in reader.stage.roots}
        loops = RangeFinder(self._running(reader), facts)
        axes = RangeFinder(_axis_ranges(reader, values, loops), facts)

        def find(recurse: object, index: Expr) -> Range | None:
            by_loops = loops.of(simplify(substitute(index, values), facts))
            by_axes = axes.of(index)
            if by_loops is None or by_axes is None:
                return by_axes if by_loops is None else by_loops
            return intersect(by_loops, by_axes, self.facts)

        # The reads of a stencil have few different indices. Each is examined once.
        range_of = memoised(find)
        tensors = set(self.stage.op.outputs)
        seen: set[int] = set()
        for node in (node for body in reader.bodies for node in walk(body)):
            if not isinstance(node, TensorRead) or node.tensor not in tensors:
                continue
            if id(node) not in seen:
                seen.add(id(node))
                yield [range_of(facts.table.intern(index)) for index in node.indices]

    def _running(self, reader: StageBounds) -> dict[Var, Range | None]:
        """Return the range of each variable that changes while the region stays."""
        running: dict[Var, Range | None] = {}
        for known in self.bounds.values():
            # Nothing is known of a bound that is read from a tensor.
            running |= dict.fromkeys([bound.var for bound in known.ranges.read])
        for var, found in self._loops(reader):
            running[var] = _over_all(found, running, reader.facts)
        return running

    def _loops(self, reader: StageBounds) -> Iterator[tuple[Var, Range]]:
        """Yield the range of each loop that runs while the region stays, outermost first."""
        facts = reader.facts
        if self.scope == SHARED and self.kernel is not None:
            yield from self._threads(self.kernel, THREADS_IN_BLOCK_TAGS, facts)
        if self.scope == SHARED:
            for loop in loops_around(self.stage):
                # Virtual threads share memory as real threads do.
                if loop.stage.loops.marks.get(loop.axis) == VTHREAD:
                    yield self._range_of_loop(loop, facts)
        for loop in loops_between(self.stage, reader.stage):
            place = self.bounds[loop.stage].place
            # Another kernel is launched after this one, from a loop of the host. All of
            # its loops run.
            is_same_kernel = self.kernel is not None and place.kernel is self.kernel
            # Each instance of the memory belongs to one group, and local memory to one
            # thread.
            mark = loop.stage.loops.marks.get(loop.axis, "")
            is_own_thread = mark in THREADS_IN_BLOCK_TAGS and self.scope == LOCAL
            stays = mark in BLOCK_TAGS or is_own_thread
            if not (is_same_kernel and stays):
                yield self._range_of_loop(loop, facts)
        there = reader.place.kernel
        if there is not None and there is not self.kernel:
            # The region of a copy may depend on threads of a kernel that begins further
            # inside than the copy itself.
            tags = (*BLOCK_TAGS, *THREADS_IN_BLOCK_TAGS)
            yield from self._threads(there, tags, facts)

    def _range_of_loop(self, loop: NestLoop, facts: Facts) -> tuple[Var, Range]:
        known = self.bounds[loop.stage]
        extent = known.extents[loop.axis]
        var = known.variables[loop.axis]
        return var, _of_extent(known.ranges.begins[loop.axis], extent, facts)

    def _threads(
        self, kernel: Kernel, tags: Iterable[str], facts: Facts
    ) -> Iterator[tuple[Var, Range]]:
        for tag in tags:
            # If the loops of a tag have different extents, the kernel is refused later.
            for loop in kernel.bound.get(tag, ()):
                if loop.stage in self.bounds:
                    extent = self.bounds[loop.stage].extents[loop.axis]
                    yield kernel.variables[tag], _of_extent(_ZERO, extent, facts)

    def check_size(self, region: Region, readers: Sequence[StageBounds]) -> None:
        """Raise UserError for local or shared memory whose size is not a constant."""
        stage = self.stage
        remedy = (
            "read a part of it whose size is a constant, or keep it in global memory"
        )
        loops = [loop for r in readers for loop in loops_between(stage, r.stage)]
        for loop in loops:
            if as_int(self.bounds[loop.stage].extents[loop.axis]) is None:
                remedy = (
                    f"split axis {loop.axis.name} of stage {loop.stage.name} by a factor, "
                    f"and compute {stage.name} inside the outer of both loops"
                )
                break
        check_size(stage, self.scope, region.extent, remedy)


def _axis_ranges(
    reader: StageBounds, values: Mapping[Var, Expr], loops: RangeFinder
) -> dict[Var, Range | None]:
    """Return the range of each of the reader's own axes.

    Guards keep an axis inside its domain and its region, whatever the loops are.
    """
    facts = reader.facts
    ranges: dict[Var, Range | None] = {}
    for axis in reader.stage.roots:
        found = loops.of(values[axis.var])
        if axis in reader.ranges.dependent:
            ranges[axis.var] = found
            continue
        domain = _of_extent(axis.minimum, axis.extent, facts)
        if found is not None:
            domain = intersect(found, domain, facts)
        ranges[axis.var] = domain
    for part in _region_axes(reader):
        first = loops.of(part.origin)
        last = loops.of(simplify(part.origin + part.extent - 1, facts))
        if first is not None and last is not None:
            inside = Range(first.low, last.high, None)
            known = ranges[part.axis.var]
            assert known is not None  # no axis of a region depends on others
            ranges[part.axis.var] = intersect(known, inside, facts)
    return ranges


def _value(reader: StageBounds, axis: IterVar) -> Expr:
    """Return one of the reader's own axes as an expression of loops.

    If a single value is computed at a time, the result is this value, not the expression
    of loops. A split of the axis visits points beyond, which guards cut off. These points
    would ask for more: in a scan, for rows that are not computed yet.
    """
    extent = axis.extent
    origin = axis.minimum
    for part in _region_axes(reader):
        if part.axis is axis:
            extent = part.extent
            origin = part.origin
    if as_int(extent) == 1 and axis not in reader.ranges.dependent:
        return origin
    return reader.indices.values[axis]


@dataclass(frozen=True, slots=True, eq=False)
class _RegionAxis:
    """The part of a reader's own axis that lies in the reader's region."""

    axis: IterVar
    origin: Expr
    extent: Expr


def _region_axes(reader: StageBounds) -> Iterator[_RegionAxis]:
    if reader.region is not None:
        region = reader.region
        yield from map(_RegionAxis, reader.stage.roots, region.origin, region.extent)


def _over_all(
    found: Range, running: Mapping[Var, Range | None], facts: Facts
) -> Range | None:
    """Return the range of a loop for all values of the variables that run around it."""
    ends = (*variables_in(found.low), *variables_in(found.high))
    if running.keys().isdisjoint(ends):
        return found
    finder = RangeFinder(running, facts)
    low = finder.of(found.low)
    high = finder.of(found.high)
    if low is None or high is None:
        return None
    return Range(low.low, high.high, span_between(low.low, high.high, facts))


def _of_extent(low: Expr, extent: Expr, facts: Facts) -> Range:
    high = simplify(low + extent - 1, facts)
    count = upper_bound(extent, facts)
    span = None if count is None else max(0, count - 1)
    return Range(low, high, span)


def _dimension(
    ranges: Sequence[Range | None], dim: Expr, facts: Facts, symbols: Collection[Var]
) -> tuple[Expr, Expr]:
    """Return origin and extent of a region in one dimension.

    Args:
        ranges: the range of each read; None: not known.
        dim: the number of elements of the tensor.
        facts: what is known where the stage is computed.
        symbols: the shape variables.
    """
    whole = (_ZERO, dim)
    if not ranges or None in ranges:
        return whole
    # Reads at one place have the same range, as the same object.
    distinct = {id(one): one for one in ranges if one is not None}
    found, *others = distinct.values()
    for other in others:
        found = union(found, other, facts)
    domain = _of_extent(_ZERO, dim, facts)
    found = intersect(found, domain, facts)
    extent = _extent(found, facts)
    if as_int(extent) is not None:
        return whole if is_at_most(dim, extent, facts) else (found.low, extent)
    # An extent that depends on the loops around does not bound the loops inside.
    is_fixed = all(var in symbols for var in variables_in(extent))
    return (found.low, extent) if is_fixed and as_int(dim) is None else whole


def _extent(found: Range, facts: Facts) -> Expr:
    """Return the number of elements of a range, or a constant that is not less."""
    exact = simplify(Max(found.high - found.low + 1, _ZERO), facts)
    if as_int(exact) is not None:
        return exact
    bounds: list[int] = []
    bound = upper_bound(exact, facts)
    if bound is not None:
        bounds.append(bound)
    if found.span is not None:
        bounds.append(found.span + 1)
    if not bounds:
        return exact
    return IntImm(max(0, min(bounds)), I64)
