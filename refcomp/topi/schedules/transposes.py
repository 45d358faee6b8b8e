"""Transposes for GPUs: a tile is copied to shared memory, so that both loads and stores coalesce.

A stage that reads A[j, i] at (i, j) writes along j, but neighbours in the memory of A lie along i.
A group of threads copies a square tile of A to shared memory, along i, and reads the copy along j.
Rows of the copy are one bank longer than the tile, so that a column lies in different banks.

`find_transposes` also looks through the elementwise stages that are inlined in the stage.

Reference: G. Ruetsch, P. Micikevicius, "Optimizing Matrix Transpose in CUDA", NVIDIA, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.ir.constants import as_int
from refcomp.ir.rewrite import walk
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage_schedule import StageSchedule
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import IterVar, Tensor, TensorRead, thread_axis
from refcomp.topi.schedules.inlining import is_inlined

_MIN_EXTENT = (
    8  # of both axes; for less, the way through shared memory costs more than it saves
)
_ROW_BYTES = 128  # of a tile: the longest segment of memory
_MIN_ROW = 32  # elements of a tile's row: threads of the narrowest waves
_BANK_BYTES = 4
_THREADS = 256


@dataclass(frozen=True, slots=True)
class TransposedRead:
    """A read whose neighbours in memory are not neighbours in the result.

    Attributes:
        reader: the stage that reads.
        tensor: the tensor that is read.
        across: number of the tensor's dimension that the last axis of the result runs over.
    """

    reader: ComputeOp
    tensor: Tensor
    across: int


@dataclass(frozen=True, slots=True)
class Transposes:
    """A stage with transposed reads.

    Attributes:
        root: the stage, which keeps its memory.
        rows: its axis along which the tensors that are read have neighbours.
        columns: its last axis of more than one element.
        reads: the reads that are transposed in this way.
    """

    root: ComputeOp
    rows: IterVar
    columns: IterVar
    reads: tuple[TransposedRead, ...]

    @property
    def edge(self) -> int:
        """Return the number of rows, and of columns, of a tile."""
        tensors = [*self.root.outputs, *(read.tensor for read in self.reads)]
        narrowest = min(tensor.dtype.bytes for tensor in tensors)
        return max(_MIN_ROW, _ROW_BYTES // narrowest)


def find_transposes(schedule: Schedule, root: ComputeOp) -> Transposes | None:
    """Return the transposed reads of `root` and of stages inlined in it; None without any."""
    wide = [axis for axis in root.axis if as_int(axis.extent) != 1]
    if root.reduce_axis or len(wide) < 2 or not _is_long(wide[-1]):
        return None
    found: list[tuple[IterVar, TransposedRead]] = []
    _add_reads(schedule, root, root.axis, wide[-1], found)
    if not found:
        return None
    rows = found[0][0]
    reads = tuple(read for axis, read in found if axis is rows)
    return Transposes(root, rows, wide[-1], reads)


def _add_reads(
    schedule: Schedule,
    reader: ComputeOp,
    axes: tuple[IterVar, ...],
    last: IterVar,
    found: list[tuple[IterVar, TransposedRead]],
) -> None:
    """Add the transposed reads of `reader`, whose axes are `axes` of the root."""
    of_var = {id(own.var): axis for own, axis in zip(reader.axis, axes, strict=True)}
    known = {(id(read.reader), read.tensor) for _, read in found}
    for read in (node for root in reader.body for node in walk(root)):
        if not isinstance(read, TensorRead) or (id(reader), read.tensor) in known:
            continue
        places = [of_var.get(id(index)) for index in read.indices]
        inner = [place for place in places if place is not None]
        if len(inner) != len(places) or len(set(inner)) != len(inner):
            continue
        stage = schedule.stage_of(read.tensor)
        if inner == list(axes) and is_inlined(stage):
            assert isinstance(stage.op, ComputeOp)
            _add_reads(schedule, stage.op, axes, last, found)
        elif last in inner[:-1] and _is_long(inner[-1]):
            one = TransposedRead(reader, read.tensor, inner.index(last))
            known.add((id(reader), read.tensor))
            found.append((inner[-1], one))


def _is_long(axis: IterVar) -> bool:
    """Return True unless the axis is known to be short."""
    extent = as_int(axis.extent)
    return extent is None or extent >= _MIN_EXTENT


def schedule_transposes(schedule: Schedule, found: Transposes) -> None:
    """Schedule the root and the copies of its tiles as one kernel."""
    # Before the readers are inlined.
    copies = [
        schedule.cache_read(read.tensor, "shared", [read.reader])
        for read in found.reads
    ]
    group = _bind_tiles(schedule[found.root], found)
    for copy, read in zip(copies, found.reads, strict=True):
        stage = schedule[copy]
        stage.compute_at(schedule[found.root], group)
        _bind_copy(stage, read.across, found.edge)


def _bind_tiles(stage: StageSchedule, found: Transposes) -> IterVar:
    """Bind tiles to groups and their elements to threads; return the axis of the groups."""
    edge = found.edge
    row_tile, row = stage.split(found.rows, factor=edge)
    column_tile, column = stage.split(found.columns, factor=edge)
    others = [
        axis for axis in found.root.axis if axis not in (found.rows, found.columns)
    ]
    stage.reorder(*others, row_tile, column_tile, row, column)
    group = stage.fuse(*others, row_tile, column_tile)
    stage.bind(group, thread_axis("blockIdx.x"))
    _bind_threads(stage, row, column, edge)
    return group


def _bind_copy(stage: StageSchedule, across: int, edge: int) -> None:
    """Divide a copy among the threads, which run along its last dimension."""
    assert isinstance(stage.op, ComputeOp)
    *outer, last = stage.op.axis
    row = outer[across]
    stage.reorder(*(axis for axis in outer if axis is not row), row, last)
    # An axis that is shorter than a tile needs a guard, since all threads run the loop.
    _, column = stage.split(last, factor=edge)
    _bind_threads(stage, row, column, edge)
    bank = max(1, _BANK_BYTES // stage.op.outputs[0].dtype.bytes)
    # All dimensions between the row's and the last have one element in a tile.
    stage.storage_align(outer[-1], edge, bank)


def _bind_threads(
    stage: StageSchedule, row: IterVar, column: IterVar, edge: int
) -> None:
    _, thread_row = stage.split(row, factor=_THREADS // edge)
    stage.bind(thread_row, thread_axis("threadIdx.y"))
    stage.bind(column, thread_axis("threadIdx.x"))
