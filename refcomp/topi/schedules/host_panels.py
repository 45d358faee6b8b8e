"""The width of the panels in which the host reads constant matrices.

A panel has the columns of one tile of registers, so that a tile reads it from its first element to
its last. See `refcomp.topi.contraction.packed_dense` and `host_products`.
"""

from __future__ import annotations

from refcomp.foundation.dtype import I32
from refcomp.ir.integer_pairs import pair_product
from refcomp.te import reducer
from refcomp.te.operation import ComputeOp, compute, placeholder
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import DTypeLike, Tensor, var
from refcomp.topi.contraction.dense import matmul
from refcomp.topi.schedules.host_products import (
    choose_register_tile,
    find_host_product,
)
from refcomp.topi.schedules.vector_registers import VectorRegisters

# The least vector of pairs that x86 multiplies by one instruction.
_LEAST_LANES = 4


def choose_panel_width(
    rows: int | None,
    depth: int,
    columns: int,
    dtype: DTypeLike,
    registers: VectorRegisters,
) -> int:
    """Return the number of columns of a panel of a matrix, at most that of the fastest tile.

    Args:
        rows: of the product; None if only a run determines them.
        depth: rows of the matrix, at least 1.
        columns: of the matrix, at least 1.
        dtype: of the elements.
        registers: of the processor.

    Example::

        >>> from refcomp.topi.schedules.host_panels import choose_panel_width
        >>> from refcomp.topi.schedules.vector_registers import AVX2, AVX512
        >>> choose_panel_width(128, 768, 768, "float32", AVX2)
        16
        >>> choose_panel_width(128, 768, 768, "float32", AVX512)
        96
    """
    left, right = _factors(rows, depth, columns, dtype)
    return _width_of(matmul(left, right), columns, registers)


def choose_pair_panel_width(
    rows: int | None, pairs: int, columns: int, registers: VectorRegisters
) -> int:
    """Return the columns of a panel of pairs of integers (`refcomp.ir.integer_pairs`), likewise.

    A panel has whole vectors, or vectors of four elements: one instruction multiplies those.

    Args:
        rows: of the product; None if only a run determines them.
        pairs: rows of the matrix, each a pair, at least 1.
        columns: of the matrix, at least 1.
        registers: of the processor.

    Example::

        >>> from refcomp.topi.schedules.host_panels import choose_pair_panel_width
        >>> from refcomp.topi.schedules.vector_registers import AVX2
        >>> choose_pair_panel_width(128, 384, 768, AVX2)
        16
        >>> choose_pair_panel_width(128, 384, 10, AVX2)
        8
    """
    whole = -(-columns // _LEAST_LANES) * _LEAST_LANES
    left, right = _factors(rows, pairs, whole, I32)
    k = reduce_axis(pairs, "k")
    product = compute(
        (left.shape[0], whole),
        lambda i, j: reducer.sum(pair_product(left[i, k], right[k, j]), axis=k),
    )
    return _width_of(product, whole, registers)


def _factors(
    rows: int | None, depth: int, columns: int, dtype: DTypeLike
) -> tuple[Tensor, Tensor]:
    left = placeholder((var("n") if rows is None else rows, depth), dtype, name="a")
    right = placeholder((depth, columns), dtype, name="b")
    return left, right


def _width_of(result: Tensor, columns: int, registers: VectorRegisters) -> int:
    """Return the columns of a panel of the product of matrices that `result` is."""
    assert isinstance(result.op, ComputeOp)
    product = find_host_product(result.op)
    if product is None:
        return columns  # a single column or row has no tile
    tile = choose_register_tile(product, registers)
    count = -(-columns // (tile.vectors * tile.lanes))
    # As many panels, but of equal width: the last one is not padded by more than a vector each.
    vectors = -(-columns // (count * tile.lanes))
    return vectors * tile.lanes
