"""Regions: how much of an attached stage is needed at a time.

For each read of the stage's tensors, in each stage that is computed inside the same loop, the range
of every index is found while all loops that run inside run (see `refcomp.lowering.bounds.ranges`).
The region is the box around all of them: a tile and its halo. Two more rules hold in a kernel:

- shared memory is filled for a whole group, so that all its threads count as running;
- local memory is filled by one thread for itself, so that the threads stand still.

A region's extent is a constant wherever a bound is proved: then the region of the last tile reaches
beyond the tensor, and guards keep its stores inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, Expr, IntImm, Max, Var
from refcomp.ir.rewrite import memoised, substitute, variables_in, walk
from refcomp.ir.stmt import BLOCK_TAGS, THREADS_IN_BLOCK_TAGS, VTHREAD
from refcomp.lowering.bounds.kernels import LOCAL, SHARED, Kernel
from refcomp.lowering.bounds.ranges import (
    Range,
    RangeFinder,
    intersect,
    union,
    upper_bound,
)
from refcomp.schedule.axes import Indices, Region
from refcomp.schedule.placement import NestLoop, loops_around, loops_between, place_text
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import IterVar, TensorRead

_ZERO = IntImm(0, I64)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stage is computed: its memory's scope, the kernel it is in, if any, and what is known
    there, outside its own loops."""

    stage: Stage
    scope: str
    kernel: Kernel | None
    facts: Facts


@dataclass(frozen=True, slots=True)
class StageBounds:
    """What lowering knows of a stage: its place, the region computed at a time (None: all), its
    loops' extents and variables, its axes in terms of them, its bodies after inlining, and the
    facts inside its loops."""

    place: Place
    region: Region | None
    extents: Mapping[IterVar, Expr]
    variables: Mapping[IterVar, Var]
    indices: Indices
    bodies: tuple[Expr, ...]
    facts: Facts

    @property
    def stage(self) -> Stage:
        """The stage."""
        return self.place.stage


def infer_region(
    place: Place,
    readers: Sequence[StageBounds],
    bounds: Mapping[Stage, StageBounds],
    symbols: Collection[Var],
) -> Region:
    """The region of the attached stage of `place`, which `readers` read.

    `bounds` are those of all stages around and inside, `symbols` the shape variables. UserError for
    local and shared memory whose size has no constant bound.
    """
    needs = _Needs(place, bounds)
    boxes = [box for reader in readers for box in needs.boxes(reader)]
    shape = place.stage.op.outputs[0].shape
    dims = [
        _dimension([box[k] for box in boxes], dim, place.facts, symbols)
        for k, dim in enumerate(shape)
    ]
    region = Region(tuple(low for low, _ in dims), tuple(extent for _, extent in dims))
    needs.check_size(region, readers)
    return region


def check_size(stage: Stage, scope: str, shape: Iterable[Expr], remedy: str) -> None:
    """UserError unless each dimension of `shape` is a constant, where the scope asks for it."""
    for k, extent in enumerate(shape):
        if scope in (LOCAL, SHARED) and as_int(extent) is None:
            raise UserError(
                f"{scope} memory of unknown size: dimension {k} of {stage.name} "
                f"is {extent} elements long",
                where=place_text(stage),
                why=f"{scope} memory is laid out before the program runs",
                remedy=remedy,
            )


class _Needs:
    """What the readers of one stage need of it."""

    def __init__(self, place: Place, bounds: Mapping[Stage, StageBounds]) -> None:
        self.stage, self.scope = place.stage, place.scope
        self.kernel, self.facts, self.bounds = place.kernel, place.facts, bounds

    def boxes(self, reader: StageBounds) -> Iterator[list[Range | None]]:
        """A range for each dimension, of each read."""
        loops = RangeFinder(self._running(reader), reader.facts)
        values = {axis.var: _value(reader, axis) for axis in reader.stage.roots}
        axes = RangeFinder(self._axis_ranges(reader, values, loops), reader.facts)

        def find(recurse: object, index: Expr) -> Range | None:
            whole = simplify(substitute(index, values), reader.facts)
            return self._range(whole, index, loops, axes)

        # The reads of a stencil have few indices between them: each is looked at once.
        range_of = memoised(find)
        for read in _reads(reader.bodies, self.stage):
            yield [range_of(reader.facts.table.intern(index)) for index in read.indices]

    def _range(
        self, of_loops: Expr, of_axes: Expr, loops: RangeFinder, axes: RangeFinder
    ) -> Range | None:
        """By loops a fused axis keeps its parts together, by axes tails are cut off."""
        first, second = loops.of(of_loops), axes.of(of_axes)
        if first is None or second is None:
            return second if first is None else first
        return intersect(first, second, self.facts)

    def _running(self, reader: StageBounds) -> dict[Var, Range | None]:
        """The ranges of all loops that run while the region stays, outermost first."""
        return dict(self._loops(reader))

    def _loops(self, reader: StageBounds) -> Iterator[tuple[Var, Range]]:
        if self.scope == SHARED and self.kernel is not None:
            yield from self._threads(self.kernel, THREADS_IN_BLOCK_TAGS, reader.facts)
        if self.scope == SHARED:
            for loop in loops_around(self.stage):
                # Virtual threads share what real ones do.
                if loop.stage.loops.marks.get(loop.axis) == VTHREAD:
                    yield self._range_of_loop(loop, reader.facts)
        for loop in loops_between(self.stage, reader.stage):
            mark = loop.stage.loops.marks.get(loop.axis, "")
            known = self.bounds[loop.stage]
            # Those of another kernel, launched after this one from a loop of the host's, all run.
            is_same_kernel = (
                self.kernel is not None and known.place.kernel is self.kernel
            )
            if is_same_kernel and (
                mark in BLOCK_TAGS
                or (mark in THREADS_IN_BLOCK_TAGS and self.scope == LOCAL)
            ):
                continue
            yield self._range_of_loop(loop, reader.facts)
        there = reader.place.kernel
        if there is not None and there is not self.kernel:
            # A copy's region may follow threads that begin further inside than its own place.
            tags = (*BLOCK_TAGS, *THREADS_IN_BLOCK_TAGS)
            yield from self._threads(there, tags, reader.facts)

    def _range_of_loop(self, loop: NestLoop, facts: Facts) -> tuple[Var, Range]:
        known = self.bounds[loop.stage]
        extent = known.extents[loop.axis]
        return known.variables[loop.axis], _of_extent(loop.axis.minimum, extent, facts)

    def _threads(
        self, kernel: Kernel, tags: Iterable[str], facts: Facts
    ) -> Iterator[tuple[Var, Range]]:
        for tag in tags:
            # Those who bind a tag agree on its extent, or are refused later.
            for loop in kernel.bound.get(tag, ()):
                if loop.stage in self.bounds:
                    extent = self.bounds[loop.stage].extents[loop.axis]
                    yield kernel.variables[tag], _of_extent(_ZERO, extent, facts)

    def _axis_ranges(
        self, reader: StageBounds, values: Mapping[Var, Expr], loops: RangeFinder
    ) -> dict[Var, Range | None]:
        """The range of each of the reader's own axes, which no guard lets beyond its domain, nor
        beyond its region, whatever its loops are."""
        facts = reader.facts
        ranges: dict[Var, Range] = {}
        for axis in reader.stage.roots:
            found = loops.of(values[axis.var])
            domain = _of_extent(axis.minimum, axis.extent, facts)
            ranges[axis.var] = (
                domain if found is None else intersect(found, domain, facts)
            )
        for part in _region_axes(reader):
            first = loops.of(part.origin)
            last = loops.of(simplify(part.origin + part.extent - 1, facts))
            if first is not None and last is not None:
                inside = Range(first.low, last.high, None)
                var = part.axis.var
                ranges[var] = intersect(ranges[var], inside, facts)
        return {**ranges}

    def check_size(self, region: Region, readers: Sequence[StageBounds]) -> None:
        """Refuses memory that is laid out before the program runs, but whose size is not known."""
        stage = self.stage
        if stage.attach_point is None or self.scope not in (LOCAL, SHARED):
            return
        guilty = next(self._loops_of_unknown_extent(readers), None)
        remedy = (
            "read a part of it whose size is a constant, or keep it in global memory"
        )
        if guilty is not None:
            axis = guilty.axis
            remedy = (
                f"split axis {axis.name} of stage {guilty.stage.name} by a factor, and compute "
                f"{stage.name} inside the outer of both loops"
            )
        check_size(stage, self.scope, region.extent, remedy)

    def _loops_of_unknown_extent(
        self, readers: Sequence[StageBounds]
    ) -> Iterator[NestLoop]:
        for reader in readers:
            for loop in loops_between(self.stage, reader.stage):
                if as_int(self.bounds[loop.stage].extents[loop.axis]) is None:
                    yield loop


def _value(reader: StageBounds, axis: IterVar) -> Expr:
    """Return one of the reader's own axes as an expression of loops.

    Where one value alone is computed at a time, it is that value, and not that of the loops: a
    split of the axis visits points beyond, which guards cut off. They would ask for more, and in
    a scan for rows that are not computed yet.
    """
    extent, origin = axis.extent, axis.minimum
    for part in _region_axes(reader):
        if part.axis is axis:
            extent, origin = part.extent, part.origin
    return origin if as_int(extent) == 1 else reader.indices.values[axis]


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


def _of_extent(low: Expr, extent: Expr, facts: Facts) -> Range:
    high = simplify(low + extent - 1, facts)
    most = upper_bound(extent, facts)
    return Range(low, high, None if most is None else max(0, most - 1))


def _reads(bodies: Iterable[Expr], stage: Stage) -> Iterator[TensorRead]:
    made = set(stage.op.outputs)
    seen: set[int] = set()
    for body in bodies:
        for node in walk(body):
            if (
                isinstance(node, TensorRead)
                and node.tensor in made
                and id(node) not in seen
            ):
                seen.add(id(node))
                yield node


def _dimension(
    ranges: Sequence[Range | None], dim: Expr, facts: Facts, symbols: Collection[Var]
) -> tuple[Expr, Expr]:
    """Origin and extent of one dimension, of `dim` elements, that is read in `ranges`."""
    whole = (_ZERO, dim)
    if not ranges or None in ranges:
        return whole
    found, *others = {id(one): one for one in ranges if one is not None}.values()
    for other in others:
        found = union(found, other, facts)
    found = intersect(found, _of_extent(_ZERO, dim, facts), facts)
    extent = _extent(found, facts)
    if as_int(extent) is None:
        # An extent that changed with the loops around would be no bound of what they compute.
        stays = all(var in symbols for var in variables_in(extent))
        return (found.low, extent) if stays and as_int(dim) is None else whole
    return whole if prove(LE(dim, extent), facts) else (found.low, extent)


def _extent(found: Range, facts: Facts) -> Expr:
    """How many elements a range holds, or a constant that is no less."""
    exact = simplify(Max(found.high - found.low + 1, _ZERO), facts)
    if as_int(exact) is not None:
        return exact
    most = upper_bound(exact, facts)
    span = None if found.span is None else found.span + 1
    bounds = [bound for bound in (most, span) if bound is not None]
    return IntImm(max(0, min(bounds)), I64) if bounds else exact
