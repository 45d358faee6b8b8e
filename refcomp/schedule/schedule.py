"""Schedule: how a computation is carried out, as the list of primitives that were called.

A schedule is data: the dataflow graph of its outputs and `steps`, each with its arguments by name
and the user's line. `replay` builds it again, up to any step. `s[T]` finds the stage of tensor T
by its operation; no primitive of this set replaces a stage's operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from refcomp.errors import UserError
from refcomp.provenance import caller_line
from refcomp.schedule.primitives.fuse import fuse
from refcomp.schedule.primitives.mark import parallel, unroll, vectorize
from refcomp.schedule.primitives.place import compute_inline, compute_root
from refcomp.schedule.primitives.reorder import reorder
from refcomp.schedule.primitives.split import split, tile
from refcomp.schedule.stage import Made, Stage
from refcomp.te.operation import Operation, reachable_operations
from refcomp.te.tensor import IterVar, Tensor

PRIMITIVES: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(split, tile, fuse, reorder),
        *(vectorize, unroll, parallel, compute_inline, compute_root),
    )
}


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive as it was called. Axes stand by name among `args` and `options`."""

    stage: str
    primitive: str
    args: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]
    line: str

    def __str__(self) -> str:
        given = [*map(str, self.args), *(f"{name}={value}" for name, value in self.options)]
        return f"s[{self.stage}].{self.primitive}({', '.join(given)})"


class StageSchedule:
    """`s[T]`: the primitives of one stage, and a look at its loops."""

    __slots__ = ("_schedule", "stage")

    def __init__(self, schedule: Schedule, stage: Stage) -> None:
        self._schedule, self.stage = schedule, stage

    @property
    def op(self) -> Operation:
        """The operation computed."""
        return self.stage.op

    @property
    def leaf_iter_vars(self) -> tuple[IterVar, ...]:
        """The loops, outermost first."""
        return tuple(self.stage.leaves)

    def split(
        self, parent: IterVar, factor: int | None = None, nparts: int | None = None
    ) -> tuple[IterVar, IterVar]:
        """See `refcomp.schedule.primitives.split.split`."""
        options = {"factor": factor, "nparts": nparts}
        given = {name: value for name, value in options.items() if value is not None}
        made: tuple[IterVar, IterVar] = self._schedule.apply(self.stage, "split", parent, **given)
        return made

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: int, y_factor: int
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """See `refcomp.schedule.primitives.split.tile`."""
        made: tuple[IterVar, IterVar, IterVar, IterVar] = self._schedule.apply(
            self.stage, "tile", x_parent, y_parent, x_factor, y_factor
        )
        return made

    def fuse(self, *axes: IterVar) -> IterVar:
        """See `refcomp.schedule.primitives.fuse`."""
        fused: IterVar = self._schedule.apply(self.stage, "fuse", *axes)
        return fused

    def reorder(self, *axes: IterVar) -> None:
        """See `refcomp.schedule.primitives.reorder`."""
        self._schedule.apply(self.stage, "reorder", *axes)

    def vectorize(self, axis: IterVar) -> None:
        """See `refcomp.schedule.primitives.mark`."""
        self._schedule.apply(self.stage, "vectorize", axis)

    def unroll(self, axis: IterVar) -> None:
        """See `refcomp.schedule.primitives.mark`."""
        self._schedule.apply(self.stage, "unroll", axis)

    def parallel(self, axis: IterVar) -> None:
        """See `refcomp.schedule.primitives.mark`."""
        self._schedule.apply(self.stage, "parallel", axis)

    def compute_inline(self) -> None:
        """See `refcomp.schedule.primitives.place`."""
        self._schedule.apply(self.stage, "compute_inline")

    def compute_root(self) -> None:
        """See `refcomp.schedule.primitives.place`."""
        self._schedule.apply(self.stage, "compute_root")


class Schedule:
    """The stages of all operations that `outputs` need, producers first, and the steps taken."""

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs = tuple(outputs)
        self.steps: list[Step] = []
        self.stages: list[Stage] = []
        outputs_set, taken = set(self.outputs), set[str]()
        for op in reachable_operations(self.outputs):
            stage = Stage(op, _unique_name(op.name, taken), op in outputs_set)
            taken.add(stage.name)
            stage.leaves = list(stage.roots)
            self.stages.append(stage)
        self._by_op = {stage.op: stage for stage in self.stages}

    def stage_of(self, target: Tensor | Operation) -> Stage:
        """The stage of a tensor or operation; UserError when this schedule has none."""
        op = target.op if isinstance(target, Tensor) else target
        stage = self._by_op.get(op) if isinstance(op, Operation) else None
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

    def apply(self, stage: Stage, primitive: str, *args: Any, **options: Any) -> Any:
        """Calls a primitive and records it; a refusal names the user's line and records nothing."""
        line = caller_line()
        try:
            result = PRIMITIVES[primitive](stage, Made(primitive, line), *args, **options)
        except UserError as error:
            error.where = f"{error.where}, at {line}" if error.where else f"at {line}"
            raise
        named = tuple(_to_name(arg) for arg in args)
        self.steps.append(Step(stage.name, primitive, named, tuple(options.items()), line))
        return result


def _unique_name(name: str, taken: Set[str]) -> str:
    unique, count = name, 0
    while unique in taken:
        count += 1
        unique = f"{name}.{count}"
    return unique


def _to_name(value: Any) -> Any:
    return value.name if isinstance(value, IterVar) else value


def create_schedule(ops: Operation | Tensor | Sequence[Operation | Tensor]) -> Schedule:
    """A schedule that computes `ops` (operations or tensors, one or several) in default order.

    UserError for anything else, and for none.
    """
    given = tuple(ops) if isinstance(ops, list | tuple) else (ops,)
    wrong = [op for op in given if not isinstance(op, Operation | Tensor)]
    if wrong or not given:
        raise UserError(
            f"a schedule cannot compute {wrong[0] if wrong else 'nothing'}",
            remedy="pass what compute() returned, or a list of such",
        )
    return Schedule([op.op if isinstance(op, Tensor) else op for op in given])


def replay(outputs: Sequence[Operation], steps: Sequence[Step]) -> Schedule:
    """A fresh schedule of `outputs` with `steps` applied, stages and axes found by name."""
    schedule = Schedule(outputs)
    by_name = {stage.name: stage for stage in schedule.stages}
    for step in steps:
        stage = by_name[step.stage]
        axes = stage.axes()
        args = [axes[arg] if isinstance(arg, str) else arg for arg in step.args]
        made = Made(step.primitive, step.line)
        PRIMITIVES[step.primitive](stage, made, *args, **dict(step.options))
        schedule.steps.append(step)
    return schedule
