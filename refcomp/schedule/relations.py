"""The relations by which axes are derived from axes: Split and Fuse.

A relation computes the extents of the axes that it makes, and the values of the axes that it
consumes. So bounds go down from the operation's axes to the loops, and indices come up again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from refcomp.foundation.dtype import I64
from refcomp.foundation.records import record
from refcomp.ir.expr import Expr, FloorDiv, FloorMod, IntImm, Var
from refcomp.ir.rewrite import variables_in
from refcomp.te.tensor import IterVar

if TYPE_CHECKING:
    from refcomp.arith import Facts


def ceil_div(value: Expr, divisor: int, known: Facts | None = None) -> Expr:
    """Return value / divisor, rounded up, for a divisor >= 1.

    `known` is what holds for the variables of `value`. None: they are shape variables.
    """
    rounded_up = FloorDiv(value + (divisor - 1), IntImm(divisor, I64))
    if isinstance(value, Var) and divisor > 1:
        return rounded_up  # cannot be simplified
    # Imported here: a program of symbolic length that is built from the cache needs no proofs.
    from refcomp.arith import Facts, simplify  # noqa: PLC0415

    facts = Facts() if known is None else known
    if known is None:
        for symbol in variables_in(value):
            facts = facts.nonnegative(symbol)
    return simplify(rounded_up, facts)


@record(eq=False)
class Split:
    """The division of a loop into two: parent = outer * extent(inner) + inner.

    The last iterations may lie beyond the extent of the parent.

    Attributes:
        parent: the loop that was split.
        outer: the outer one of the two loops.
        inner: the inner one.
        factor: the extent of `inner`; None if `nparts` is given.
        nparts: the extent of `outer`; None if `factor` is given.

    Source: TVM, te.schedule.Split.

    Example::

        >>> A = rc.placeholder((8,), name="A")
        >>> B = rc.compute((8,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> (split,) = s[B].relations
        >>> isinstance(split, rc.schedule.Split), split.parent is B.op.axis[0]
        (True, True)
        >>> split.outer is outer, split.inner is inner, split.factor, split.nparts
        (True, True, 4, None)
        >>> split.extents(split.parent.extent)
        (2, 4)
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: int | None
    nparts: int | None

    def extents(
        self, parent_extent: Expr, known: Facts | None = None
    ) -> tuple[Expr, Expr]:
        """Return the extents of (outer, inner).

        Args:
            parent_extent: the extent of the parent, an i64 expression.
            known: see `ceil_div`.
        """
        return split_extents(parent_extent, self.factor, self.nparts, known)


@record(eq=False)
class Fuse:
    """The union of two loops: fused = outer * extent(inner) + inner, without a tail.

    Attributes:
        outer: the outer one of the loops that were fused.
        inner: the inner one.
        fused: the loop that replaced them.

    Source: TVM, te.schedule.Fuse.

    Example::

        >>> A = rc.placeholder((8, 4), name="A")
        >>> B = rc.compute((8, 4), lambda i, j: A[i, j] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> fused = s[B].fuse(*B.op.axis)
        >>> (fuse,) = s[B].relations
        >>> isinstance(fuse, rc.schedule.Fuse), fuse.fused is fused
        (True, True)
        >>> fuse.indices(fused.var, fuse.inner.extent)
        (i.j.fused // 4, i.j.fused % 4)
    """

    outer: IterVar
    inner: IterVar
    fused: IterVar

    def indices(self, fused: Expr, inner_extent: Expr) -> tuple[Expr, Expr]:
        """Return the values of (outer, inner).

        Args:
            fused: the value of the fused loop.
            inner_extent: the extent of the inner loop.
        """
        return FloorDiv(fused, inner_extent), FloorMod(fused, inner_extent)


@record(eq=False)
class Singleton:
    """A loop of one iteration, which `fuse` makes of no loops.

    Attributes:
        iter: the loop.

    Source: TVM, te.schedule.Singleton.

    Example::

        >>> A = rc.placeholder((), name="A")
        >>> B = rc.compute((), lambda: A() + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> single = s[B].fuse()
        >>> s[B].relations[0].iter is single
        True
    """

    iter: IterVar


Relation = Split | Fuse


def split_extents(
    extent: Expr,
    factor: int | None,
    nparts: int | None,
    known: Facts | None = None,
) -> tuple[Expr, Expr]:
    """Return the extents of (outer, inner) if `extent` is split by `factor` or into `nparts`."""
    if factor is not None:
        return ceil_div(extent, factor, known), IntImm(factor, I64)
    assert nparts is not None
    return IntImm(nparts, I64), ceil_div(extent, nparts, known)
