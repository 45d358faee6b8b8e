"""Rows for GPUs: reductions, and the elementwise stages between and behind them, in one kernel.

A chain such as softmax or layer normalization reduces each row to statistics. Then it computes the
row's elements from them. `find_rows` recognises the chain by the indices of its reads. The last
stage is the *root*. The stages before it are computed inside its loops:

- If neighbours in a row are neighbours in memory, some threads share a row. Each adds up a part.
  A tree in shared memory, and shuffles where the target has them, combine the parts
  (`refcomp.lowering.cross_thread`). Each thread then holds the statistics in registers.
- Otherwise each thread has a row of its own, and neighbouring threads have neighbouring rows.

In both cases, neighbouring threads read neighbouring elements.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr
from refcomp.ir.rewrite import variables_in, walk
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_graph import readers_of
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import IterVar, TensorRead, thread_axis
from refcomp.topi.tags import SHARED

# Threads of a group: the width of the widest waves, so that no wave has idle lanes.
GROUP_THREADS = 64
_MAX_THREADS = 256  # that share a row
_MAX_ROW_BYTES = 16384  # of shared memory, so that several groups fit in a compute unit

# The place in the root of the elements of a tensor's dimension: at one of its axes, on an axis that
# some reader reduces over, or anywhere.
_REDUCED = -1
_ANY = -2


@dataclass(frozen=True, slots=True)
class RowMember:
    """A stage that is computed in the kernel of a chain."""

    op: ComputeOp
    row: tuple[IterVar, ...]  # its axes along a row


@dataclass(frozen=True, slots=True)
class RowChain:
    """The stages of one kernel, which computes rows.

    Attributes:
        root: the stage that keeps its memory.
        members: the stages that are computed inside its loops, consumers first.
        kept: axes of the root that number the rows.
        row: axes of the root along a row; none if the root has one element for each row.
    """

    root: ComputeOp
    members: tuple[RowMember, ...]
    kept: tuple[IterVar, ...]
    row: tuple[IterVar, ...]

    @property
    def is_contiguous(self) -> bool:
        """Return True if neighbours in a row are neighbours in memory."""
        if not self.row:
            return self.reduces_neighbours
        wide = [axis for axis in self.root.axis if _extent(axis) != 1]
        return wide[-1] in self.row

    @property
    def reduces_neighbours(self) -> bool:
        """Return True if all reductions run over neighbours in memory."""
        return all(map(reduces_neighbours, self.reductions))

    @property
    def reductions(self) -> list[ComputeOp]:
        """Return the stages that reduce rows."""
        ops = [self.root, *(member.op for member in self.members)]
        return [op for op in ops if op.reduce_axis]

    @property
    def length(self) -> int:
        """Return the number of elements of a row, or 0 if it is symbolic."""
        lengths = [self.row] if self.row else []
        lengths += [op.reduce_axis for op in self.reductions]
        return max(math.prod(map(_extent, axes)) for axes in lengths)


def find_rows(
    schedule: Schedule, root: ComputeOp, free: Container[Operation]
) -> RowChain | None:
    """Return the chain of reductions that ends in `root`; None if it has none.

    A stage belongs to the chain if all its readers do, and each of them reads it at the indices of
    its own axes. All reductions must be over the same axes of the root. Only stages of `free` are
    taken, which have no schedule yet.
    """
    search = _ChainSearch(root)
    for stage in reversed(schedule.stages):
        if stage.op in free:
            search.add(stage)
    kept = search.kept
    if kept is None:
        return None
    rows = [axis for axis in root.axis if axis not in kept and _extent(axis) != 1]
    rest = [axis for axis in root.axis if axis not in rows]
    members = []
    for op, places in search.places.items():
        if op is not root:
            pairs = zip(op.axis, places, strict=True)
            own = [axis for axis, place in pairs if _is_in(place, root, rows)]
            members.append(RowMember(op, tuple(own)))
    return RowChain(root, tuple(members), tuple(rest), tuple(rows))


def _is_in(place: int, root: ComputeOp, rows: Sequence[IterVar]) -> bool:
    """Return True if a place is on an axis of a row."""
    return place == _REDUCED or (place != _ANY and root.axis[place] in rows)


@dataclass(slots=True)
class _ChainSearch:
    """The search for the chain of a root.

    Attributes:
        root: the last stage.
        places: stage -> for each of its dimensions, where its elements lie in the root.
        kept: axes of the root that are not reduced; None until a reduction is found.
    """

    root: ComputeOp
    places: dict[ComputeOp, tuple[int, ...]] = field(init=False)
    kept: list[IterVar] | None = None

    def __post_init__(self) -> None:
        self.places = {self.root: tuple(range(len(self.root.axis)))}
        if self.root.reduce_axis:
            self.kept = list(self.root.axis)

    def add(self, stage: Stage) -> None:
        """Add a stage to the chain if it belongs there. Its readers were added before."""
        op = stage.op
        if stage.is_output or not isinstance(op, ComputeOp) or len(op.outputs) != 1:
            return
        if not op.reduce_axis and op.tag not in (INJECTIVE, SHARED):
            return
        readers = [reader.op for reader in readers_of(stage)]
        places = self._places_of(op, readers)
        if places is None:
            return
        if op.reduce_axis:
            kept = self._kept_by(places)
            if kept is None:
                return
            self.kept = kept
        self.places[op] = places

    def _places_of(
        self, op: ComputeOp, readers: Sequence[Operation]
    ) -> tuple[int, ...] | None:
        """Return the places of the dimensions of `op` in the root; None if readers disagree."""
        (tensor,) = op.outputs
        found = [_ANY] * len(op.axis)
        for reader in readers:
            if reader not in self.places or not isinstance(reader, ComputeOp):
                return None
            for read in reads_of(reader):
                if read.tensor is not tensor:
                    continue
                for dimension, index in enumerate(read.indices):
                    place = self._place(reader, index, op.axis[dimension])
                    merged = _merge(found[dimension], place)
                    if merged is None:
                        return None
                    found[dimension] = merged
        return tuple(found) if readers else None

    def _place(self, reader: ComputeOp, index: Expr, dimension: IterVar) -> int | None:
        if _extent(dimension) == 1:
            return _ANY
        for axis, place in zip(reader.axis, self.places[reader], strict=True):
            if index is axis.var:
                return place
        if any(index is axis.var for axis in reader.reduce_axis):
            return _REDUCED
        return None

    def _kept_by(self, places: Sequence[int]) -> list[IterVar] | None:
        """Return the axes that a reduction keeps; None if the chain has reductions with others."""
        if _REDUCED in places:
            return None
        axes = self.root.axis
        kept = [axis for place, axis in enumerate(axes) if place in places]
        if self.kept is None:
            return kept
        # Axes of extent 1 are kept and reduced alike.
        known = {axis for axis in self.kept if _extent(axis) != 1}
        return (
            self.kept
            if {axis for axis in kept if _extent(axis) != 1} == known
            else None
        )


def _merge(a: int, b: int | None) -> int | None:
    """Return the place that is both `a` and `b`; None if there is none."""
    if b is None or a == _ANY:
        return b
    if a == b or b in (_ANY, _REDUCED):
        return a
    return b if a == _REDUCED else None


def reads_of(op: ComputeOp) -> list[TensorRead]:
    """Return the reads of tensors in the body of `op`."""
    nodes = (node for root in op.body for node in walk(root))
    return [node for node in nodes if isinstance(node, TensorRead)]


def reduces_neighbours(op: ComputeOp) -> bool:
    """Return True if the innermost reduction axis runs over neighbours in memory."""
    last = op.reduce_axis[-1].var
    found = False
    for read in reads_of(op):
        uses = [any(var is last for var in variables_in(i)) for i in read.indices]
        if not any(uses):
            continue
        if read.indices[-1] is not last or any(uses[:-1]):
            return False
        found = True
    return found


def _extent(axis: IterVar) -> int:
    """Return the extent of the axis, or 0 if it is symbolic or empty."""
    return as_int(axis.extent) or 0


def schedule_rows(schedule: Schedule, chain: RowChain) -> None:
    """Schedule all stages of `chain` as one kernel."""
    if chain.is_contiguous and chain.length != 1:
        _share_rows(schedule, chain)
    else:
        _own_rows(schedule, chain)


def _own_rows(schedule: Schedule, chain: RowChain) -> None:
    """Give each thread a row."""
    root = schedule[chain.root]
    if chain.row:
        root.reorder(*chain.kept, *chain.row)
    thread = bind_elements(root, chain.kept)
    for member in chain.members:
        stage = schedule[member.op]
        if member.op.reduce_axis:
            stage.set_scope("local")
            stage.compute_at(root, thread)
        else:
            stage.compute_inline()


def bind_elements(handle: StageSchedule, axes: Sequence[IterVar]) -> IterVar:
    """Fuse axes, bind them to groups and threads, and return the axis of the threads."""
    whole = handle.fuse(*axes)
    block, thread = handle.split(whole, factor=GROUP_THREADS)
    handle.bind(block, thread_axis("blockIdx.x"))
    handle.bind(thread, thread_axis("threadIdx.x"))
    return thread


def _share_rows(schedule: Schedule, chain: RowChain) -> None:
    """Let threads along x share a row. A group has several short rows, along y."""
    threads = _threads_of(chain.length)
    rows = max(1, GROUP_THREADS // threads)
    root = schedule[chain.root]
    if chain.row:
        root.reorder(*chain.kept, *chain.row)
    place = root.fuse(*chain.kept)
    if rows > 1:
        block, place = root.split(place, factor=rows)
        root.bind(block, thread_axis("blockIdx.x"))
        root.bind(place, thread_axis("threadIdx.y"))
    else:
        root.bind(place, thread_axis("blockIdx.x"))
    if chain.row:
        _bind_part(root, chain.row, threads)
    if chain.root.reduce_axis:
        _bind_part(root, chain.root.reduce_axis, threads)
    for member in chain.members:
        stage = schedule[member.op]
        if member.op.reduce_axis:
            stage.set_scope("local")
            stage.compute_at(root, place)
            _bind_part(stage, member.op.reduce_axis, threads)
        elif rows == 1 and _fits_in_shared_memory(member, chain):
            stage.set_scope("shared")
            stage.compute_at(root, place)
            stage.reorder(
                *(a for a in member.op.axis if a not in member.row), *member.row
            )
            _bind_part(stage, member.row, threads)
        else:
            stage.compute_inline()


def _bind_part(stage: StageSchedule, axes: Sequence[IterVar], threads: int) -> None:
    _, thread = stage.split(stage.fuse(*axes), factor=threads)
    stage.bind(thread, thread_axis("threadIdx.x"))


def _threads_of(length: int) -> int:
    """Return the number of threads that share a row of `length` elements (0: symbolic)."""
    if not length:
        return GROUP_THREADS
    power = 1 << (length - 1).bit_length()
    return min(power, _MAX_THREADS)


def _fits_in_shared_memory(member: RowMember, chain: RowChain) -> bool:
    """Return True if a stage is costly, and its elements of a row fit in shared memory."""
    if member.op.tag != SHARED or not member.row or not chain.length:
        return False
    return chain.length * member.op.outputs[0].dtype.bytes <= _MAX_ROW_BYTES
