"""Random legal schedules of a computation, by the primitives of the scheduling language.

Drawn: up to ten steps of split (factor and nparts, dividing or not), tile, fuse, reorder,
vectorize, unroll, parallel, compute_inline and compute_root on any stage.

Never drawn: illegal steps, vectors of more than 16 lanes, unrolled loops of more than 16
iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

import refcomp
from refcomp.ir.expr import IntImm
from refcomp.schedule.schedule import Schedule, StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import REDUCTION, IterVar
from tests.strategies.computes import Computation

FACTORS = (1, 2, 3, 4, 5, 8, 16)
_MOST_COPIES = 16
_DEPTHS = (2, 4, 5, 5, 6, 7, 8, 10)

_Draw = Callable[[Any], Any]


def _free(stage: StageSchedule) -> list[IterVar]:
    return [axis for axis in stage.leaf_iter_vars if axis not in stage.stage.marks]


def _constant(axis: IterVar) -> bool:
    return isinstance(axis.extent, IntImm) and 1 <= axis.extent.value <= _MOST_COPIES


def _pick(draw: _Draw, axes: list[IterVar]) -> IterVar:
    return axes[draw(st.integers(0, len(axes) - 1))]


def _split(draw: _Draw, stage: StageSchedule) -> bool:
    axes = _free(stage)
    if not axes:
        return False
    by = draw(st.sampled_from(["factor", "nparts"]))
    stage.split(_pick(draw, axes), **{by: draw(st.sampled_from(FACTORS))})
    return True


def _pairs(stage: StageSchedule) -> list[tuple[IterVar, IterVar]]:
    loops, free = stage.leaf_iter_vars, _free(stage)
    return [(x, y) for x, y in pairwise(loops) if x in free and y in free]


def _tile(draw: _Draw, stage: StageSchedule) -> bool:
    pairs = _pairs(stage)
    if not pairs:
        return False
    x, y = pairs[draw(st.integers(0, len(pairs) - 1))]
    stage.tile(x, y, draw(st.sampled_from(FACTORS)), draw(st.sampled_from(FACTORS)))
    return True


def _fuse(draw: _Draw, stage: StageSchedule) -> bool:
    pairs = [(x, y) for x, y in _pairs(stage) if x.kind == y.kind]
    if not pairs:
        return False
    stage.fuse(*pairs[draw(st.integers(0, len(pairs) - 1))])
    return True


def _reorder(draw: _Draw, stage: StageSchedule) -> bool:
    loops = list(stage.leaf_iter_vars)
    if len(loops) < 2:
        return False
    stage.reorder(*draw(st.permutations(loops)))
    return True


def _mark(primitive: str) -> Callable[[_Draw, StageSchedule], bool]:
    def apply(draw: _Draw, stage: StageSchedule) -> bool:
        axes = [
            axis
            for axis in _free(stage)
            if (primitive == "unroll" or axis.kind != REDUCTION)
            and (primitive == "parallel" or _constant(axis))
        ]
        if not axes:
            return False
        getattr(stage, primitive)(_pick(draw, axes))
        return True

    return apply


def _inline(draw: _Draw, stage: StageSchedule) -> bool:
    op = stage.op
    if stage.stage.is_output or not isinstance(op, ComputeOp) or op.reduction is not None:
        return False
    stage.compute_inline()
    return True


def _root(draw: _Draw, stage: StageSchedule) -> bool:
    stage.compute_root()
    return True


# The weights keep every primitive above one step in fifty of what is accepted.
_STEPS: tuple[tuple[int, Callable[[_Draw, StageSchedule], bool]], ...] = (
    (4, _split),
    (2, _tile),
    (3, _fuse),
    (2, _reorder),
    (2, _mark("vectorize")),
    (2, _mark("unroll")),
    (2, _mark("parallel")),
    (3, _inline),
    (1, _root),
)
_WEIGHTED = tuple(step for weight, step in _STEPS for _ in range(weight))


@st.composite
def schedules(draw: _Draw, computation: Computation) -> Schedule:
    """A schedule of `computation`; its `steps` tell what was drawn."""
    schedule = refcomp.create_schedule([tensor.op for tensor in computation.outputs])
    computed = [stage for stage in schedule.stages if isinstance(stage.op, ComputeOp)]
    depth = draw(st.sampled_from(_DEPTHS))
    for _ in range(2 * depth):  # a step that finds nothing to work on is drawn again
        stage = computed[draw(st.integers(0, len(computed) - 1))]
        step = draw(st.sampled_from(_WEIGHTED))
        step(draw, schedule[stage.op])
        if len(schedule.steps) == depth:
            break
    return schedule
