"""Decides which indices of an access are proved to lie within their dimension.

An index is in range if 0 <= index and index < extent. Both comparisons are made in i64,
which holds each index exactly. `open_index` returns the comparisons that the facts do not
prove. An access without any never leaves its buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.arith import Facts, prove
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.expr import LE, LT, Expr, IntImm
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import walk


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index that may leave its dimension."""

    # The index and the extent of the dimension, as i64.
    position: Expr
    extent: Expr
    # True if 0 <= position, or position < extent, is not proved.
    has_low: bool
    has_high: bool

    @property
    def holds(self) -> tuple[Expr, ...]:
        """The comparisons that are not proved. The index is in range if all hold."""
        conditions: list[Expr] = []
        if self.has_low:
            conditions.append(LE(IntImm(0, I64), self.position))
        if self.has_high:
            conditions.append(LT(self.position, self.extent))
        return tuple(conditions)

    @property
    def fails(self) -> tuple[Expr, ...]:
        """The opposite comparisons. The index is out of range if one holds."""
        conditions: list[Expr] = []
        if self.has_low:
            conditions.append(LT(self.position, IntImm(0, I64)))
        if self.has_high:
            conditions.append(LE(self.extent, self.position))
        return tuple(conditions)


def open_index(index: Expr, extent: Expr, facts: Facts) -> OpenIndex | None:
    """Return the comparisons of an index that `facts` do not prove, None if there are none.

    Args:
        index: an index of an access.
        extent: the extent of its dimension.
        facts: what is known at the place of the access.
    """
    position = cast(I64, index)
    end = cast(I64, extent)
    has_low = not prove(LE(IntImm(0, I64), position), facts)
    has_high = not prove(LT(position, end), facts)
    if has_low or has_high:
        return OpenIndex(position, end, has_low, has_high)
    return None


def reads_memory(expr: Expr) -> bool:
    """Return True if evaluating `expr` may read a buffer."""
    return any(isinstance(node, BufferLoad) for node in walk(expr))


def is_in_range(expr: Expr, facts: Facts) -> bool:
    """Return True if each read in `expr` is proved to be in range.

    Both values of a choice are included.
    """
    loads = (node for node in walk(expr) if isinstance(node, BufferLoad))
    return not any(
        open_index(index, extent, facts)
        for load in loads
        for index, extent in zip(load.indices, load.buffer.shape, strict=True)
    )
