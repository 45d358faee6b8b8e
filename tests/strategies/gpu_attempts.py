"""Random schedules for GPUs, by steps that are taken back when they are refused.

Drawn: scans, whose rows are computed by kernels that the host launches one after the other; and
products by blocks that an intrinsic does, inside of kernels. What begins with each stage in a
kernel of its own goes on with copies of what is read in shared or local memory, stages computed
where they are needed, further splits, threads and marks.

Never drawn: copies in panels; schedules in which the host would have to compute, or that a pass
refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

import refcomp
from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.expr import IntImm
from refcomp.ir.stmt import THREAD_TAGS
from refcomp.passes.split_host_device import split_host_device
from refcomp.schedule.schedule import Schedule, replay
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import DATA_PARALLEL, IterVar
from tests.strategies.computation import DTYPES, Computation
from tests.strategies.computes import SCANS, computations
from tests.strategies.gpu_schedules import GpuCase, case_of
from tests.strategies.lowered_once import lowered_once
from tests.strategies.stages_outside import stages_outside
from tests.strategies.tensor_intrins import block_product, blocked
from tests.strategies.wishes import with_wishes

_PRODUCTS = ("matmul", "matmul of computed")
_ATTEMPTS = (3, 5, 7, 9)

_Draw = Callable[[Any], Any]


@st.composite
def attempted_cases(
    draw: _Draw, dtypes: Sequence[str] = DTYPES, kinds: Sequence[str] = (*SCANS, *_PRODUCTS)
) -> GpuCase:
    """A scan, or a product by blocks, with a schedule, for GPUs."""
    computation = draw(computations(kinds, dtypes))
    schedule = with_wishes(draw, _attempted(draw, computation), computation.args)
    return case_of(computation, schedule)


def _attempted(draw: _Draw, computation: Computation) -> Schedule:
    """A schedule of a scan, or of a product of constant or symbolic extents."""
    if computation.kind.startswith("matmul"):
        schedule = _of_blocks(draw, computation)
    else:
        schedule = refcomp.create_schedule([tensor.op for tensor in computation.outputs])
    for stage in _computed(schedule):
        _make_kernel(draw, stage)
    lowered = [schedule]
    for _ in range(draw(st.sampled_from(_ATTEMPTS))):
        schedule = lowered[-1]
        attempt, trial = draw(st.sampled_from(_ATTEMPTED)), replay(schedule.outputs, schedule.steps)
        try:
            made = attempt(draw, _one(draw, _computed(trial)))
            if not stages_outside(lowered_once(made, computation.args)):
                lowered.append(made)
        except (UserError, Unsupported, _NothingToDo):
            continue
    # Passes refuse hardly anything that is lowered: they run once, and not after each attempt.
    while len(lowered) > 1 and not _passes_take(lowered[-1], computation):
        lowered.pop()
    return lowered[-1]


def _passes_take(schedule: Schedule, computation: Computation) -> bool:
    func = lowered_once(schedule, computation.args)
    try:
        for step in passes_for("opencl"):
            func = run_pass(step, func)
        split_host_device(func)
    except (UserError, Unsupported):
        return False
    return True


# What the attempts begin with.


def _of_blocks(draw: _Draw, computation: Computation) -> Schedule:
    """An intrinsic does blocks of the product."""
    (c,) = computation.outputs
    sizes = [draw(st.sampled_from(_fitting(a))) for a in (*c.op.axis, *c.op.reduce_axis)]
    schedule: Schedule = blocked(
        c, c.op.reduce_axis[0], *sizes, block_product(*sizes, str(c.dtype))
    )
    return schedule


def _fitting(axis: IterVar) -> list[int]:
    """Extents of blocks that leave no guards."""
    extent = axis.extent.value if isinstance(axis.extent, IntImm) else 1
    return [size for size in (2, 3, 4, 1) if extent and extent % size == 0] or [1]


def _make_kernel(draw: _Draw, stage: StageSchedule) -> None:
    """A tile of its last loops for each group of threads."""
    data = [axis for axis in _free(stage) if axis.kind == DATA_PARALLEL]
    outer, inner = stage.split(data[-1], draw(st.sampled_from([2, 4, 3, 8])))
    stage.bind(outer, refcomp.thread_axis("blockIdx.x"))
    stage.bind(inner, refcomp.thread_axis("threadIdx.x"))


# Attempts.


class _NothingToDo(Exception):
    """There is nothing to choose from."""


def _one(draw: _Draw, items: Sequence[Any]) -> Any:
    if not items:
        raise _NothingToDo
    return items[draw(st.integers(0, len(items) - 1))]


def _computed(schedule: Schedule) -> list[StageSchedule]:
    stages = [s for s in schedule.stages if isinstance(s.op, ComputeOp) and s.placement != "inline"]
    return [StageSchedule(schedule, stage) for stage in stages]


def _loops(stage: StageSchedule) -> list[IterVar]:
    """Those that no intrinsic does."""
    leaves, done = list(stage.leaf_iter_vars), stage.stage.loops.tensorized
    return leaves if done is None else leaves[: stage.stage.loops.position(done.axis)]


def _free(stage: StageSchedule) -> list[IterVar]:
    return [axis for axis in _loops(stage) if axis not in stage.stage.loops.marks]


def _inner(stage: StageSchedule) -> list[IterVar]:
    """Those in the stage's kernel, if it begins one."""
    loops = _loops(stage)
    bound = [k for k, axis in enumerate(loops) if axis in stage.stage.threads.bound]
    return loops[bound[0] :] if bound else loops


def _copy(draw: _Draw, stage: StageSchedule) -> Schedule:
    """Of what the stage reads, made by all threads of a group, or by each for itself."""
    tensor = _one(draw, stage.op.inputs)
    scope = draw(st.sampled_from(["shared", "shared", "local"]))
    copy = stage.schedule[stage.schedule.cache_read(tensor, scope, [stage.op])]
    copy.compute_at(stage, _one(draw, _inner(stage)))
    _share(draw, copy, stage)
    return stage.schedule


def _share(draw: _Draw, stage: StageSchedule, outer: StageSchedule) -> None:
    """Among the threads of the stage that it is attached to, most often."""
    extents = [
        t.extent for t in outer.stage.threads.bound.values() if t.thread_tag == "threadIdx.x"
    ]
    if stage.stage.memory.scope == "shared" and draw(st.integers(0, 3)) and extents:
        _, inner = stage.split(stage.leaf_iter_vars[-1], _number(extents[0]))
        stage.bind(inner, refcomp.thread_axis("threadIdx.x"))


def _number(extent: Any) -> int:
    return extent.value if isinstance(extent, IntImm) else 4


def _inside(draw: _Draw, stage: StageSchedule) -> Schedule:
    """The stage, as it was at first, within a kernel that reads it."""
    steps = [step for step in stage.schedule.steps if step.stage != stage.stage.name]
    again = replay(stage.schedule.outputs, steps)
    own = next(s for s in _computed(again) if s.stage.name == stage.stage.name)
    readers = [s for s in _computed(again) if set(own.op.outputs) & set(s.op.inputs)]
    reader = _one(draw, readers or [own])
    own.compute_at(reader, _one(draw, _inner(reader)))
    own.set_scope(draw(st.sampled_from(["shared", "local"])))
    _share(draw, own, reader)
    return again


def _split(draw: _Draw, stage: StageSchedule) -> Schedule:
    stage.split(_one(draw, _free(stage)), draw(st.sampled_from([2, 3, 4])))
    return stage.schedule


def _reorder(draw: _Draw, stage: StageSchedule) -> Schedule:
    stage.reorder(*draw(st.permutations(_loops(stage))))
    return stage.schedule


def _bind(draw: _Draw, stage: StageSchedule) -> Schedule:
    stage.bind(_one(draw, _free(stage)), refcomp.thread_axis(draw(st.sampled_from(THREAD_TAGS))))
    return stage.schedule


def _mark(draw: _Draw, stage: StageSchedule) -> Schedule:
    small = [a for a in _free(stage) if isinstance(a.extent, IntImm) and a.extent.value <= 8]
    getattr(stage, draw(st.sampled_from(["unroll", "vectorize"])))(_one(draw, small))
    return stage.schedule


_ATTEMPTED = (*[_copy] * 4, *[_inside] * 2, _split, _reorder, _bind, _mark)
