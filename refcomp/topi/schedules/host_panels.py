"""The width of the panels in which the host reads constant matrices.

A panel has the columns of one tile of registers, so that a tile reads it from its first element to
its last. See `refcomp.topi.contraction.packed_dense` and `host_products`.
"""

from __future__ import annotations

from refcomp.te.operation import placeholder
from refcomp.te.tensor import DTypeLike, var
from refcomp.topi.contraction.dense import matmul
from refcomp.topi.schedules.host_products import (
    choose_register_tile,
    find_host_product,
)
from refcomp.topi.schedules.vector_registers import VectorRegisters


def choose_panel_width(
    rows: int | None,
    depth: int,
    columns: int,
    dtype: DTypeLike,
    registers: VectorRegisters,
) -> int:
    """Return the columns of a panel of a matrix: those of the fastest tile, or fewer, evenly.

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
        24
        >>> choose_panel_width(128, 768, 768, "float32", AVX512)
        96
    """
    left = placeholder((var("n") if rows is None else rows, depth), dtype, name="a")
    right = placeholder((depth, columns), dtype, name="b")
    product = find_host_product(matmul(left, right).op)
    if product is None:
        return columns  # a single column or row has no tile
    tile = choose_register_tile(product, registers)
    count = -(-columns // (tile.vectors * tile.lanes))
    # As many panels, but of equal width: the last one is not padded by more than a vector each.
    vectors = -(-columns // (count * tile.lanes))
    return vectors * tile.lanes
