"""Operators that repeat elements, or move them around a cycle: tile, repeat, roll.

They take tensors of any dtype and keep each element to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import extents, require_tensor
from refcomp.te.tensor import ExprLike, Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.rearrange import one_operand_of, rearrange
from refcomp.topi.movement.transform import reshape, reshape_to
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, normalize_axis, product, replace_entry


def tile(data: Tensor, *, reps: Sequence[int]) -> Tensor:
    """Repeat the whole tensor along its axes, like tiles.

    Args:
        data: a tensor of any dtype.
        reps: the number of copies along each axis, >= 0. The shorter one of `reps` and the shape is
            extended by ones at the front.

    Raises:
        UserError: a number of copies is negative.

    Reference: numpy.tile; ONNX Tile.

    Example::

        >>> A = rc.placeholder((2,), "int32", name="A")
        >>> B = rc.topi.tile(A, reps=(2, 2))
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2], "int32")}))
        [[1 2 1 2]
         [1 2 1 2]]
    """
    require_tensor(data, "tile")
    if any(count < 0 for count in reps):
        raise UserError(
            f"tile cannot make {tuple(reps)} copies", remedy="give numbers >= 0"
        )
    sizes = extents(data)
    missing = max(0, data.ndim - len(reps))
    counts = (*[1] * missing, *reps)
    added = len(counts) - data.ndim
    padded = (*[1] * added, *sizes)
    pairs = zip(padded, counts, strict=True)

    def source(index: tuple[Expr, ...]) -> list[ExprLike]:
        whole: list[ExprLike] = []
        for i, size, count in zip(index[added:], sizes, counts[added:], strict=True):
            whole.append(i if count == 1 else maths.floormod(i, as_dim(size)))
        return whole

    # A tensor without elements has no loops, so that nothing is divided by 0.
    return rearrange(data, [product(pair) for pair in pairs], source, "tile")


def _sample_tile(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 3), draws.number_dtype())
    reps = tuple(
        draws.choice((0, 1, 1, 2, 3)) for _ in range(draws.integer(0, data.ndim + 1))
    )
    return Sample((data,), {"reps": reps})


@meaning_of(tile, sample=_sample_tile, pattern="injective")
def tile_numpy(data: Array, *, reps: Sequence[int]) -> Array:
    return np.tile(data, reps)


def repeat(data: Tensor, *, repeats: int, axis: int | None = None) -> Tensor:
    """Repeat each element along an axis.

    Args:
        data: a tensor of any dtype.
        repeats: the number of copies of each element, >= 0.
        axis: the axis along which copies stand; None repeats the elements in row-major order, as a
            tensor of one dimension.

    Raises:
        UserError: the number is negative, or the axis does not exist.

    Reference: numpy.repeat; TVM topi.repeat.

    Example::

        >>> A = rc.placeholder((2,), "int32", name="A")
        >>> B = rc.topi.repeat(A, repeats=2)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2], "int32")}))
        [1 1 2 2]
    """
    require_tensor(data, "repeat")
    if repeats < 0:
        raise UserError(
            f"repeat cannot make {repeats} copies", remedy="give a number >= 0"
        )
    if axis is None:
        return repeat(reshape(data, shape=(-1,)), repeats=repeats, axis=0)
    place = normalize_axis(axis, data.ndim, "repeat")
    sizes = extents(data)

    def source(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        original = maths.floordiv(index[place], as_dim(max(1, repeats)))
        return replace_entry(index, place, original)

    shape = replace_entry(sizes, place, product([sizes[place], repeats]))
    return rearrange(data, shape, source, "repeat")


def _sample_repeat(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 3), draws.number_dtype())
    attributes = {"repeats": draws.choice((0, 1, 2, 3))}
    if data.ndim and draws.flag():
        attributes["axis"] = draws.axis(data.ndim)
    return Sample((data,), attributes)


@meaning_of(repeat, sample=_sample_repeat, pattern="injective")
def repeat_numpy(data: Array, *, repeats: int, axis: int | None = None) -> Array:
    return np.repeat(data, repeats, axis)


def roll(
    data: Tensor,
    *,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
) -> Tensor:
    """Move elements along axes; those that leave at the end enter at the front.

    Args:
        data: a tensor of any dtype.
        shift: the number of places that elements move: one for all axes, or one for each axis. A
            negative number moves them to the front.
        axis: the axes along which they move. An axis that is named twice moves by both shifts. None
            moves the elements in row-major order, and keeps the shape.

    Raises:
        UserError: an axis does not exist, or the numbers of shifts and axes differ.

    Reference: numpy.roll.

    Example::

        >>> A = rc.placeholder((4,), "int32", name="A")
        >>> B = rc.topi.roll(A, shift=1, axis=0)
        >>> print(*rc.oracle.evaluate([B], {A: np.arange(4, dtype="int32")}))
        [3 0 1 2]
    """
    require_tensor(data, "roll")
    sizes = extents(data)
    if axis is None:
        total = 0 if 0 in sizes else product(sizes)
        line = roll(reshape_to(data, [total], "flat"), shift=shift, axis=0)
        return reshape_to(line, sizes, "roll")
    places = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] if isinstance(shift, int) else list(shift)
    if isinstance(shift, int) or len(shifts) == 1:
        shifts = shifts * len(places)
    elif len(places) == 1:
        places = places * len(shifts)
    if len(shifts) != len(places):
        raise UserError(
            f"roll has {len(shifts)} shifts for {len(places)} axes",
            remedy="give one shift for all axes, or one for each",
        )
    moves: dict[int, int] = {}
    for place, count in zip(places, shifts, strict=True):
        whole = normalize_axis(place, data.ndim, "roll")
        moves[whole] = moves.get(whole, 0) + count

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        origin = list(index)
        for place, count in moves.items():
            size = sizes[place]
            if isinstance(size, int):
                # One comparison, instead of a remainder.
                start = index[place] - count % max(1, size)
                origin[place] = maths.select(start < 0, start + size, start)
            else:
                origin[place] = maths.floormod(index[place] - count, size)
        return origin

    return rearrange(data, sizes, source, "roll")


def _sample_roll(draws: Draws) -> Sample:
    (data,) = one_operand_of(draws).operands
    assert data is not None
    if not data.ndim or draws.flag():
        return Sample((data,), {"shift": draws.integer(-9, 9)})
    axes = tuple(draws.axis(data.ndim) for _ in range(draws.integer(1, 3)))
    shifts = tuple(draws.integer(-9, 9) for _ in axes)
    given = draws.choice(((shifts, axes), (shifts[0], axes), (shifts, axes[0])))
    return Sample((data,), {"shift": given[0], "axis": given[1]})


@meaning_of(roll, sample=_sample_roll, pattern="injective")
def roll_numpy(
    data: Array,
    *,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
) -> Array:
    shifts = shift if isinstance(shift, int) else tuple(shift)
    axes = axis if axis is None or isinstance(axis, int) else tuple(axis)
    return np.roll(data, shifts, axes)
