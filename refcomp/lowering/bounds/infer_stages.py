"""Infers the bounds of all stages of a schedule, consumers before producers.

What a stage computes at a time depends on its readers. So the stages are visited from
the outputs backwards.

Refuses:
- attached stages that are read outside of their loop;
- loops bound to one thread axis, but with different extents;
- scopes that are not possible, and marks that do not fit the extents found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.arith import Facts, simplify
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, Var
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import PARALLEL, THREADS_IN_BLOCK_TAGS
from refcomp.lowering.bounds.kernels import Kernel, find_kernels, scope_of
from refcomp.lowering.bounds.ranges import is_equal
from refcomp.lowering.bounds.regions import (
    Place,
    StageBounds,
    check_size,
    infer_region,
)
from refcomp.schedule.axes import Indices, Region, root_indices
from refcomp.schedule.dependent_axes import (
    LoopPlace,
    LoopRanges,
    bind_loops,
    infer_ranges,
)
from refcomp.schedule.placement import NestLoop, check_attachments
from refcomp.schedule.primitives.mark import check_extent
from refcomp.schedule.stage import Stage
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import REDUCTION, IterVar, TensorRead

Bodies = Mapping[Stage, Sequence[Expr]]


def infer_stages(
    stages: Sequence[Stage], bodies: Bodies, facts: Facts
) -> dict[Stage, StageBounds]:
    """Return the bounds of `stages`.

    Args:
        stages: all stages that are computed, producers first.
        bodies: the expressions of each stage after inlining.
        facts: what is known of the shape variables.

    Raises:
        UserError: see the module docstring.
    """
    readers = _readers(stages, bodies)
    check_attachments(stages, readers)
    kernels = find_kernels(stages)
    scopes = {stage: scope_of(stage, kernels.get(stage)) for stage in stages}
    tensors = [tensor for stage in stages for tensor in stage.op.outputs]
    dims = (dim for tensor in tensors for dim in tensor.shape)
    symbols = {var for dim in dims for var in variables_in(dim)}
    bounds: dict[Stage, StageBounds] = {}
    # Consumers first: the region of a stage depends on the loops of its readers.
    for stage in reversed(stages):
        kernel = kernels.get(stage)
        # All loops of a kernel that are bound to one tag share a variable.
        variables = {leaf: leaf.var for leaf in stage.loops.leaves}
        if kernel is not None:
            for leaf in stage.threads.bound:
                variables[leaf] = kernel.variables[stage.loops.marks[leaf]]
        around = _facts_around(stage, bounds, facts)
        place = Place(stage, scopes[stage], kernel, around)
        region = None
        if stage.loops.statement is not None:
            bounds[stage] = _bounds_of_statement(place, bodies[stage])
            continue
        if stage.attach_point is None:
            remedy = "compute it at a loop of its consumer, or keep it in global memory"
            check_size(stage, place.scope, stage.op.outputs[0].shape, remedy)
        else:
            known = [bounds[reader] for reader in readers[stage]]
            region = infer_region(place, known, bounds, symbols)
        bounds[stage] = _bounds_of(place, region, bodies[stage], variables)
    for kernel in dict.fromkeys(kernels.values()):
        _check_threads(kernel, bounds, facts)
    for stage in stages:
        _check_read_bounds(bounds[stage])
    return bounds


def _bounds_of_statement(place: Place, bodies: Sequence[Expr]) -> StageBounds:
    """Return the bounds of a hybrid function, whose loops have their extents and guards already."""
    shape = place.stage.op.outputs[0].shape
    check_size(place.stage, place.scope, shape, "keep it in global memory")
    nothing = Indices({}, ())
    return StageBounds(
        place,
        None,
        LoopRanges({}, {}),
        {},
        nothing,
        tuple(bodies),
        place.facts,
        place.facts,
    )


def _bounds_of(
    place: Place,
    region: Region | None,
    bodies: Sequence[Expr],
    variables: Mapping[IterVar, Var],
) -> StageBounds:
    """Return the bounds of a stage at its place, whose region is known."""
    stage = place.stage
    kernel = place.kernel
    reduce = bodies[0] if bodies else None
    ranges = infer_ranges(
        stage,
        reduce if isinstance(reduce, Reduce) else None,
        LoopPlace(
            place.facts,
            variables,
            region,
            kernel.start if kernel is not None and kernel.stage is stage else 0,
            _threads_of(kernel),
        ),
    )
    extents = ranges.extents
    inside = bind_loops(place.facts, stage.loops.leaves, ranges, variables)
    for leaf, mark in stage.loops.marks.items():
        check_extent(stage, leaf, extents[leaf], mark)
        # Threads of the host cannot run loops of a kernel.
        if kernel is not None and mark == PARALLEL:
            stage.refuse(
                "parallel",
                leaf.name,
                "the stage has loops in a kernel, "
                f"which begins at stage {kernel.stage.name}",
                "bind the loop to a thread axis",
            )
    around_reduction = inside
    if ranges.dependent:
        # A reduction may be empty for some elements. Then its loops imply nothing.
        leaves = [leaf for leaf in stage.loops.leaves if leaf.kind != REDUCTION]
        around_reduction = bind_loops(place.facts, leaves, ranges, variables)
    indices = root_indices(
        stage,
        extents,
        inside,
        variables,
        region,
        ranges.begins,
        ranges.guards,
        around_reduction if ranges.dependent else None,
    )
    return StageBounds(
        place,
        region,
        ranges,
        variables,
        indices,
        tuple(bodies),
        inside,
        around_reduction,
    )


def _threads_of(kernel: Kernel | None) -> frozenset[Var]:
    """Return the variables of the threads of a group of the kernel."""
    if kernel is None:
        return frozenset()
    tags = [tag for tag in kernel.tags if tag in THREADS_IN_BLOCK_TAGS]
    return frozenset([kernel.variables[tag] for tag in tags])


def _check_read_bounds(bounds: StageBounds) -> None:
    """Refuse a producer that is computed inside of the loops that its elements bound."""
    stage = bounds.stage
    for bound in bounds.ranges.read:
        nodes = walk(bound.value)
        tensors = {node.tensor for node in nodes if isinstance(node, TensorRead)}
        for producer in stage.attached:
            point = producer.attach_point
            if point is None or tensors.isdisjoint(producer.op.outputs):
                continue
            position = stage.loops.position
            if position(point.axis) < position(bound.loop):
                continue
            raise UserError(
                f"loop {bound.loop.name} of stage {stage.name} has a range that is read "
                f"from {producer.name}, which is computed inside of the loop",
                where=f"stage {producer.name}",
                why="the number of iterations is known before a loop begins",
                remedy=f"compute {producer.name} at a loop around {bound.loop.name}, "
                "or at the root",
                at=point.snippet(),
            )


def _readers(stages: Sequence[Stage], bodies: Bodies) -> dict[Stage, list[Stage]]:
    """Return the stages that read each stage."""
    makers = {tensor: stage for stage in stages for tensor in stage.op.outputs}
    readers: dict[Stage, list[Stage]] = {stage: [] for stage in stages}
    for stage in stages:
        nodes = (node for body in bodies[stage] for node in walk(body))
        read = {node.tensor for node in nodes if isinstance(node, TensorRead)}
        for producer in {makers[tensor] for tensor in read if tensor in makers}:
            readers[producer].append(stage)
    return readers


def _facts_around(
    stage: Stage, bounds: Mapping[Stage, StageBounds], facts: Facts
) -> Facts:
    """Return `facts` with the ranges of the loops of other stages around `stage`."""
    point = stage.attach_point
    if point is None:
        return facts
    outer = bounds[point.stage]
    leaves = point.stage.loops.leaves
    around = leaves[: point.stage.loops.position(point.axis) + 1]
    kernel = outer.place.kernel
    is_in_kernel = kernel is not None and (
        kernel.stage is not point.stage
        or point.stage.loops.position(point.axis) >= kernel.start
    )
    if is_in_kernel:
        # The bound loops surround the whole kernel, wherever they stand.
        bound = [leaf for leaf in leaves if leaf in point.stage.threads.bound]
        around = [*bound, *around]
    return bind_loops(outer.place.facts, around, outer.ranges, outer.variables)


def _check_threads(
    kernel: Kernel, bounds: Mapping[Stage, StageBounds], facts: Facts
) -> None:
    """Refuse loops of one tag that have different extents."""
    for tag, loops in kernel.bound.items():
        first = loops[0]
        extent = bounds[first.stage].extents[first.axis]
        if tag in kernel.env:
            _check_requested(first, extent, kernel.env[tag], facts)
        for loop in loops:
            actual = bounds[loop.stage].extents[loop.axis]
            if not is_equal(actual, extent, facts):
                other = (
                    f"axis {first.axis.name} of stage {first.stage.name} has {extent}"
                )
                _refuse_extent(loop, actual, other, tag)
            _check_requested(loop, actual, loop.stage.threads.bound[loop.axis], facts)


def _check_requested(loop: NestLoop, actual: Expr, axis: IterVar, facts: Facts) -> None:
    """Refuse a loop that is not as long as its thread axis, if the axis has an extent."""
    requested = simplify(axis.extent)
    is_open = as_int(requested) == 0  # thread_axis("threadIdx.x") names no extent
    if not is_open and not is_equal(actual, requested, facts):
        _refuse_extent(
            loop, actual, f"the thread axis has {requested}", axis.thread_tag
        )


def _refuse_extent(loop: NestLoop, actual: Expr, other: str, tag: str) -> None:
    axis = loop.axis
    stage = loop.stage
    raise UserError(
        f"axis {axis.name} of stage {stage.name} has {actual} iterations for {tag}, "
        f"but {other}",
        where=f"stage {stage.name}",
        why="all loops of a kernel that are bound to one thread axis "
        "are run by the same threads",
        remedy="split the loops by the same factor, and bind the inner ones",
        at=stage.loops.provenance[axis].snippet(),
    )
