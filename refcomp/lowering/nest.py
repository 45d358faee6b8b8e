"""Lowers one stage to its loop nest, with the stages that are attached to its loops.

A stage without a reduction becomes its loops around one store for each output. For a
reduction, the loops outside its outermost reduction loop surround two parts: an
initialisation over the remaining output loops, and the update over all remaining loops:

    for i { for j.init { C[i, j] = 0 }  for k { for j { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }

If the stage is tensorized, the statements of the intrinsic replace the inner loops. The
buffer of an attached stage holds only a region, whose indices count from the region's
origin. If a stage in a kernel leaves threads of its group idle, one of them computes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import LOCAL, Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IfThenElseExpr, IntImm, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    map_children,
    rewriter,
    variables_in,
    with_changes,
)
from refcomp.ir.stmt import (
    THREADS_IN_BLOCK_TAGS,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    block,
)
from refcomp.lowering.bounds.kernels import Kernel
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.cross_thread import (
    CrossThread,
    one_thread,
    reduces_across_threads,
    refuse_tensorized,
)
from refcomp.lowering.extern import lower_extern
from refcomp.lowering.hints import allocated, prefetches_at
from refcomp.lowering.loops import Loops, Slot
from refcomp.lowering.needed_guards import needed_guards
from refcomp.lowering.scan import ScanMemory, copy_inits
from refcomp.lowering.tensorize import Replacement, lower_intrin
from refcomp.lowering.together import store_together
from refcomp.schedule.axes import AxisGuard, Region
from refcomp.schedule.placement import loops_around
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ComputeOp, ExternOp, ScanOp
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import REDUCTION, IterVar, Tensor, TensorRead


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """State shared by all loop nests of one function."""

    bounds: Mapping[Stage, StageBounds]
    buffers: Mapping[Tensor, Buffer]
    # Tensor of an attached stage -> the part of the tensor that its buffer holds.
    regions: Mapping[Tensor, Region]
    scans: ScanMemory = field(default_factory=ScanMemory)
    # Loop -> the stages attached to it, producers first.
    attached: Mapping[IterVar, Sequence[Stage]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Nest:
    """The loop nest of one compute stage."""

    bounds: StageBounds
    op: ComputeOp
    loops: Loops
    context: LoweringContext


def lower_stage(stage: Stage, context: LoweringContext) -> Stmt:
    """Return the statement that computes `stage` and the stages attached to its loops."""
    bounds = context.bounds[stage]
    op = stage.op
    if isinstance(op, ExternOp):
        return lower_extern(stage, op, context.buffers)

    def attach(axis: IterVar, body: Stmt) -> Stmt:
        attached = context.attached.get(axis, ())
        if attached:
            computed = [lower_stage(producer, context) for producer in attached]
            body = block([*computed, body])
        for producer in reversed(attached):
            for tensor in reversed(producer.op.outputs):
                if tensor not in context.scans.borrowed:
                    body = allocated(producer, context.buffers[tensor], body)
        prefetches = prefetches_at(bounds, axis, context.buffers, context.regions)
        return block([*prefetches, body])

    in_scan = any(isinstance(loop.stage.op, ScanOp) for loop in loops_around(stage))
    loops = Loops(
        bounds,
        context.bounds,
        attach,
        attach_points=frozenset(context.attached).intersection(stage.loops.leaves),
        guards_attached=in_scan,
    )
    slots = loops.slots()
    if isinstance(op, ScanOp):
        copies = copy_inits(
            stage,
            op,
            buffers=context.buffers,
            memory=context.scans,
            bounds=context.bounds,
        )
        # Only the loop over the rows: the updates, attached to it, compute the rest.
        rows = [s for s in slots if s is op.scan_axis or isinstance(s, Kernel)]
        return block([copies, loops.wrap(rows, block([]), [])])
    assert isinstance(op, ComputeOp)
    nest = _Nest(bounds, op, loops, context)
    if bounds.ranges.read:
        loops = replace(loops, bind_reads=partial(_bind_reads, nest))
        nest = replace(nest, loops=loops)
    guards = [*needed_guards(bounds, context.regions), *_idle_thread_guards(bounds)]
    first = bounds.bodies[0]
    intrin: Replacement | None = None
    if stage.loops.tensorized is not None:
        element = partial(_element, nest)
        intrin = lower_intrin(bounds, guards, context.buffers, element)
        guards = list(intrin.guards)
        if intrin.whole is not None:
            return loops.wrap(_outside(nest, intrin), intrin.whole, guards)
        assert isinstance(first, Reduce)  # only a reduction may be done in parts
    if isinstance(first, Reduce):
        return _lower_reduction(nest, first, guards, intrin)
    stores = _stores(nest, [_value(nest, body) for body in bounds.bodies])
    return loops.wrap(slots, store_together(stores), guards)


# Attached stages.


def attached_by_axis(stages: Iterable[Stage]) -> dict[IterVar, list[Stage]]:
    """Return the stages that are attached to each loop, producers first."""
    attached: dict[IterVar, list[Stage]] = {}
    for stage in stages:
        if stage.attach_point is not None:
            attached.setdefault(stage.attach_point.axis, []).append(stage)
    return attached


def _idle_thread_guards(bounds: StageBounds) -> list[AxisGuard]:
    """Return guards for one of the threads that the stage does not share its work among."""
    kernel = bounds.place.kernel
    if kernel is None or bounds.place.scope == LOCAL:
        return []
    used = set(bounds.stage.loops.marks.values())
    idle = [t for t in kernel.tags if t in THREADS_IN_BLOCK_TAGS and t not in used]
    return one_thread(bounds.stage, kernel, idle)


def _outside(nest: _Nest, intrin: Replacement | None) -> list[Slot]:
    """Return the loops that are not replaced by the intrinsic."""
    slots = nest.loops.slots()
    if intrin is None:
        return slots
    first = next(k for k, slot in enumerate(slots) if slot is intrin.axis)
    return slots[:first]


# Reductions.


def _lower_reduction(
    nest: _Nest,
    reduce: Reduce,
    guards: Sequence[AxisGuard],
    intrin: Replacement | None = None,
) -> Stmt:
    if reduces_across_threads(nest.bounds.stage):
        refuse_tensorized(nest.bounds.stage)
        return _lower_across_threads(nest, reduce, guards)
    loops = nest.loops
    slots = _outside(nest, intrin)
    first = _first_reduction(slots)
    outside = slots[:first]
    inside = slots[first:]
    if intrin is None or intrin.reset is None:
        # Element by element, also over the loops that the intrinsic replaces.
        reset = block(_stores(nest, reduce.reducer.identities))
        init_axes = _output_loops(nest, loops.slots()[first:])
    else:
        reset = intrin.reset
        init_axes = _output_loops(nest, inside)
    update = None if intrin is None else intrin.update
    if update is None:
        update = _update(nest, reduce)
    init_vars = {axis.var for axis in init_axes}
    reduction_guards = [guard for guard in guards if _is_of_reduction(guard)]
    # Guards of the output that read a loop of the initialisation, and all others.
    deeper: list[AxisGuard] = []
    shared: list[AxisGuard] = []
    for guard in guards:
        if _is_of_reduction(guard):
            continue
        if init_vars.isdisjoint(variables_in(guard.condition)):
            shared.append(guard)
        else:
            deeper.append(guard)
    init = _initialisation(nest, reset, init_axes, deeper)
    # No guard may surround what is attached to a loop inside.
    if loops.attach_points.intersection(inside):
        init = loops.guarded(shared, init)
        deeper = [*shared, *deeper]
        shared = []
    update = loops.wrap(inside, update, [*deeper, *reduction_guards])
    return loops.wrap(outside, block([init, update]), shared)


def _lower_across_threads(
    nest: _Nest, reduce: Reduce, guards: Sequence[AxisGuard]
) -> Stmt:
    """Return a reduction that threads share.

    No guard surrounds the combination of their results, since that has barriers.
    """
    slots = nest.loops.slots()
    first = _first_reduction(slots)
    outside = slots[:first]
    inside = slots[first:]
    axes = _output_loops(nest, inside)
    cross = CrossThread(
        nest.loops,
        reduce.reducer,
        axes,
        outputs=_output_indices(nest),
        idle=_idle_thread_guards(nest.bounds),
    )
    sources = [_value(nest, source) for source in reduce.sources]
    init = _initialisation(nest, cross.reset(), axes, [])
    update = cross.update(sources, _value(nest, reduce.condition))
    update = nest.loops.wrap(inside, update, guards)
    output_guards = [guard for guard in guards if not _is_of_reduction(guard)]
    finish = cross.finish(partial(_stores, nest), output_guards)
    body = cross.allocated(block([init, update, finish]))
    return nest.loops.wrap(outside, body, [])


def _first_reduction(slots: Sequence[Slot]) -> int:
    """Return the number of the outermost reduction loop, or of `slots` if none is one."""
    for number, slot in enumerate(slots):
        if isinstance(slot, IterVar) and slot.kind == REDUCTION:
            return number
    return len(slots)


def _is_of_reduction(guard: AxisGuard) -> bool:
    """Return True for the guard of a reduction axis, which the initialisation ignores.

    The axis decides, not the loops that the condition reads. The condition of an empty
    axis is simplified to false, and the initialisation must run all the same.
    """
    return guard.axis is not None and guard.axis.kind == REDUCTION


def _output_loops(nest: _Nest, slots: Sequence[Slot]) -> list[IterVar]:
    """Return the loops over the output among `slots` that are not bound."""
    bound = nest.bounds.stage.threads.bound
    loops = [s for s in slots if isinstance(s, IterVar) and s.kind != REDUCTION]
    return [loop for loop in loops if loop not in bound]


def _initialisation(
    nest: _Nest, reset: Stmt, axes: Sequence[IterVar], guards: Sequence[AxisGuard]
) -> Stmt:
    """Return `reset` in loops over `axes` of its own, without attached stages.

    The variables of the loops are new, since a function binds each variable only once.
    """
    bare = Loops(
        nest.bounds,
        nest.context.bounds,
        attach=lambda _, body: body,
        attach_points=frozenset(),
    )
    fresh = {axis.var: Var(f"{axis.name}.init", I64) for axis in axes}

    def rebind(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, Var):
            return fresh.get(node, node)
        node = map_children(node, recurse)
        if isinstance(node, For):
            return with_changes(node, var=fresh.get(node.var, node.var))
        return node

    rename = rewriter(rebind)
    return rename(bare.wrap(axes, reset, guards))


def _update(nest: _Nest, reduce: Reduce) -> Stmt:
    indices = _output_indices(nest)
    so_far = [_load(nest, tensor, indices) for tensor in nest.op.outputs]
    sources = [_value(nest, source) for source in reduce.sources]
    combined = reduce.reducer.combine(so_far, sources)
    # A result of several values, such as argmax, reads all of them before it stores one.
    stmt = store_together(_stores(nest, combined))
    condition = _value(nest, reduce.condition)
    if as_int(condition):
        return stmt
    return IfThenElse(condition, stmt, None, nest.loops.origin())


def _bind_reads(
    nest: _Nest, axis: IterVar, body: Stmt, guards: Sequence[AxisGuard]
) -> Stmt:
    """Return loop `axis` inside the bounds of ranges that are read before it.

    Where a guard inside the loop fails, the elements may not exist. Then a bound is 0.
    """
    for bound in reversed(nest.bounds.ranges.read):
        if bound.loop is not axis:
            continue
        value = _value(nest, bound.value)
        for guard in guards:
            zero = IntImm(0, I64)
            value = IfThenElseExpr(guard.condition, value, zero)
        body = LetStmt(bound.var, value, body, nest.loops.origin(axis))
    return body


# Elements.


def _stores(nest: _Nest, values: Sequence[Expr]) -> tuple[BufferStore, ...]:
    """Return a store to each output."""
    buffers = nest.context.buffers
    indices = _output_indices(nest)
    origin = nest.loops.origin()
    return tuple(
        BufferStore(buffers[tensor], _element(nest, tensor, indices), value, origin)
        for tensor, value in zip(nest.op.outputs, values, strict=True)
    )


def _output_indices(nest: _Nest) -> tuple[Expr, ...]:
    return tuple(nest.bounds.indices.values[axis] for axis in nest.op.axis)


def _load(nest: _Nest, tensor: Tensor, indices: Sequence[Expr]) -> Expr:
    buffer = nest.context.buffers[tensor]
    return BufferLoad(buffer, _element(nest, tensor, indices))


def _element(nest: _Nest, tensor: Tensor, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the place in its buffer of the element at `indices` of a tensor."""
    region = nest.context.regions.get(tensor)
    if region is None:
        return tuple(indices)
    is_own = tensor in nest.op.outputs
    facts = nest.bounds.output_facts if is_own else nest.bounds.facts
    place: list[Expr] = []
    for index, origin in zip(indices, region.origin, strict=True):
        place.append(simplify(index - origin, facts))
    return tuple(place)


def _value(nest: _Nest, body: Expr) -> Expr:
    """Return `body` in terms of loop variables and buffers."""
    values = nest.bounds.indices.values
    roots = {axis.var: values[axis] for axis in nest.bounds.stage.roots}

    def visit(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, Var):
            return roots.get(node, node)
        if isinstance(node, TensorRead):
            facts = nest.bounds.facts
            indices = [simplify(recurse(index), facts) for index in node.indices]
            return _load(nest, node.tensor, indices)
        return map_children(node, recurse)

    replace = rewriter(visit)
    return replace(body)
