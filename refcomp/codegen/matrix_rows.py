"""The row that a thread brings to a matrix load: where it must lie.

Refuses, with Unsupported, rows that NVIDIA's `ldmatrix` cannot load.
"""

from __future__ import annotations

from refcomp.foundation.errors import Unsupported
from refcomp.ir.buffer import SHARED, Load
from refcomp.ir.expr import PureExtern, Ramp
from refcomp.ir.gpu_instructions.records import ROW_BITS


def shared_row(call: PureExtern) -> Load:
    """Return the operand of a matrix load, a vector in shared memory.

    Raises:
        Unsupported: the operands are single elements, or lie in other memory.
    """
    row = call.args[0]
    if not isinstance(row, Load) or not isinstance(row.index, Ramp):
        raise _unfit(call, "its elements are not neighbours, in a store of all results")
    if row.buffer.scope != SHARED:
        raise _unfit(call, f"{row.buffer.name} lies in {row.buffer.scope} memory")
    return row


def check_row_alignment(call: PureExtern, row: Load, alignment: int) -> None:
    """Raise Unsupported if a row is only known to be aligned to `alignment` bytes, too few."""
    if alignment * 8 < ROW_BITS:
        assert isinstance(row.index, Ramp)
        raise _unfit(
            call, f"it begins at element {row.index.base} of {row.buffer.name}"
        )


def _unfit(call: PureExtern, why: str) -> Unsupported:
    return Unsupported(
        f"{call.name} cannot load this row",
        why=f"{why}; a row is 16 bytes of shared memory, at a multiple of 16 bytes",
        remedy="pad the rows of the shared buffer to multiples of 16 bytes",
    )
