"""Stable merge sort of the rows of a matrix, with independent work for many threads.

Chunks of a row are sorted by ranks. Then pairs of sorted runs are merged, until a row is one run.
Each merge is divided into segments of the result. A segment finds by bisection where its elements
begin in both runs, and then merges serially. The segments of all rows are one parallel loop, which
GPUs launch as one kernel.

Reference: S. Odeh, O. Green, Z. Mwassi, O. Shmueli and Y. Birk, "Merge Path - parallel merging made
simple", IPDPS Workshops, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.ir import builder
from refcomp.ir.builder import BufferPointer, IRBuilder
from refcomp.ir.expr import Expr
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths
from refcomp.te.extents import extents
from refcomp.te.externs import extern
from refcomp.te.tensor import Tensor
from refcomp.topi.search.comparison import precedes
from refcomp.topi.shapes import require_constant

# Elements that one thread sorts by ranks, and elements of a merge that one thread computes. The
# second is at most twice the first, so that no segment belongs to two merges.
CHUNK = 32
SEGMENT = 64


@dataclass(frozen=True, slots=True)
class _Runs:
    """The rows at one step of the sort: sorted runs of keys, with their positions."""

    keys: BufferPointer
    positions: BufferPointer


def merged_order(keys: Tensor, is_ascend: bool) -> Tensor:
    """Return the positions of the elements of each row in sorted order.

    Args:
        keys: a matrix of constant extents.
        is_ascend: False to begin with the greatest element. NaN is greater than all numbers.

    Returns:
        An i32 matrix of the same shape. Equal elements keep their order.
    """
    rows, size = (
        require_constant(extent, "a sorted extent") for extent in extents(keys)
    )
    sort = _MergeSort(rows, size, is_ascend)
    order: Tensor = extern(
        (rows, size), [keys], sort.statement, name="merged", dtype="int32"
    )
    return order


@dataclass(frozen=True, slots=True)
class _MergeSort:
    """The statements that sort the rows of one matrix."""

    rows: int
    size: int
    is_ascend: bool

    def statement(self, ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        """Return the whole sort, from the keys in `ins` to the order in `outs`."""
        ib = builder.create()
        keys = ib.buffer_ptr(ins[0])
        order = ib.buffer_ptr(outs[0])
        shape = (self.rows, self.size)
        widths = []  # of the runs that are merged
        width = CHUNK
        while width < self.size:
            widths.append(width)
            width *= 2
        # Each step reads one of two buffers and writes the other. The last one writes the result.
        steps = [
            _Runs(
                ib.allocate(keys.dtype, shape, name=f"keys{k}"),
                ib.allocate("int32", shape, name=f"positions{k}"),
            )
            for k in range(2)
        ]
        targets = [steps[k % 2] for k in range(len(widths) + 1)]
        targets[-1] = _Runs(targets[-1].keys, order)
        self._sort_chunks(ib, keys, targets[0])
        for k, width in enumerate(widths):
            self._merge(ib, targets[k], targets[k + 1], width)
        return ib.get()

    def _sort_chunks(self, ib: IRBuilder, keys: BufferPointer, target: _Runs) -> None:
        chunks = -(-self.size // CHUNK)
        with ib.for_range(
            0, self.rows * chunks, name="chunk", for_type="parallel"
        ) as number:
            row = ib.let("row", number // chunks)
            begin = ib.let("begin", number % chunks * CHUNK)
            end = ib.let("end", maths.minimum(begin + CHUNK, self.size))
            rank = ib.allocate("int64", 1, name="rank", scope="local")
            with ib.for_range(begin, end, name="i") as i:
                rank[0] = begin
                with ib.for_range(begin, end, name="j") as j:
                    own = keys[row, i]
                    other = keys[row, j]
                    is_before = maths.select(
                        j < i,
                        ~precedes(own, other, self.is_ascend),
                        precedes(other, own, self.is_ascend),
                    )
                    rank[0] = rank[0] + is_before.astype("int64")
                target.keys[row, rank[0]] = keys[row, i]
                target.positions[row, rank[0]] = i

    def _merge(self, ib: IRBuilder, source: _Runs, target: _Runs, width: int) -> None:
        """Merge each pair of runs of `width` elements; the last run of a row may be shorter."""
        segments = -(-self.size // SEGMENT)
        with ib.for_range(
            0, self.rows * segments, name="segment", for_type="parallel"
        ) as number:
            row = ib.let("row", number // segments)
            first = ib.let("first", number % segments * SEGMENT)
            left = ib.let("left", first // (2 * width) * (2 * width))
            right = ib.let("right", maths.minimum(left + width, self.size))
            end = ib.let("end", maths.minimum(right + width, self.size))
            # Elements of both runs that are merged so far.
            taken = ib.allocate("int64", 2, name="taken", scope="local")
            pair = _Pair(source.keys, row, left, right, end)
            self._bisect(ib, taken, pair, first - left)
            last = maths.minimum(first + SEGMENT, end)
            with ib.for_range(first, last, name="k") as k:
                i = ib.let("i", left + taken[0])
                j = ib.let("j", right + taken[1])
                with ib.if_scope(self._takes_left(pair, i, j)):
                    target.keys[row, k] = source.keys[row, i]
                    target.positions[row, k] = source.positions[row, i]
                    taken[0] = taken[0] + 1
                with ib.else_scope():
                    target.keys[row, k] = source.keys[row, j]
                    target.positions[row, k] = source.positions[row, j]
                    taken[1] = taken[1] + 1

    def _takes_left(self, pair: _Pair, i: Expr, j: Expr) -> Expr:
        """Return the condition that the next element is number i, of the left run."""
        has_left = i < pair.right
        has_right = j < pair.end
        # A run that is used up is not compared. Its index is kept within the row.
        own = pair.keys[pair.row, maths.minimum(i, self.size - 1)]
        other = pair.keys[pair.row, maths.minimum(j, self.size - 1)]
        is_first = ~precedes(other, own, self.is_ascend)
        return maths.all(has_left, maths.any(~has_right, is_first))

    def _bisect(
        self, ib: IRBuilder, taken: BufferPointer, pair: _Pair, count: Expr
    ) -> None:
        """Set `taken` to the elements of both runs among the first `count` of the merge."""
        bounds = ib.allocate("int64", 2, name="bounds", scope="local")
        bounds[0] = maths.maximum(count - (pair.end - pair.right), 0)
        bounds[1] = maths.minimum(count, pair.right - pair.left)
        halvings = self.size.bit_length()
        with (
            ib.for_range(0, halvings, name="halving"),
            ib.if_scope(bounds[0] < bounds[1]),
        ):
            middle = ib.let("middle", (bounds[0] + bounds[1]) // 2)
            own = pair.keys[pair.row, pair.left + middle]
            other = pair.keys[pair.row, pair.right + (count - 1 - middle)]
            with ib.if_scope(precedes(other, own, self.is_ascend)):
                bounds[1] = middle
            with ib.else_scope():
                bounds[0] = middle + 1
        taken[0] = bounds[0]
        taken[1] = count - bounds[0]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two neighbouring runs of a row: left ... right - 1, and right ... end - 1."""

    keys: BufferPointer
    row: Expr
    left: Expr
    right: Expr
    end: Expr
