"""Wishes about loops and memory, added to a schedule that is legal: what it computes stays.

Drawn: pragmas, prefetches, double buffers, strides, virtual threads, and which thread stores what
all of a group compute. What is refused for this schedule is left out, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

import refcomp
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.stmt import THREADS_IN_BLOCK_TAGS
from refcomp.passes.inject_double_buffers import inject_double_buffers
from refcomp.passes.inject_virtual_threads import inject_virtual_threads
from refcomp.schedule.schedule import Schedule, replay
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import DATA_PARALLEL, IterVar
from tests.strategies.lowered_once import lowered_once

_MOST_VIRTUAL = 4

_Draw = Callable[[Any], Any]
_Wish = Callable[[_Draw, StageSchedule], None]


def with_wishes(draw: _Draw, schedule: Schedule, args: Sequence[Any], most: int = 4) -> Schedule:
    """`schedule` with up to `most` further steps that `lower` and the first passes take.

    Few wishes are refused: they are tried together first, and one by one only if that fails.
    """
    trial = replay(schedule.outputs, schedule.steps)
    for _ in range(draw(st.sampled_from([0, *range(1, most + 1), most]))):
        wish = draw(st.sampled_from(_WISHES))
        computed = [
            stage
            for stage in trial.stages
            if isinstance(stage.op, ComputeOp)
            and stage.placement != "inline"
            and stage.loops.leaves
        ]
        if not computed:  # a result without axes, and nothing else
            break
        own = computed[draw(st.integers(0, len(computed) - 1))]
        with suppress(UserError, Unsupported):  # of the primitive, which changes nothing then
            wish(draw, StageSchedule(trial, own))
    wished = trial.steps[len(schedule.steps) :]
    if not wished or _is_taken(trial, args):
        return trial if wished else schedule
    for step in wished:
        with suppress(UserError, Unsupported):  # where the step needs a refused one
            trial = replay(schedule.outputs, [*schedule.steps, step])
            schedule = trial if _is_taken(trial, args) else schedule
    return schedule


def _is_taken(schedule: Schedule, args: Sequence[Any]) -> bool:
    try:
        inject_double_buffers(inject_virtual_threads(lowered_once(schedule, args)))
    except (UserError, Unsupported):
        return False
    return True


def _loop(draw: _Draw, stage: StageSchedule) -> IterVar:
    loops = stage.leaf_iter_vars
    return loops[draw(st.integers(0, len(loops) - 1))]


def _pragma(draw: _Draw, stage: StageSchedule) -> None:
    if draw(st.booleans()):
        steps = draw(st.sampled_from([1, 4, 16, 64]))
        stage.pragma(_loop(draw, stage), "auto_unroll_max_step", steps)
    else:
        stage.pragma(_loop(draw, stage), "unroll_explicit", draw(st.integers(0, 1)))


def _prefetch(draw: _Draw, stage: StageSchedule) -> None:
    if stage.op.inputs:
        tensor = stage.op.inputs[draw(st.integers(0, len(stage.op.inputs) - 1))]
        stage.prefetch(tensor, _loop(draw, stage), draw(st.integers(0, 3)))


def _double_buffer(draw: _Draw, stage: StageSchedule) -> None:
    attached = [
        s
        for s in stage.schedule.stages
        if s.attach_point is not None
        and s.attach_point.axis not in s.attach_point.stage.loops.marks
    ]
    if attached:
        chosen = attached[draw(st.integers(0, len(attached) - 1))]
        StageSchedule(stage.schedule, chosen).double_buffer()


def _storage_align(draw: _Draw, stage: StageSchedule) -> None:
    fitting = [
        s
        for s in stage.schedule.stages
        if not s.is_output and isinstance(s.op, ComputeOp) and len(s.op.axis) > 1
    ]
    if fitting:
        chosen = fitting[draw(st.integers(0, len(fitting) - 1))]
        axis = chosen.op.axis[draw(st.integers(0, len(chosen.op.axis) - 2))]
        factor, offset = draw(st.sampled_from([(8, 1), (4, 3), (3, 2), (5, 0)]))
        StageSchedule(stage.schedule, chosen).storage_align(axis, factor, offset)


def _virtual_thread(draw: _Draw, stage: StageSchedule) -> None:
    fitting = [
        axis
        for axis in stage.leaf_iter_vars
        if axis.kind == DATA_PARALLEL
        and axis not in stage.stage.loops.marks
        and isinstance(axis.extent, IntImm)
        and 1 <= axis.extent.value <= _MOST_VIRTUAL
    ]
    if fitting:
        axis = fitting[draw(st.integers(0, len(fitting) - 1))]
        stage.bind(axis, refcomp.thread_axis("vthread"))


def _storing_thread(draw: _Draw, stage: StageSchedule) -> None:
    used = {mark for s in stage.schedule.stages for mark in s.loops.marks.values()}
    idle = [t for t in THREADS_IN_BLOCK_TAGS if t in used - set(stage.stage.loops.marks.values())]
    if idle:
        axis = refcomp.thread_axis(idle[draw(st.integers(0, len(idle) - 1))])
        stage.set_store_predicate(axis.var == 0)


_WISHES: tuple[_Wish, ...] = (
    *(_pragma, *[_prefetch] * 3, _virtual_thread, *[_double_buffer] * 5, _virtual_thread),
    *([_storage_align] * 5),
    *([_virtual_thread] * 5),
    _storing_thread,
)
