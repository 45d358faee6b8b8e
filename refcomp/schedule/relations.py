"""The relations by which axes are derived from axes: Split and Fuse.

A relation computes the extents of the axes that it makes, and the values of the axes that it
consumes. So bounds go down from the operation's axes to the loops, and indices come up again.
"""

from __future__ import annotations

from refcomp.foundation.dtype import I64
from refcomp.foundation.records import record
from refcomp.ir.expr import Expr, FloorDiv, FloorMod, IntImm, Var
from refcomp.ir.rewrite import variables_in
from refcomp.te.tensor import IterVar


def ceil_div(value: Expr, divisor: int) -> Expr:
    """Return value / divisor, rounded up, for a divisor >= 1."""
    rounded_up = FloorDiv(value + (divisor - 1), IntImm(divisor, I64))
    if isinstance(value, Var) and divisor > 1:
        return rounded_up  # cannot be simplified
    # Imported here: a program of symbolic length that is built from the cache needs no proofs.
    from refcomp.arith import Facts, simplify  # noqa: PLC0415

    facts = Facts()
    for symbol in variables_in(value):  # an extent is made of shape variables
        facts = facts.nonnegative(symbol)
    return simplify(rounded_up, facts)


@record(eq=False)
class Split:
    """parent = outer * extent(inner) + inner.

    The last iterations may lie beyond the extent of the parent.
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: int | None  # the extent of `inner`; None if `nparts` is given
    nparts: int | None  # the extent of `outer`; None if `factor` is given

    def extents(self, parent_extent: Expr) -> tuple[Expr, Expr]:
        """Return the extents of (outer, inner)."""
        return split_extents(parent_extent, self.factor, self.nparts)


@record(eq=False)
class Fuse:
    """fused = outer * extent(inner) + inner, exactly the iterations of both."""

    outer: IterVar
    inner: IterVar
    fused: IterVar

    def indices(self, fused: Expr, inner_extent: Expr) -> tuple[Expr, Expr]:
        """Return the values of (outer, inner)."""
        return FloorDiv(fused, inner_extent), FloorMod(fused, inner_extent)


Relation = Split | Fuse


def split_extents(
    extent: Expr, factor: int | None, nparts: int | None
) -> tuple[Expr, Expr]:
    """Return the extents of (outer, inner) if `extent` is split by `factor` or into `nparts`."""
    if factor is not None:
        return ceil_div(extent, factor), IntImm(factor, I64)
    assert nparts is not None
    return IntImm(nparts, I64), ceil_div(extent, nparts)
