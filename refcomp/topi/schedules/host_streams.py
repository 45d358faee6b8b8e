"""The host's schedule of products of few rows with a large matrix, which is read once.

Such a product reuses little except for its sums. If the matrix is larger than the caches near the
core, whole rows of it are read one after the other, a few at once. The sums are kept in the nearest
cache.
"""

from __future__ import annotations

import math

from refcomp.ir.constants import as_int
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.topi.schedules.host_products import (
    HostProduct,
    extent_of,
    greatest_divisor,
    unroll_tile,
    vector_length,
)
from refcomp.topi.schedules.vector_registers import VectorRegisters

# A vector factor with more bytes than this is read from a shared cache, or from memory. Each row of
# the product adds so many bytes to the limit, for the cost of its sums. Measured.
_MIN_STREAMED_BYTES = 1 << 20
# The most rows of a product that reads the vector factor once. Measured.
_MAX_STREAMED_ROWS = 8
# Sums of such a product: half of the nearest cache.
_MAX_SUMS_BYTES = 1 << 14
# Rows that are added to the sums at once, so that these are loaded and stored less often. Measured.
_ROWS_AT_ONCE = 4


def is_streamed(product: HostProduct, registers: VectorRegisters) -> bool:
    """Return True for a large product of few rows, whose vectors need no mask."""
    op, vector = product.op, product.vector
    if vector is None or product.column is not None or len(op.reduce_axis) != 1:
        return False
    sizes = [as_int(extent) or 0 for extent in vector.tensor.shape]
    size = math.prod(sizes) * vector.tensor.dtype.bytes
    has_rows = vector.indices[-1] is op.axis[product.lanes].var
    is_whole = extent_of(op, product.lanes) % vector_length(op, registers) == 0
    rows = extent_of(op, product.row)
    is_large = rows <= _MAX_STREAMED_ROWS and size >= rows * _MIN_STREAMED_BYTES
    return has_rows and is_whole and is_large


def schedule_streamed(
    schedule: Schedule, product: HostProduct, registers: VectorRegisters
) -> set[Stage]:
    """Schedule a product of few rows: some rows of the vector factor are added to all sums at once.

    Returns:
        The stage that is scheduled now.
    """
    op = product.op
    stage = schedule[op]
    lanes = vector_length(op, registers)
    # Parts divide their axes, so that no vector has a mask.
    vectors = extent_of(op, product.lanes) // lanes
    sums_bytes = registers.bytes * extent_of(op, product.row)
    most = greatest_divisor(vectors, _MAX_SUMS_BYTES // sums_bytes)
    rows = greatest_divisor(as_int(op.reduce_axis[0].extent) or 1, _ROWS_AT_ONCE)
    part, vector = stage.split(op.axis[product.lanes], factor=lanes)
    block, part = stage.split(part, factor=most)
    outer, several = stage.split(op.reduce_axis[0], factor=rows)
    others = [axis for axis in op.axis if axis is not op.axis[product.lanes]]
    inside = [several, vector]
    if product.row is not None:
        others.remove(op.axis[product.row])
        inside.insert(0, op.axis[product.row])
    stage.reorder(*others, block, outer, part, *inside)
    unroll_tile(stage, inside)
    return {schedule.stage_of(op.outputs[0])}
