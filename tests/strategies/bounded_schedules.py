"""Every schedule of a few steps, not random ones: all primitives with a few arguments each.

Drawn: each primitive of the language on each stage and loop that it may be called with: split by 2
(factor and parts), tiles of 2 by 2 and 1 by 3, pairs of loops fused and exchanged, marks, threads
of a group, groups and virtual threads, an intrinsic for a row of three, attachments to every loop,
scopes, copies, pragmas, prefetches, strides. Never drawn: other numbers, reorder of more than two
loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Any

import refcomp
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.step import AxisName, StageName, Step
from refcomp.te.intrin import TensorIntrin
from refcomp.te.operation import ComputeOp

THREADS = {
    tag: refcomp.thread_axis(extent, tag)
    for tag, extent in (("blockIdx.x", None), ("threadIdx.x", None), ("vthread", None))
}
_GROUP = refcomp.thread_axis((0, 2), "threadIdx.x")
_SCOPES = ("global", "shared", "local")


def doubled_row() -> TensorIntrin:
    """y[j] = x[j] * 2 for three integers."""
    x = refcomp.placeholder((3,), "int32", "x")
    y = refcomp.compute((3,), lambda j: x[j] * 2, name="y")

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        ib = refcomp.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 3, name="lane") as lane:
            target[lane] = source[lane] * 2
        return ib.get()

    return refcomp.decl_tensor_intrin(y, statements, "double_row")


_INTRIN = doubled_row()


def every_step(schedule: Schedule, only: str = "") -> Iterator[Step]:
    """Each step that may be tried next, of the primitive `only` if it is named; whether it is legal
    is for the schedule to say."""
    for stage in schedule.stages:
        for primitive, args, options in _of_stage(schedule, stage):
            if primitive == (only or primitive):
                yield Step(stage.name, primitive, args, options, "here")


_Call = tuple[str, tuple[Any, ...], tuple[tuple[str, Any], ...]]


def _of_stage(schedule: Schedule, stage: Stage) -> Iterator[_Call]:
    for scope in _SCOPES[1:]:
        readers = tuple(
            StageName(s.name) for s in schedule.stages if stage.op.outputs[0] in s.op.inputs
        )
        yield "cache_read", (0, scope, readers), ()
    if not isinstance(stage.op, ComputeOp):
        return
    names = [AxisName(axis.name) for axis in stage.loops.leaves]
    for name in names:
        yield from _of_loop(stage, name)
    for a, b in pairwise(names):
        yield "tile", (a, b, 2, 2), ()
        yield "tile", (a, b, 1, 3), ()
        yield "fuse", (a, b), ()
    for a, b in combinations(names, 2):
        yield "reorder", (b, a), ()
    yield from _of_memory(schedule, stage)


def _of_loop(stage: Stage, name: AxisName) -> Iterator[_Call]:
    yield "split", (name,), (("factor", 2),)
    yield "split", (name,), (("nparts", 2),)
    for mark in ("vectorize", "unroll", "parallel", "rfactor"):
        yield mark, (name,), ()
    for thread in THREADS.values():
        yield "bind", (name, thread), ()
    yield "tensorize", (name, _INTRIN), ()
    yield "pragma", (name, "auto_unroll_max_step", 4), ()
    for tensor in stage.op.inputs:
        maker = next(s for s in stage.siblings if tensor in s.op.outputs)
        yield "prefetch", (name, StageName(maker.name), tensor.value_index, 1), ()


def _of_memory(schedule: Schedule, stage: Stage) -> Iterator[_Call]:
    for primitive in ("compute_inline", "compute_root", "double_buffer"):
        yield primitive, (), ()
    for other in schedule.stages:
        for axis in other.loops.leaves if other is not stage else ():
            yield "compute_at", (StageName(other.name), AxisName(axis.name)), ()
    for scope in _SCOPES:
        yield "set_scope", (scope,), ()
        yield "cache_write", (scope,), ()
    for axis in stage.op.axis if isinstance(stage.op, ComputeOp) else ():
        yield "storage_align", (AxisName(axis.name), 4, 1), ()
    yield "set_store_predicate", (refcomp.thread_axis("threadIdx.x").var == 0,), ()
    yield "env_threads", ((_GROUP,),), ()


def state_of(schedule: Schedule) -> tuple[Any, ...]:
    """All that schedules may differ in: equal states are the same schedule, however made."""
    return tuple(map(_state_of_stage, schedule.stages))


def _state_of_stage(stage: Stage) -> tuple[Any, ...]:
    point = stage.attach_point
    loops = stage.loops
    memory = stage.memory
    return (
        stage.name,
        str(getattr(stage.op, "body", "")),
        tuple((a.name, a.kind, str(a.extent), loops.marks.get(a)) for a in loops.leaves),
        tuple(
            (type(r).__name__, *(getattr(getattr(r, n, None), "name", "") for n in _AXES),
             getattr(r, "factor", 0), getattr(r, "nparts", 0))
            for r in loops.relations
        ),
        (point.stage.name, point.axis.name) if point is not None else stage.placement,
        memory.scope,
        tuple((p.axis.name, p.key, p.value) for p in loops.pragmas),
        tuple((p.tensor.name, p.axis.name, p.offset) for p in loops.prefetches),
        memory.is_double_buffered,
        tuple(sorted(memory.alignments.items())),
        tuple(sorted(memory.store_predicate.items())),
        None if loops.tensorized is None else loops.tensorized.axis.name,
        tuple(axis.thread_tag for axis in stage.threads.env),
    )  # fmt: skip


_AXES = ("parent", "outer", "inner", "fused")


# Tiny computations, each with steps that are taken before the ones that are tried.

_Made = tuple[Any, Any, list[Step]]


def row_sums() -> _Made:
    """A stage that is read, and a reduction."""
    a = refcomp.placeholder((2, 3), "int32", name="A")
    t = refcomp.compute((2, 3), lambda i, j: a[i, j] * 2, name="T")
    k = refcomp.reduce_axis((0, 3), "k")
    return a, refcomp.compute((2,), lambda i: refcomp.sum(t[i, k], axis=k), name="B"), []


def doubled() -> _Made:
    """One stage of two dimensions."""
    a = refcomp.placeholder((2, 3), "int32", name="A")
    return a, refcomp.compute((2, 3), lambda i, j: a[i, j] * 2, name="T"), []


def doubled_twice() -> _Made:
    """Two stages of two dimensions."""
    a, t, _ = doubled()
    return a, refcomp.compute((2, 3), lambda i, j: t[i, j] * 2, name="U"), []


def attached_in_a_kernel() -> _Made:
    """The sums of rows, each by a group of threads, which computes what it reads."""
    bound = Step("B", "bind", (AxisName("i"), THREADS["blockIdx.x"]), (), "here")
    attached = Step("T", "compute_at", (StageName("B"), AxisName("i")), (), "here")
    return *row_sums()[:2], [bound, attached]


def inlined_in_a_kernel() -> _Made:
    """The sums of rows, each by a group of threads, of one stage."""
    inlined = Step("T", "compute_inline", (), (), "here")
    bound = Step("B", "bind", (AxisName("i"), THREADS["blockIdx.x"]), (), "here")
    return *row_sums()[:2], [inlined, bound]


def sums_doubled() -> _Made:
    """A reduction of two dimensions that is read."""
    a = refcomp.placeholder((2, 3, 2), "int32", name="A")
    k = refcomp.reduce_axis((0, 2), "k")
    b = refcomp.compute((2, 3), lambda i, j: refcomp.sum(a[i, j, k], axis=k), name="B")
    return a, refcomp.compute((2, 3), lambda i, j: b[i, j] * 2, name="U"), []


def cube() -> _Made:
    """One stage of three dimensions."""
    a = refcomp.placeholder((2, 2, 3), "int32", name="A")
    return a, refcomp.compute((2, 2, 3), lambda i, j, k: a[i, j, k] * 2, name="T"), []


SPACES: dict[str, Callable[[], _Made]] = {
    made.__name__: made
    for made in (
        *(row_sums, doubled, doubled_twice, attached_in_a_kernel, inlined_in_a_kernel),
        *(sums_doubled, cube),
    )
}
