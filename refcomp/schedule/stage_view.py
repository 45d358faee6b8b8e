"""StageView, for reading a stage: its axes, how they were made, and what primitives made of them.

The names are those of the classic API. Each property computes its value from the stage as it is
now, so a value that was read before does not change with the stage. Nothing can be assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
)

from refcomp.foundation.records import record
from refcomp.ir.buffer import StorageScope
from refcomp.schedule.relations import Relation, Singleton
from refcomp.schedule.stage import LoopMark, Provenance, Stage
from refcomp.te.operation import Operation, ScanOp
from refcomp.te.tensor import AxisKind, IterVar, Tensor

if TYPE_CHECKING:
    from refcomp.te.intrin import TensorIntrin

P = ParamSpec("P")
R = TypeVar("R")
# Where the loops of a stage are: see `StageView.attach_type`.
AttachType = Literal["root", "inline", "scope", "scan_update"]


class ReadableGroup(Protocol):
    """Several stages that move together, as `create_group` returns them."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, producers first."""

    def compute_at(self, consumer: Any, axis: IterVar) -> None:
        """Compute each stage of the group at a loop of the stage that reads them all."""

    def compute_root(self) -> None:
        """Give each stage of the group a loop nest of its own."""


class Recorder(Protocol):
    """A schedule, as far as its stages need it."""

    @property
    def groups(self) -> Sequence[ReadableGroup]:
        """Return the groups, oldest first."""

    def stage_of(self, target: Tensor | Operation) -> Stage:
        """Return the stage of a tensor or operation."""

    def apply(
        self,
        stage: Stage,
        primitive: Callable[Concatenate[Stage, Provenance, P], R],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        """Apply a primitive to a stage, record it, and return its result."""


@record
class IterVarAttr:
    """The marks and hints that primitives gave an axis: an item of `iter_var_attrs`."""

    # How the loop is executed, as in `IterVar.Unrolled`; the kind of the axis without a mark. The
    # kind, too, for a bound loop.
    iter_type: AxisKind | LoopMark
    # The thread axis to which the loop is bound.
    bind_thread: IterVar | None
    # The tensors that `prefetch` loads ahead, and for each the number of iterations.
    prefetch_data: tuple[Tensor, ...]
    prefetch_offset: tuple[int, ...]
    # The intrinsic that replaces the loop and everything inside.
    tensor_intrin: TensorIntrin | None
    # The stride of the dimension, from `storage_align`: k * factor + offset elements; 0 without.
    dim_align_factor: int
    dim_align_offset: int
    # The hints of `pragma`, oldest first: `pragma_values[k]` is the value of `pragma_keys[k]`.
    pragma_keys: tuple[str, ...]
    pragma_values: tuple[int | str, ...]


class StageView:
    """A stage of a schedule, for reading."""

    __slots__ = ("schedule", "stage")

    def __init__(self, schedule: Recorder, stage: Stage) -> None:
        self.schedule = schedule
        self.stage = stage

    @property
    def op(self) -> Operation:
        """Return the operation that the stage computes."""
        return self.stage.op

    @property
    def origin_op(self) -> Operation:
        """Return the user's operation, before primitives such as cache_read replaced it."""
        origin: Operation = self.stage.op.outputs[0].op
        return origin

    @property
    def is_output(self) -> bool:
        """Return True if the caller provides the memory of the tensors."""
        return self.stage.is_output

    @property
    def scope(self) -> StorageScope | None:
        """Return the memory that was asked for; None if it follows from the placement."""
        return self.stage.memory.scope

    @property
    def group(self) -> ReadableGroup | None:
        """Return the smallest group that has the stage, the newest of equal ones; else None."""
        groups = [g for g in self.schedule.groups if self.stage in g.stages]
        return min(reversed(groups), key=lambda g: len(g.stages), default=None)

    @property
    def root_iter_vars(self) -> tuple[IterVar, ...]:
        """Return the operation's own axes, reduction axes last."""
        return self.stage.roots

    @property
    def all_iter_vars(self) -> tuple[IterVar, ...]:
        """Return each axis that the stage has or had: its own, then what primitives made."""
        return tuple(self.stage.axes().values())

    @property
    def leaf_iter_vars(self) -> tuple[IterVar, ...]:
        """Return the loops of the stage, outermost first."""
        return tuple(self.stage.loops.leaves)

    @property
    def relations(self) -> tuple[Relation | Singleton, ...]:
        """Return what derived axes from axes: splits and fusions, oldest first, then singletons."""
        loops = self.stage.loops
        return (*loops.relations, *(Singleton(axis) for axis in loops.singles))

    @property
    def iter_var_attrs(self) -> Mapping[IterVar, IterVarAttr]:
        """Return what primitives made of axes. An axis of which they made nothing is missing."""
        found = {
            axis: attr for axis in self.all_iter_vars for attr in self._attrs_of(axis)
        }
        return MappingProxyType(found)

    def _attrs_of(self, axis: IterVar) -> Iterator[IterVarAttr]:
        """Yield the attributes of an axis, if it has any."""
        stage = self.stage
        loops = stage.loops
        thread = stage.threads.bound.get(axis, stage.threads.virtual.get(axis))
        mark = None if thread is not None else loops.marks.get(axis)
        prefetches = [hint for hint in loops.prefetches if hint.axis is axis]
        pragmas = [hint for hint in loops.pragmas if hint.axis is axis]
        tensorized = loops.tensorized
        is_replaced = tensorized is not None and tensorized.axis is axis
        roots = [k for k, root in enumerate(stage.roots) if root is axis]
        alignment = stage.memory.alignments.get(roots[0]) if roots else None
        is_marked = any(item is not None for item in (thread, mark, alignment))
        if not is_marked and not prefetches and not pragmas:
            return
        yield IterVarAttr(
            iter_type=axis.kind if mark is None else mark,
            bind_thread=thread,
            prefetch_data=tuple(hint.tensor for hint in prefetches),
            prefetch_offset=tuple(hint.offset for hint in prefetches),
            tensor_intrin=tensorized.intrin if tensorized and is_replaced else None,
            dim_align_factor=0 if alignment is None else alignment.factor,
            dim_align_offset=0 if alignment is None else alignment.offset,
            pragma_keys=tuple(hint.key for hint in pragmas),
            pragma_values=tuple(hint.value for hint in pragmas),
        )

    @property
    def attach_type(self) -> AttachType:
        """Return where the loops of the stage are.

        Returns:
            `"root"` for a loop nest of its own, `"inline"` if it has none, `"scope"` at a loop of
            `attach_stage`, and `"scan_update"` for the update of a scan.
        """
        point = self.stage.attach_point
        if point is None:
            return "inline" if self.stage.placement == "inline" else "root"
        scan = point.stage.op
        made = self.stage.op.outputs
        if isinstance(scan, ScanOp) and any(tensor in made for tensor in scan.update):
            return "scan_update"
        return "scope"

    @property
    def attach_stage(self) -> Self | None:
        """Return the stage at whose loop this one is computed; None without one."""
        point = self.stage.attach_point
        return None if point is None else type(self)(self.schedule, point.stage)

    @property
    def attach_ivar(self) -> IterVar | None:
        """Return the loop of `attach_stage` at which this stage is computed; None without one."""
        point = self.stage.attach_point
        return None if point is None else point.axis
