"""Decides which indices of an access are proved to lie within their dimension.

An index is in range when 0 <= index and index < extent. Both comparisons are made in i64, which
holds each index exactly. `unproved_comparisons` returns those that the facts at a place do not
prove; an access without any never leaves its buffer.
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
    """An index that may leave its dimension.

    Attributes:
        position: the index as an i64.
        extent: the extent of the dimension as an i64.
        has_low: True if 0 <= position is not proved.
        has_high: True if position < extent is not proved.
    """

    position: Expr
    extent: Expr
    has_low: bool
    has_high: bool

    @property
    def holds(self) -> tuple[Expr, ...]:
        """The comparisons that are not proved; the index is in range where all hold."""
        low = (LE(IntImm(0, I64), self.position),) if self.has_low else ()
        high = (LT(self.position, self.extent),) if self.has_high else ()
        return (*low, *high)

    @property
    def fails(self) -> tuple[Expr, ...]:
        """Their opposites; the index is out of range where one holds."""
        low = (LT(self.position, IntImm(0, I64)),) if self.has_low else ()
        high = (LE(self.extent, self.position),) if self.has_high else ()
        return (*low, *high)


def open_index(index: Expr, extent: Expr, facts: Facts) -> OpenIndex | None:
    """Return what `facts` do not prove of `index` in a dimension of `extent`; None if nothing."""
    position, end = cast(I64, index), cast(I64, extent)
    found = OpenIndex(
        position,
        end,
        has_low=not prove(LE(IntImm(0, I64), position), facts),
        has_high=not prove(LT(position, end), facts),
    )
    return found if found.has_low or found.has_high else None


def reads_memory(expr: Expr) -> bool:
    """Return True if evaluating `expr` may read a buffer."""
    return any(isinstance(node, BufferLoad) for node in walk(expr))


def is_in_range(expr: Expr, facts: Facts) -> bool:
    """Return True if every read in `expr` is proved to be in range, whichever way it chooses."""
    return not any(
        open_index(index, extent, facts)
        for load in walk(expr)
        if isinstance(load, BufferLoad)
        for index, extent in zip(load.indices, load.buffer.shape, strict=True)
    )
