"""How an axis comes from others: the two relations Split and Fuse, as data.

Each says the extents of the axes it makes and the value of the axes it consumes, so that bounds go
down from an operation's own axes to the loops, and indices come back up from the loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.arith import Facts, simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import Expr, FloorDiv, FloorMod, IntImm
from refcomp.ir.rewrite import variables_in
from refcomp.te.tensor import IterVar


def ceil_div(value: Expr, divisor: int) -> Expr:
    """value / divisor rounded up, for a positive divisor."""
    facts = Facts()
    for symbol in variables_in(value):  # an extent is made of shape variables
        facts = facts.nonnegative(symbol)
    return simplify(FloorDiv(value + (divisor - 1), IntImm(divisor, I64)), facts)


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """parent = outer * extent(inner) + inner.

    By `factor` the inner axis has that extent and the outer one as many as needed; by `nparts`
    the outer axis has that extent. The last iterations may lie beyond the parent's extent.
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: int | None
    nparts: int | None

    def extents(self, parent_extent: Expr) -> tuple[Expr, Expr]:
        """The extents of (outer, inner) for that of the parent."""
        return split_extents(parent_extent, self.factor, self.nparts)


@dataclass(frozen=True, slots=True, eq=False)
class Fuse:
    """fused = outer * extent(inner) + inner, which exactly covers both."""

    outer: IterVar
    inner: IterVar
    fused: IterVar

    def indices(self, fused: Expr, inner_extent: Expr) -> tuple[Expr, Expr]:
        """The values of (outer, inner) for that of the fused axis."""
        return FloorDiv(fused, inner_extent), FloorMod(fused, inner_extent)


Relation = Split | Fuse


def split_extents(
    extent: Expr, factor: int | None, nparts: int | None
) -> tuple[Expr, Expr]:
    """The extents of (outer, inner) when `extent` is split by `factor` or into `nparts`."""
    if factor is not None:
        return ceil_div(extent, factor), IntImm(factor, I64)
    assert nparts is not None
    return IntImm(nparts, I64), ceil_div(extent, nparts)
