"""Schedule: how a computation is carried out, as the list of primitives that were called.

A schedule is data: the dataflow graph of its outputs and `steps`, each with its arguments by name
and the user's line. `replay` builds it again, up to any step. `s[T]` finds the stage of tensor T
by the tensor itself: where cache_read, cache_write or rfactor replace a stage's operation, the
fresh one makes the same tensors over the same axes (see `refcomp.schedule.stage_graph`), so that T,
T.op and T.op.axis mean what they meant before. The axes of a reduction that cache_write or rfactor
moved are those of the stage it moved to; s[T].op.reduce_axis is what T reduces over now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.names import UniqueNames
from refcomp.foundation.provenance import caller_line
from refcomp.schedule.primitives.bind import bind
from refcomp.schedule.primitives.cache_read import cache_read
from refcomp.schedule.primitives.cache_write import cache_write
from refcomp.schedule.primitives.compute_at import compute_at
from refcomp.schedule.primitives.env_threads import env_threads
from refcomp.schedule.primitives.fuse import fuse
from refcomp.schedule.primitives.hint import (
    double_buffer,
    pragma,
    prefetch,
    storage_align,
)
from refcomp.schedule.primitives.mark import parallel, unroll, vectorize
from refcomp.schedule.primitives.place import compute_inline, compute_root
from refcomp.schedule.primitives.reorder import reorder
from refcomp.schedule.primitives.rfactor import rfactor
from refcomp.schedule.primitives.set_scope import set_scope
from refcomp.schedule.primitives.set_store_predicate import set_store_predicate
from refcomp.schedule.primitives.split import split, tile
from refcomp.schedule.primitives.tensorize import tensorize
from refcomp.schedule.scan_body import attach_bodies
from refcomp.schedule.stage import Provenance, Stage
from refcomp.schedule.stage_graph import depends_on, find_stage
from refcomp.schedule.step import Step, resolve, to_name
from refcomp.te.intrin import TensorIntrin
from refcomp.te.operation import Operation, reachable_operations
from refcomp.te.tensor import IterVar, Tensor

PRIMITIVES: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(split, tile, fuse, reorder),
        *(vectorize, unroll, parallel, bind, tensorize),
        *(compute_inline, compute_root, compute_at, set_scope),
        *(cache_read, cache_write, rfactor),
        *(pragma, prefetch, double_buffer, storage_align),
        *(set_store_predicate, env_threads),
    )
}


class StageSchedule:
    """`s[T]`: the primitives of one stage, and a look at its loops."""

    __slots__ = ("schedule", "stage")

    def __init__(self, schedule: Schedule, stage: Stage) -> None:
        self.schedule, self.stage = schedule, stage

    @property
    def op(self) -> Operation:
        """The operation computed."""
        return self.stage.op

    @property
    def leaf_iter_vars(self) -> tuple[IterVar, ...]:
        """The loops, outermost first."""
        return tuple(self.stage.loops.leaves)

    def split(
        self, parent: IterVar, factor: int | None = None, nparts: int | None = None
    ) -> tuple[IterVar, IterVar]:
        """See `refcomp.schedule.primitives.split.split`."""
        options = {"factor": factor, "nparts": nparts}
        given = {name: value for name, value in options.items() if value is not None}
        made: tuple[IterVar, IterVar] = self.schedule.apply(
            self.stage, "split", parent, **given
        )
        return made

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: int, y_factor: int
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """See `refcomp.schedule.primitives.split.tile`."""
        made: tuple[IterVar, IterVar, IterVar, IterVar] = self.schedule.apply(
            self.stage, "tile", x_parent, y_parent, x_factor, y_factor
        )
        return made

    def fuse(self, *axes: IterVar) -> IterVar:
        """See `refcomp.schedule.primitives.fuse`."""
        fused: IterVar = self.schedule.apply(self.stage, "fuse", *axes)
        return fused

    def reorder(self, *axes: IterVar) -> None:
        """See `refcomp.schedule.primitives.reorder`."""
        self.schedule.apply(self.stage, "reorder", *axes)

    def vectorize(self, axis: IterVar) -> None:
        """See `refcomp.schedule.primitives.mark`."""
        self.schedule.apply(self.stage, "vectorize", axis)

    def unroll(self, axis: IterVar) -> None:
        """See `refcomp.schedule.primitives.mark`."""
        self.schedule.apply(self.stage, "unroll", axis)

    def parallel(self, axis: IterVar) -> None:
        """See `refcomp.schedule.primitives.mark`."""
        self.schedule.apply(self.stage, "parallel", axis)

    def bind(self, axis: IterVar, thread: IterVar) -> None:
        """See `refcomp.schedule.primitives.bind`."""
        self.schedule.apply(self.stage, "bind", axis, thread)

    def tensorize(self, axis: IterVar, intrin: TensorIntrin) -> None:
        """See `refcomp.schedule.primitives.tensorize`."""
        self.schedule.apply(self.stage, "tensorize", axis, intrin)

    def compute_inline(self) -> None:
        """See `refcomp.schedule.primitives.place`."""
        self.schedule.apply(self.stage, "compute_inline")

    def compute_root(self) -> None:
        """See `refcomp.schedule.primitives.place`."""
        self.schedule.apply(self.stage, "compute_root")

    def compute_at(self, consumer: StageSchedule, axis: IterVar) -> None:
        """See `refcomp.schedule.primitives.compute_at`; the consumer is given as `s[C]`."""
        stage = consumer.stage if isinstance(consumer, StageSchedule) else consumer
        self.schedule.apply(self.stage, "compute_at", stage, axis)

    def set_scope(self, scope: str) -> None:
        """See `refcomp.schedule.primitives.set_scope`."""
        self.schedule.apply(self.stage, "set_scope", scope)

    def pragma(self, axis: IterVar, key: str, value: int | str = 1) -> None:
        """See `refcomp.schedule.primitives.hint.pragma`."""
        self.schedule.apply(self.stage, "pragma", axis, key, value)

    def prefetch(self, tensor: Tensor, axis: IterVar, offset: int) -> None:
        """See `refcomp.schedule.primitives.hint.prefetch`."""
        if not isinstance(tensor, Tensor):
            raise UserError(
                f"{tensor!r} is no tensor to prefetch", remedy="pass what is read"
            )
        maker = self.schedule.stage_of(tensor)
        self.schedule.apply(
            self.stage, "prefetch", axis, maker, tensor.value_index, offset
        )

    def double_buffer(self) -> None:
        """See `refcomp.schedule.primitives.hint.double_buffer`."""
        self.schedule.apply(self.stage, "double_buffer")

    def set_store_predicate(self, predicate: Any) -> None:
        """See `refcomp.schedule.primitives.set_store_predicate`."""
        self.schedule.apply(self.stage, "set_store_predicate", predicate)

    def env_threads(self, threads: Sequence[IterVar]) -> None:
        """See `refcomp.schedule.primitives.env_threads`."""
        self.schedule.apply(self.stage, "env_threads", threads)

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """See `refcomp.schedule.primitives.hint.storage_align`."""
        self.schedule.apply(self.stage, "storage_align", axis, factor, offset)


class StageGroup:
    """Several stages, producers first, that move together."""

    __slots__ = ("schedule", "stages")

    def __init__(self, schedule: Schedule, stages: Sequence[Stage]) -> None:
        self.schedule, self.stages = schedule, tuple(stages)

    def compute_at(self, consumer: StageSchedule, axis: IterVar) -> None:
        """Computes each stage of the group at a loop of the consumer of all."""
        for stage in reversed(self.stages):
            StageSchedule(self.schedule, stage).compute_at(consumer, axis)

    def compute_root(self) -> None:
        """Gives each stage of the group a loop nest of its own."""
        for stage in self.stages:
            StageSchedule(self.schedule, stage).compute_root()


class Schedule:
    """The stages of all operations that `outputs` need, producers first, and the steps taken."""

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs = _checked_operations(outputs)
        self.steps: list[Step] = []
        self.stages: list[Stage] = []
        outputs_set = set(self.outputs)
        names = UniqueNames(separator=".")
        for op in reachable_operations(self.outputs):
            stage = Stage(
                op, names.take(op.name), op in outputs_set, siblings=self.stages
            )
            stage.loops.leaves = list(stage.roots)
            self.stages.append(stage)
        attach_bodies(self.stages)

    def stage_of(self, target: Tensor | Operation) -> Stage:
        """The stage of a tensor or operation; UserError when this schedule has none."""
        stage = find_stage(self.stages, target)
        if stage is None:
            known = ", ".join(stage.name for stage in self.stages)
            raise UserError(
                f"{getattr(target, 'name', target)} is not part of this schedule",
                where=f"the schedule has the stages {known}",
                why="it belongs to another computation, or nothing that is computed here needs it",
                remedy="create the schedule from the operation whose result you want",
            )
        return stage

    def __getitem__(self, target: Tensor | Operation) -> StageSchedule:
        return StageSchedule(self, self.stage_of(target))

    def cache_read(
        self, tensor: Tensor, scope: str, readers: Sequence[Tensor | Operation]
    ) -> Tensor:
        """See `refcomp.schedule.primitives.cache_read`; the readers are tensors or operations."""
        if not isinstance(tensor, Tensor):
            raise UserError(
                f"{tensor!r} is no tensor to copy", remedy="pass what is read"
            )
        given: Any = readers if isinstance(readers, list | tuple) else [readers]
        stages = [self.stage_of(reader) for reader in given]
        stage = self.stage_of(tensor)
        copy: Tensor = self.apply(
            stage, "cache_read", tensor.value_index, scope, stages
        )
        return copy

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """See `refcomp.schedule.primitives.cache_write`: a tensor for a tensor, a list for a list.

        An operation of several outputs is given as the list of all of them.
        """
        several = isinstance(tensor, list | tuple)
        given: Any = tensor if several else [tensor]
        if not given:
            raise UserError(
                "cache_write is given no tensor",
                why="the stage to be divided is named by what it computes",
                remedy="pass the tensor, or the list of all that one operation computes",
            )
        stage = self.stage_of(given[0])
        if len(given) != len(stage.op.outputs) or any(
            one is not made for one, made in zip(given, stage.op.outputs, strict=True)
        ):
            names = ", ".join(made.name for made in stage.op.outputs)
            raise UserError(
                f"cannot compute a part of stage {stage.name} into another memory",
                why=f"its operation computes {names} together",
                remedy=f"pass [{names}]",
            )
        made: tuple[Tensor, ...] = self.apply(stage, "cache_write", scope)
        return list(made) if several else made[0]

    def normalize(self) -> Schedule:
        """A schedule of its own with the same steps; all axes run from their minimum already."""
        return replay(self.outputs, self.steps)

    def create_group(
        self, outputs: Any, inputs: Any, include_inputs: bool = False
    ) -> StageGroup:
        """All stages on the way from `inputs` to `outputs` (tensors or lists of such), without the
        inputs unless they are to be included, to be moved together."""
        return StageGroup(self, stages_between(self, outputs, inputs, include_inputs))

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """See `refcomp.schedule.primitives.rfactor`: a tensor, or of several outputs their list."""
        given = {"factor_axis": factor_axis} if factor_axis != 0 else {}
        made: tuple[Tensor, ...] = self.apply(
            self.stage_of(tensor), "rfactor", axis, **given
        )
        return list(made) if len(made) > 1 else made[0]

    def apply(self, stage: Stage, primitive: str, *args: Any, **options: Any) -> Any:
        """Calls a primitive and records it; a refusal names the user's line and records nothing."""
        line = caller_line()
        try:
            result = PRIMITIVES[primitive](
                stage, Provenance(primitive, line), *args, **options
            )
        except RefcompError as error:
            error.where = f"{error.where}, at {line}" if error.where else f"at {line}"
            raise
        named = tuple(to_name(arg) for arg in args)
        self.steps.append(
            Step(stage.name, primitive, named, tuple(options.items()), line)
        )
        return result


def stages_between(
    schedule: Schedule, outputs: Any, inputs: Any, include_inputs: bool
) -> list[Stage]:
    """The stages that `outputs` need and that need `inputs`; UserError when there are none."""
    ends = [schedule.stage_of(t) for t in _listed(outputs)]
    starts = [schedule.stage_of(t) for t in _listed(inputs)]
    found = [
        stage
        for stage in schedule.stages
        if any(stage is end or depends_on(end, stage) for end in ends)
        and any(depends_on(stage, start) for start in starts)
    ]
    if include_inputs:
        found = [s for s in schedule.stages if s in (*found, *starts)]
    if not found:
        raise UserError(
            "a group without stages",
            why="no stage is needed by the outputs and needs the inputs",
            remedy="pass outputs=[...] that are computed from inputs=[...]",
        )
    return found


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def create_schedule(ops: Operation | Tensor | Sequence[Operation | Tensor]) -> Schedule:
    """A schedule that computes `ops` (operations or tensors, one or several) in default order.

    UserError for anything else, and for none.
    """
    return Schedule(_checked_operations(ops))


def _checked_operations(ops: Any) -> tuple[Operation, ...]:
    given = tuple(ops) if isinstance(ops, list | tuple) else (ops,)
    wrong = [op for op in given if not isinstance(op, Operation | Tensor)]
    if wrong or not given:
        raise UserError(
            f"a schedule cannot compute {wrong[0] if wrong else 'nothing'}",
            remedy="pass what compute() returned, or a list of such",
        )
    return tuple(op.op if isinstance(op, Tensor) else op for op in given)


def replay(outputs: Sequence[Operation], steps: Sequence[Step]) -> Schedule:
    """A fresh schedule of `outputs` with `steps` applied, stages and axes found by name.

    Stages that steps made are found by name too: equal steps give them equal names.
    """
    schedule = Schedule(outputs)
    if not isinstance(steps, list | tuple) or not all(
        isinstance(s, Step) for s in steps
    ):
        raise UserError(
            f"{steps!r} are not the steps of a schedule",
            remedy="pass schedule.steps of another",
        )
    for step in steps:
        stage, args = resolve(step, schedule.stages)
        provenance = Provenance(step.primitive, step.line)
        PRIMITIVES[step.primitive](stage, provenance, *args, **dict(step.options))
        schedule.steps.append(step)
    return schedule
