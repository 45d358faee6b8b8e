"""The positions of the flags that are set, moved to the front of a buffer.

The number of set flags is known only at run time. So the buffer has room for all, and a count says
how many of its elements count.

Short inputs count for each flag those before it, in a pure te compute. Long ones count by chunks:
each chunk is counted, one thread adds up the counts, and then each chunk writes its positions.

Reference: G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from refcomp.ir import builder
from refcomp.ir.builder import IRBuilder
from refcomp.ir.expr import Expr, Var
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths, reducer
from refcomp.te.extents import extents
from refcomp.te.externs import extern
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.tags import REDUCTION

# The longest input whose flags are counted for each flag anew.
LONGEST_COUNTED = 256
# Flags that one thread counts.
CHUNK = 256


def set_positions(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Return the positions of the flags that are not 0, and their number.

    Args:
        flags: an i32 tensor of one dimension, of zeros and ones.

    Returns:
        The positions in ascending order, i64, in a tensor of the shape of `flags` that ends in
        zeros; and their number, an i64 tensor of one element.
    """
    (size,) = extents(flags)
    if isinstance(size, int) and size > LONGEST_COUNTED:
        positions, found = extern(
            [(size,), (1,)],
            [flags],
            _by_chunks(size),
            name="positions",
            dtype=["int64", "int64"],
        )
        # A copy, since the outputs of an extern are arguments of a function together or not at all.
        count = compute((1,), lambda i: found[i], name="count", tag=INJECTIVE)
        return positions, count
    return _by_counting(flags)


def _by_counting(flags: Tensor) -> tuple[Tensor, Tensor]:
    (size,) = extents(flags)
    j = reduce_axis(size, "j")
    i = reduce_axis(size, "i")
    k = reduce_axis(size, "k")
    # The number of the flag among those that are set.
    number = compute(
        (size,),
        lambda own: reducer.sum(maths.select(j.var < own, flags[j], 0), axis=j),
        name="number",
        tag=REDUCTION,
    )

    def position(place: Expr) -> Expr:
        is_here = number[i] == place.astype("int32")
        is_found = maths.all(flags[i] != 0, is_here)
        return reducer.sum(maths.select(is_found, i.var, 0), axis=i)

    positions = compute((size,), position, name="positions", tag=REDUCTION)
    count = compute(
        (1,),
        lambda _: reducer.sum(flags[k].astype("int64"), axis=k),
        name="count",
        tag=REDUCTION,
    )
    return positions, count


def _by_chunks(
    size: int,
) -> Callable[[list[BufferView], list[BufferView]], Stmt]:
    chunks = -(-size // CHUNK)

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        flags = ib.buffer_ptr(ins[0])
        positions = ib.buffer_ptr(outs[0])
        count = ib.buffer_ptr(outs[1])
        # Of each chunk the number of its set flags, then of those before it.
        before = ib.allocate("int64", chunks, name="before")
        with ib.for_range(0, chunks, name="chunk", for_type="parallel") as chunk:
            before[chunk] = 0
            with _flags_of(ib, chunk, size) as i, ib.if_scope(flags[i] != 0):
                before[chunk] = before[chunk] + 1
        with ib.for_range(0, 1, name="all", for_type="parallel"):
            count[0] = 0
            with ib.for_range(0, chunks, name="chunk") as chunk:
                own = ib.let("own", before[chunk])
                before[chunk] = count[0]
                count[0] = count[0] + own
        with ib.for_range(0, size, name="k", for_type="parallel") as k:
            positions[k] = 0
        with (
            ib.for_range(0, chunks, name="chunk", for_type="parallel") as chunk,
            _flags_of(ib, chunk, size) as i,
            ib.if_scope(flags[i] != 0),
        ):
            positions[before[chunk]] = i
            before[chunk] = before[chunk] + 1
        return ib.get()

    return statement


def _flags_of(ib: IRBuilder, chunk: Expr, size: int) -> AbstractContextManager[Var]:
    """Open a loop over the flags of a chunk."""
    begin = chunk * CHUNK
    return ib.for_range(begin, maths.minimum(begin + CHUNK, size), name="i")
