"""Classic functions on indices and constants, which own operators use: `topi.util`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.promotion import const
from refcomp.te.maths import all, select
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor

Index = Expr | int


def equal_const_int(expr: Index, value: int) -> bool:
    """Return True if an expression is a constant of a given value."""
    is_constant = isinstance(expr, int | IntImm)
    return is_constant and int(expr) == value


def ravel_index(indices: Sequence[Index], shape: Sequence[Index]) -> Index:
    """Return the place of an element in the order of rows.

    Example::

        >>> rc.classic.topi.util.ravel_index((1, 2), (4, 5))
        7
    """
    _check_ranks(indices, shape)
    place: Index = 0
    for index, extent in zip(indices, shape, strict=True):
        place = place * extent + index
    return place


def _check_ranks(indices: Sequence[Index], shape: Sequence[Index]) -> None:
    if len(indices) != len(shape):
        raise UserError(
            f"{len(indices)} indices do not fit {len(shape)} extents",
            remedy="give an index for each extent",
        )


def unravel_index(idx: Index, shape: Sequence[Index]) -> list[Index]:
    """Return the indices of the element at a place in the order of rows.

    Example::

        >>> rc.classic.topi.util.unravel_index(7, (4, 5))
        [1, 2]
    """
    indices: list[Index] = []
    for extent in reversed(shape):
        indices.append(idx % extent)
        idx = idx // extent
    return indices[::-1]


def const_matrix(matrix: ArrayLike, name: str = "const_matrix") -> Tensor:
    """Return a compute whose elements are the constants of a matrix.

    Args:
        matrix: a numpy array of two axes.
        name: the name of the stage.

    Raises:
        UserError: the array has another number of axes.
    """
    try:
        rows = np.asarray(matrix)
    except ValueError as error:
        raise UserError(
            "the rows of a matrix have different lengths", remedy="give equal rows"
        ) from error
    if rows.ndim != 2:
        raise UserError(
            f"a matrix has two axes, not {rows.ndim}", remedy="give a list of rows"
        )
    dtype = str(rows.dtype)

    def element(i: Expr, j: Expr) -> Expr:
        found = const(0, dtype)
        for (row, column), value in np.ndenumerate(rows):
            here = all(i.equal(row), j.equal(column))
            found = select(here, const(value.item(), dtype), found)
        return found

    return compute(rows.shape, element, name=name)
