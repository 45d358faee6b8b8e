"""The builder of operators that read each element of the result at one index of the operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te.extents import Extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.shapes import normalize_axis

# The index of a result -> the index of the operand's element.
SourceIndex = Callable[[tuple[Expr, ...]], Sequence[ExprLike]]


def rearrange(
    data: Tensor, shape: Sequence[Extent], source: SourceIndex, name: str
) -> Tensor:
    """Return a tensor of `shape` whose element at `index` is data[source(index)].

    Args:
        data: the tensor that is read.
        shape: the extents of the result.
        source: returns the index of the element that is read. It must exist in `data`.
        name: the name of the result.
    """
    require_tensor(data, name)
    return compute(
        shape,
        lambda *index: data[tuple(source(index))],
        name=name,
        tag=INJECTIVE,
    )


def distinct_axes(
    axes: int | Sequence[int] | None, rank: int, operator: str
) -> tuple[int, ...]:
    """Return the axes in the given order, counted from 0; all axes if None is given.

    Raises:
        UserError: an axis does not exist, or is named twice.
    """
    if axes is None:
        return tuple(range(rank))
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    places = tuple(normalize_axis(axis, rank, operator) for axis in given)
    if len(set(places)) < len(places):
        raise UserError(
            f"{operator} names an axis twice: {given}", remedy="name each axis once"
        )
    return places


def one_operand_of(
    draws: Draws, least_rank: int = 0, most_rank: int = 4, least: int = 0
) -> Sample:
    """Return one tensor of any dtype, for operators that only move elements."""
    dtype = draws.choice((draws.number_dtype(), draws.number_dtype(), "bool"))
    return Sample((draws.array(draws.shape(least_rank, most_rank, least), dtype),))


def some_axes(draws: Draws, rank: int) -> tuple[int, ...]:
    """Return some of the axes in random order, each from 0 or from the end."""
    chosen = draws.order(rank)[: draws.integer(0, rank)]
    return tuple(axis - draws.choice((0, rank)) for axis in chosen)
