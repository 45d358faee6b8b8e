"""The loop nest of one stage, with the stages that are attached to its loops.

A stage without a reduction becomes its loops around one store per output. A reduction becomes,
inside the loops that stand outside its outermost reduction loop, an initialisation over the
remaining output loops and then the update over all remaining loops:

    for i { for j.init { C[i, j] = 0 }  for k { for j { C[i, j] = C[i, j] + A[i, k] * B[k, j] } } }

Where the stage is tensorized, the intrinsic's statements stand in the place of the inner loops.
Of an attached stage only a region is in memory: its indices count from the region's origin. In a
kernel, a stage that leaves threads of its group idle is computed by the first of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import EQ, Expr, IntImm, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    map_children,
    rewriter,
    substitute,
    variables_in,
    with_changes,
)
from refcomp.ir.stmt import (
    THREADS_IN_BLOCK_TAGS,
    BufferStore,
    For,
    IfThenElse,
    Stmt,
    block,
)
from refcomp.lowering.bounds.kernels import LOCAL, Kernel
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.cross_thread import (
    CrossThread,
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
from refcomp.te.extern import ExternOp
from refcomp.te.operation import ComputeOp
from refcomp.te.reducer import Reduce
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import REDUCTION, IterVar, Tensor, TensorRead


@dataclass(frozen=True, slots=True)
class Nests:
    """State shared by all loop nests of a function."""

    bounds: Mapping[Stage, StageBounds]
    buffers: Mapping[Tensor, Buffer]
    # The part of a tensor of an attached stage that its buffer holds.
    regions: Mapping[Tensor, Region]
    scans: ScanMemory = field(default_factory=ScanMemory)
    # Loop -> the stages attached to it, producers first.
    attached: Mapping[IterVar, Sequence[Stage]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Nest:
    """What the functions below share about one stage: all read-only."""

    bounds: StageBounds
    op: ComputeOp
    loops: Loops
    nests: Nests


def lower_stage(stage: Stage, nests: Nests) -> Stmt:
    """The statement that computes the stage, and what is attached to its loops, in place."""
    bounds = nests.bounds[stage]
    if isinstance(stage.op, ExternOp):
        return lower_extern(stage.op, stage.name, nests.buffers)

    def attach(axis: IterVar, body: Stmt) -> Stmt:
        body = _with_attached(nests.attached.get(axis, ()), body, nests)
        return block([*prefetches_at(bounds, axis, nests.buffers, nests.regions), body])

    points = frozenset(leaf for leaf in stage.loops.leaves if leaf in nests.attached)
    in_scan = any(isinstance(loop.stage.op, ScanOp) for loop in loops_around(stage))
    loops = Loops(bounds, nests.bounds, attach, points, guards_attached=in_scan)
    if isinstance(stage.op, ScanOp):
        copies = copy_inits(stage, stage.op, nests.buffers, nests.scans, nests.bounds)
        rows = [
            s for s in loops.slots() if s is stage.op.scan_axis or isinstance(s, Kernel)
        ]
        return block([copies, loops.wrap(rows, block([]), [])])
    assert isinstance(stage.op, ComputeOp)
    nest = _Nest(bounds, stage.op, loops, nests)
    guards = [*needed_guards(bounds, nests.regions), *_idle_thread_guards(bounds)]
    first = bounds.bodies[0]
    if stage.loops.tensorized is not None:
        return _lower_tensorized(nest, first, guards)
    if isinstance(first, Reduce):
        return _lower_reduction(nest, first, guards)
    stores = store_together(
        _stores(nest, [_value(nest, body) for body in bounds.bodies])
    )
    return loops.wrap(loops.slots(), stores, guards)


# Attached stages.


def attached_by_axis(stages: Iterable[Stage]) -> dict[IterVar, list[Stage]]:
    """The stages that are attached to each loop, producers first."""
    attached: dict[IterVar, list[Stage]] = {}
    for stage in stages:
        if stage.attach_point is not None:
            attached.setdefault(stage.attach_point.axis, []).append(stage)
    return attached


def _with_attached(attached: Sequence[Stage], body: Stmt, nests: Nests) -> Stmt:
    """Return `body` after the attached stages, inside the allocations of their memory."""
    if not attached:
        return body
    body = block([*(lower_stage(stage, nests) for stage in attached), body])
    for stage in reversed(attached):
        for tensor in reversed(stage.op.outputs):
            if tensor not in nests.scans.borrowed:
                body = allocated(stage, nests.buffers[tensor], body)
    return body


def _idle_thread_guards(bounds: StageBounds) -> list[AxisGuard]:
    """Conditions that choose one of the threads which the stage does not share its work among."""
    kernel = bounds.place.kernel
    if kernel is None or bounds.place.scope == LOCAL:
        return []
    used = set(bounds.stage.loops.marks.values())
    idle = [
        tag for tag in kernel.tags if tag in THREADS_IN_BLOCK_TAGS and tag not in used
    ]
    storing = bounds.stage.memory.store_predicate
    conditions = (
        EQ(kernel.variables[tag], IntImm(storing.get(tag, 0), I64)) for tag in idle
    )
    return [AxisGuard(None, condition) for condition in conditions]


def _lower_tensorized(nest: _Nest, body: Expr, guards: Sequence[AxisGuard]) -> Stmt:
    intrin = lower_intrin(
        nest.bounds, guards, nest.nests.buffers, partial(_element, nest)
    )
    if intrin.whole is None:
        assert isinstance(body, Reduce)
        return _lower_reduction(nest, body, intrin.guards, intrin)
    return nest.loops.wrap(_outside(nest, intrin), intrin.whole, intrin.guards)


def _outside(nest: _Nest, intrin: Replacement | None) -> list[Slot]:
    """The loops that no intrinsic takes the place of."""
    slots = nest.loops.slots()
    if intrin is None:
        return slots
    return slots[: next(k for k, slot in enumerate(slots) if slot is intrin.axis)]


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
    loops, slots = nest.loops, _outside(nest, intrin)
    first = next(
        (
            k
            for k, s in enumerate(slots)
            if isinstance(s, IterVar) and s.kind == REDUCTION
        ),
        len(slots),
    )
    outside, inside = slots[:first], slots[first:]
    reset, update = (None, None) if intrin is None else (intrin.reset, intrin.update)
    init_axes = _output_loops(
        nest, inside if reset is not None else loops.slots()[first:]
    )
    within = {slot.var for slot in init_axes}
    reduction_guards, output_guards = _partition(guards, _is_of_reduction)
    deeper, shared = _partition(
        output_guards, lambda g: within & set(variables_in(g.condition))
    )
    init = _initialisation(nest, reset or _identities(nest, reduce), init_axes, deeper)
    # No guard may stand around what is attached to a loop inside.
    if nest.loops.attach_points.intersection(inside):
        init, deeper, shared = loops.guarded(shared, init), [*shared, *deeper], []
    update = update or _update(nest, reduce)
    update = loops.wrap(inside, update, [*deeper, *reduction_guards])
    return loops.wrap(outside, block([init, update]), shared)


def _lower_across_threads(
    nest: _Nest, reduce: Reduce, guards: Sequence[AxisGuard]
) -> Stmt:
    """No guard stands around what combines the results of threads: it has barriers."""
    slots = nest.loops.slots()
    kinds = [getattr(slot, "kind", "") for slot in slots]
    outside, inside = slots[: kinds.index(REDUCTION)], slots[kinds.index(REDUCTION) :]
    axes = _output_loops(nest, inside)
    idle = _idle_thread_guards(nest.bounds)
    indices = _output_indices(nest)
    cross = CrossThread(nest.loops, reduce.reducer, axes, indices, idle)
    sources = [_value(nest, source) for source in reduce.sources]
    update = cross.update(sources, _value(nest, reduce.condition))
    _, output_guards = _partition(guards, _is_of_reduction)
    stmts = [
        _initialisation(nest, cross.reset(), axes, []),
        nest.loops.wrap(inside, update, guards),
        cross.finish(partial(_stores, nest), output_guards),
    ]
    return nest.loops.wrap(outside, cross.allocated(block(stmts)), [])


def _is_of_reduction(guard: AxisGuard) -> bool:
    """A guard of a reduction axis never keeps the initialisation from running, not even one that
    was simplified until it reads no loop (over an empty axis it is false)."""
    return guard.axis is not None and guard.axis.kind == REDUCTION


def _partition(
    guards: Sequence[AxisGuard], chosen: Callable[[AxisGuard], Any]
) -> tuple[list[AxisGuard], list[AxisGuard]]:
    """The guards that are chosen, and the others."""
    return [g for g in guards if chosen(g)], [g for g in guards if not chosen(g)]


def _output_loops(nest: _Nest, slots: Sequence[Slot]) -> list[IterVar]:
    """Those of `slots` that are loops over the output and leave a loop where they stand."""
    loops = [
        slot for slot in slots if isinstance(slot, IterVar) and slot.kind != REDUCTION
    ]
    return [loop for loop in loops if loop not in nest.bounds.stage.threads.bound]


def _identities(nest: _Nest, reduce: Reduce) -> Stmt:
    return block(_stores(nest, reduce.reducer.identities))


def _initialisation(
    nest: _Nest, reset: Stmt, axes: Sequence[IterVar], guards: Sequence[AxisGuard]
) -> Stmt:
    bare = Loops(nest.bounds, nest.nests.bounds, lambda _, body: body, frozenset())
    loops = bare.wrap(axes, reset, guards)
    return _rebind(loops, {leaf.var: Var(f"{leaf.name}.init", I64) for leaf in axes})


def _rebind(loops: Stmt, fresh: Mapping[Var, Var]) -> Stmt:
    """`loops` with other loop variables: a variable is bound only once in a function."""

    def visit(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, For):
            node = map_children(node, recurse)
            return with_changes(node, var=fresh.get(node.var, node.var))
        return (
            fresh.get(node, node)
            if isinstance(node, Var)
            else map_children(node, recurse)
        )

    return rewriter(visit)(loops)


def _update(nest: _Nest, reduce: Reduce) -> Stmt:
    so_far = [_load(nest, tensor, _output_indices(nest)) for tensor in nest.op.outputs]
    combined = reduce.reducer.combine(so_far, [_value(nest, s) for s in reduce.sources])
    stmt = store_together(_stores(nest, combined))
    condition = _value(nest, reduce.condition)
    if as_int(condition):
        return stmt
    return IfThenElse(condition, stmt, None, nest.loops.origin())


# Elements.


def _stores(nest: _Nest, values: Sequence[Expr]) -> tuple[BufferStore, ...]:
    """A store to each output."""
    indices, origin = _output_indices(nest), nest.loops.origin()
    return tuple(
        BufferStore(
            nest.nests.buffers[tensor], _element(nest, tensor, indices), value, origin
        )
        for tensor, value in zip(nest.op.outputs, values, strict=True)
    )


def _output_indices(nest: _Nest) -> tuple[Expr, ...]:
    return tuple(nest.bounds.indices.values[axis] for axis in nest.op.axis)


def _load(nest: _Nest, tensor: Tensor, indices: Sequence[Expr]) -> Expr:
    return BufferLoad(nest.nests.buffers[tensor], _element(nest, tensor, indices))


def _element(nest: _Nest, tensor: Tensor, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """Where the element at `indices` of a tensor lies in its buffer."""
    region = nest.nests.regions.get(tensor)
    if region is None:
        return tuple(indices)
    pairs = zip(indices, region.origin, strict=True)
    return tuple(simplify(index - origin, nest.bounds.facts) for index, origin in pairs)


def _value(nest: _Nest, body: Expr) -> Expr:
    """`body` in terms of loop variables and buffers."""
    roots = {
        axis.var: nest.bounds.indices.values[axis] for axis in nest.bounds.stage.roots
    }

    def visit(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, TensorRead):
            at = [simplify(recurse(index), nest.bounds.facts) for index in node.indices]
            return _load(nest, node.tensor, at)
        return map_children(node, recurse)

    return rewriter(visit)(substitute(body, roots))
