"""Random legal schedules of a computation, by the primitives of the scheduling language.

Drawn: up to ten steps of split (factor and nparts, dividing or not), tile, fuse, reorder,
vectorize, unroll, parallel, compute_inline, compute_root, compute_at (any loop of any stage that
may hold it), cache_read (in panels or not), cache_write and set_scope on any stage, rfactor of any
reduction loop; products by blocks that an intrinsic does (tensorize); and wishes
(`tests.strategies.wishes`).

Never drawn: illegal steps, but in scans and in reductions whose ranges depend on others, where what
is refused is left out; schedules that `lower`
would refuse (`closed` undoes what does not fit), vectors of more than 16 lanes, unrolled loops of
more than 16 iterations, threads and shared memory (see `tests.strategies.gpu_schedules`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

import refcomp
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.expr import IntImm
from refcomp.schedule.schedule import Schedule, replay
from refcomp.schedule.stage_graph import depends_on, readers_of
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp, ExternOp, Operation, ScanOp
from refcomp.te.tensor import REDUCTION, IterVar, Tensor
from tests.strategies.computation import Computation
from tests.strategies.computes import DEPENDENT_REDUCTIONS, EDGES, MORE_SCANS, SCANS
from tests.strategies.lowered_once import lowered_once
from tests.strategies.tensor_intrins import block_product, blocked
from tests.strategies.wishes import with_wishes

FACTORS = (1, 2, 3, 4, 5, 8, 16)
_MOST_COPIES = 16
_PANELS = (0, 0, 0, 0, 2, 3, 4, 8)
_MOST_STAGES = 6
_DEPTHS = (2, 4, 5, 5, 6, 7, 8, 10)

_Draw = Callable[[Any], Any]


def _loops(stage: StageSchedule) -> list[IterVar]:
    """The loops of the stage, but those that an intrinsic does."""
    leaves, done = list(stage.leaf_iter_vars), stage.stage.loops.tensorized
    return leaves if done is None else leaves[: stage.stage.loops.position(done.axis)]


def _free(stage: StageSchedule) -> list[IterVar]:
    return [axis for axis in _loops(stage) if axis not in stage.stage.loops.marks]


def _replaceable(stage: StageSchedule) -> list[IterVar]:
    points = [attached.attach_point.axis for attached in stage.stage.attached]
    return [axis for axis in _free(stage) if not any(axis is point for point in points)]


def _constant(axis: IterVar) -> bool:
    return isinstance(axis.extent, IntImm) and 1 <= axis.extent.value <= _MOST_COPIES


def _pick(draw: _Draw, axes: list[IterVar]) -> IterVar:
    return axes[draw(st.integers(0, len(axes) - 1))]


def _split(draw: _Draw, stage: StageSchedule) -> bool:
    axes = _replaceable(stage)
    if not axes:
        return False
    by = draw(st.sampled_from(["factor", "nparts"]))
    stage.split(_pick(draw, axes), **{by: draw(st.sampled_from(FACTORS))})
    return True


def _pairs(stage: StageSchedule) -> list[tuple[IterVar, IterVar]]:
    loops, free = _loops(stage), _replaceable(stage)
    return [(x, y) for x, y in pairwise(loops) if x in free and y in free]


def _tile(draw: _Draw, stage: StageSchedule) -> bool:
    pairs = _pairs(stage)
    if not pairs:
        return False
    x, y = pairs[draw(st.integers(0, len(pairs) - 1))]
    stage.tile(x, y, draw(st.sampled_from(FACTORS)), draw(st.sampled_from(FACTORS)))
    return True


def _fuse(draw: _Draw, stage: StageSchedule) -> bool:
    if not _loops(stage):
        stage.fuse()
        return True
    pairs = [(x, y) for x, y in _pairs(stage) if x.kind == y.kind]
    if not pairs:
        return False
    stage.fuse(*pairs[draw(st.integers(0, len(pairs) - 1))])
    return True


def _reorder(draw: _Draw, stage: StageSchedule) -> bool:
    loops = _loops(stage)
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
    if stage.stage.attached or any(
        not isinstance(r.op, ComputeOp) for r in readers_of(stage.stage)
    ):
        return False  # scans and extern operations read memory
    stage.compute_inline()
    return True


def _root(draw: _Draw, stage: StageSchedule) -> bool:
    stage.compute_root()
    return True


def _at(draw: _Draw, stage: StageSchedule) -> bool:
    own = stage.stage
    consumers = [
        other
        for other in own.siblings
        if other.placement != "inline"
        and isinstance(other.op, ComputeOp | ScanOp)
        and _loops(stage.schedule[other.op])
        and depends_on(other, own)
        and all(reader is other or depends_on(other, reader) for reader in readers_of(own))
    ]
    if own.is_output or not consumers:
        return False
    other = consumers[draw(st.integers(0, len(consumers) - 1))]
    consumer = stage.schedule[other.op]
    stage.compute_at(consumer, _pick(draw, _loops(consumer)))
    return True


def _scope(draw: _Draw, stage: StageSchedule) -> bool:
    if stage.stage.is_output:
        return False
    stage.set_scope(draw(st.sampled_from(["local", "global"])))
    return True


def _cache_read(draw: _Draw, stage: StageSchedule) -> bool:
    own = stage.stage
    if len(own.siblings) > _MOST_STAGES or not own.op.inputs:
        return False
    tensor = own.op.inputs[draw(st.integers(0, len(own.op.inputs) - 1))]
    maker = stage.schedule.stage_of(tensor)
    if maker.placement == "inline":
        return False
    readers = [reader.op for reader in readers_of(maker) if tensor in reader.op.inputs]
    some = readers if draw(st.booleans()) else [own.op]
    scope = draw(st.sampled_from(["local", "global"]))
    panel = panel_of(draw, tensor, some)
    copy = stage.schedule.cache_read(tensor, scope, some, panel=panel)
    return _at(draw, stage.schedule[copy]) or True


def panel_of(draw: _Draw, tensor: Tensor, readers: Sequence[Operation]) -> int:
    """The columns of a panel of a copy of `tensor`; 0, mostly, for a copy without panels."""
    columns = tensor.shape[-1] if tensor.shape else None
    if not isinstance(columns, IntImm) or any(isinstance(op, ExternOp) for op in readers):
        return 0
    return draw(st.sampled_from(_PANELS))


def _cache_write(draw: _Draw, stage: StageSchedule) -> bool:
    own = stage.stage
    is_changed = own.loops.marks or own.loops.relations or own.loops.leaves != list(own.roots)
    if is_changed or own.attached or own.placement == "inline" or len(own.siblings) > _MOST_STAGES:
        return False
    scope = draw(st.sampled_from(["local", "global"]))
    made = stage.schedule.cache_write(list(own.op.outputs), scope)
    if draw(st.booleans()):
        _split(draw, stage)
    return _at(draw, stage.schedule[made[0]]) or True


def _rfactor(draw: _Draw, stage: StageSchedule) -> bool:
    own = stage.stage
    axes = [axis for axis in _free(stage) if axis.kind == REDUCTION]
    if not axes or own.attached or own.loops.tensorized or len(own.siblings) > _MOST_STAGES:
        return False
    axis = _pick(draw, axes)
    if draw(st.booleans()):
        axis = stage.split(axis, draw(st.sampled_from(FACTORS)))[draw(st.integers(0, 1))]
    position = draw(st.integers(-len(own.op.axis) - 1, len(own.op.axis)))
    made = stage.schedule.rfactor(own.op.outputs[0], axis, position)
    return _at(draw, stage.schedule[made[0] if isinstance(made, list) else made]) or True


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
    (4, _at),
    (1, _scope),
    (2, _cache_read),
    (2, _cache_write),
    (3, _rfactor),
)
_WEIGHTED = tuple(step for weight, step in _STEPS for _ in range(weight))
# What is read at an edge is the hardest where a loop holds a part of it: every third step.
_PLACING = (_at, _at, _cache_read, _rfactor, _rfactor)


def _init_at(draw: _Draw, stage: StageSchedule) -> bool:
    """Compute an init of a scan, or what one reads, at a loop of a stage that needs it."""
    stages = stage.schedule.stages
    inits = {init for s in stages if isinstance(s.op, ScanOp) for init in s.op.init}
    needed = inits.union(*(init.op.inputs for init in inits))
    fitting = [
        s for s in stages if isinstance(s.op, ComputeOp) and not needed.isdisjoint(s.op.outputs)
    ]
    return _at(draw, stage.schedule[fitting[draw(st.integers(0, len(fitting) - 1))].op])


def _steps_of(kind: str, number: int) -> tuple[Callable[[_Draw, StageSchedule], bool], ...]:
    """What step `number` is drawn from: every third one places what is hard to place."""
    if number % 3 == 0 and kind in EDGES:
        return _PLACING
    is_scan = kind in (*SCANS, *MORE_SCANS)
    return (_init_at, _at) if number % 3 == 0 and is_scan else _WEIGHTED


@st.composite
def schedules(draw: _Draw, computation: Computation, by_blocks: bool = True) -> Schedule:
    """A schedule of `computation`; its `steps` tell what was drawn. Most products are done by
    blocks, if that is allowed."""
    schedule = _begun(draw, computation, by_blocks)
    depth = draw(st.sampled_from(_DEPTHS))
    for number in range(2 * depth):  # a step that finds nothing to work on is drawn again
        computed = [stage for stage in schedule.stages if isinstance(stage.op, ComputeOp)]
        stage = computed[draw(st.integers(0, len(computed) - 1))]
        step = draw(st.sampled_from(_steps_of(computation.kind, number)))
        try:
            step(draw, schedule[stage.op])
        except (UserError, Unsupported):  # no other computation has anything to refuse
            kinds = (*SCANS, *MORE_SCANS, *DEPENDENT_REDUCTIONS, "vector scan")
            assert computation.kind in kinds
        if len(schedule.steps) >= depth:
            break
    return with_wishes(draw, closed(schedule, computation), computation.args)


def _begun(draw: _Draw, computation: Computation, by_blocks: bool) -> Schedule:
    """A fresh schedule, or one in which an intrinsic does blocks of a product."""
    by_blocks = by_blocks and computation.kind.startswith("matmul")
    if not by_blocks or not draw(st.integers(0, 3)):
        return refcomp.create_schedule([tensor.op for tensor in computation.outputs])
    (c,) = computation.outputs
    sizes = [draw(st.sampled_from(_blocks(axis))) for axis in (*c.op.axis, *c.op.reduce_axis)]
    intrin = block_product(*sizes, dtype=str(c.dtype))
    return blocked(c, c.op.reduce_axis[0], *sizes, intrin)


def _blocks(axis: IterVar) -> list[int]:
    """Extents of blocks that leave no guards."""
    extent = axis.extent.value if isinstance(axis.extent, IntImm) else 1
    return [size for size in (1, 2, 3, 4, 5) if extent and extent % size == 0] or [1]


def closed(schedule: Schedule, computation: Computation) -> Schedule:
    """A schedule that `lower` takes: `schedule` with a few more steps, or without some.
    Stages that are read outside the loop they are attached to go back to the root, and memory of
    unknown size is global; intrinsics that do not fit any more and vectors of none are left out. A
    stage that reads a scan's state cannot go to the root, and a loop cannot leave the axis that
    reads its bounds: there the last steps are left out."""
    kept = [*schedule.steps]
    while True:
        try:
            lowered_once(schedule, computation.args)
        except UserError as error:
            hindered = next((p for found, p in _HINDERED if re.search(found, str(error))), None)
            if hindered is not None:
                kept = [step for step in kept if step.primitive != hindered]
                schedule = replay(schedule.outputs, kept)
            elif kept and re.search(_NOT_MENDED, str(error)):
                kept = kept[:-1]
                schedule = replay(schedule.outputs, kept)
            elif not _mended(schedule, str(error)):
                raise
        else:
            return schedule


def _mended(schedule: Schedule, message: str) -> bool:
    for pattern, primitive, args in _MENDS:
        found = re.search(pattern, message)
        if found is not None:
            stage = next(s for s in schedule.stages if s.name == found[1])
            getattr(schedule[stage.op], primitive)(*args)
            return True
    return False


_MENDS = (
    (r"^stage (\S+) is computed inside loop .* reads it outside", "compute_root", ()),
    (r"^local memory of unknown size: dimension \d+ of (\S+) is", "set_scope", ("global",)),
    (r"read from (\S+), which is computed inside of the loop", "compute_root", ()),
    (r"^cannot call a function with the memory of (\S+)", "set_scope", ("global",)),
)
# The last steps are left out.
_NOT_MENDED = "|".join(
    [
        r"^stage \S+ reads the state \S+ outside of scan",
        r"^compute \S+ reads index -\d+ of",
        r"^loop \S+ of stage \S+ has an unknown number of iterations",
    ]
)
_HINDERED = (
    (r"^cannot tensorize|^tensor intrinsic", "tensorize"),
    (r"the vector length 0 is not", "vectorize"),  # of the rows of a scan that is all init
)
