"""Operators that add a border to a tensor, or remove one: pad in all modes, mirror_pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_tensor
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import require_choice
from refcomp.topi.movement.rearrange import rearrange
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_constant
from refcomp.topi.spatial_padding import pad_axes

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
_MIRRORS = ("reflect", "symmetric")


def pad(
    data: Tensor,
    *,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "constant",
    pad_value: int | float = 0,
) -> Tensor:
    """Add elements before and after each axis; a negative number removes elements.

    Elements are removed first. For the elements 1 2 3 and a border of two, the modes give:

    - constant: v v 1 2 3 v v, where v is `pad_value`
    - edge: 1 1 1 2 3 3 3
    - reflect: 3 2 1 2 3 2 1
    - symmetric: 2 1 1 2 3 3 2
    - wrap: 2 3 1 2 3 1 2

    A border that is longer than the axis goes on in the same way.

    Args:
        data: a tensor of any dtype. Axes with a border have constant extents, except in the mode
            constant.
        pad_before: the number of elements to add before each axis.
        pad_after: the number of elements to add after each axis; as `pad_before` if not given.
        mode: one of the modes above.
        pad_value: the value of the added elements in the mode constant. It must be a value of the
            dtype of `data`; a float is rounded to it.

    Raises:
        UserError: the numbers are not one for each axis, or more elements are removed than an axis
            has. The mode is unknown, or it is not constant and extends an axis without elements.

    Reference: numpy.pad; ONNX Pad; TVM topi.nn.pad.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.pad(A, pad_before=[2], pad_after=[-1], mode="reflect")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2, 3], "int32")}))
        [1 2 1 2]
    """
    require_choice(mode, _MODES, "pad", "mode")
    borders = _borders(data, pad_before, pad_after, "pad")
    cropped = _cropped(data, borders)
    added = {
        place: (max(0, before), max(0, after))
        for place, (before, after) in enumerate(borders)
        if before > 0 or after > 0
    }
    # Without a border, `pad_axes` would return its operand, which is not a result.
    if mode == "constant" and added:
        return pad_axes(cropped, added, const(pad_value, data.dtype))
    return _extended(cropped, added, mode, "pad")


def _borders(
    data: Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None,
    operator: str,
) -> list[tuple[int, int]]:
    require_tensor(data, operator)
    after = pad_before if pad_after is None else pad_after
    if not len(pad_before) == len(after) == data.ndim:
        raise UserError(
            f"{operator} has {len(pad_before)} numbers before and {len(after)} after "
            f"the axes of a tensor of {data.ndim} dimensions",
            remedy="give one number before and one after each axis",
            earlier=[data.declaration()],
        )
    return list(zip(pad_before, after, strict=True))


def _cropped(data: Tensor, borders: Sequence[tuple[int, int]]) -> Tensor:
    """Return `data` without the elements that negative numbers remove."""
    starts = [max(0, -before) for before, _ in borders]
    removed = [max(0, -before) + max(0, -after) for before, after in borders]
    if not any(removed):
        return data
    shape = list(extents(data))
    for place, count in enumerate(removed):
        if count:
            size = require_constant(shape[place], f"pad: the extent of axis {place}")
            if count > size:
                raise UserError(
                    f"pad cannot remove {count} of the {size} elements of axis {place}",
                    remedy="remove at most as many elements as the axis has",
                    earlier=[data.declaration()],
                )
            shape[place] = size - count

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        return [i + start for i, start in zip(index, starts, strict=True)]

    return rearrange(data, shape, source, "crop")


def _extended(
    data: Tensor, borders: dict[int, tuple[int, int]], mode: str, operator: str
) -> Tensor:
    """Return `data` with borders around some axes, made of its own elements."""
    shape = list(extents(data))
    sizes = {}
    for place, (before, after) in borders.items():
        what = f"{operator}: the extent of axis {place}"
        sizes[place] = require_constant(shape[place], what)
        if not sizes[place]:
            raise UserError(
                f"{operator} cannot extend axis {place}, which has no elements, "
                f"by the mode {mode}",
                remedy='use the mode "constant"',
            )
        shape[place] = before + sizes[place] + after

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        origin = list(index)
        for place, (before, _) in borders.items():
            origin[place] = _inside(index[place] - before, sizes[place], mode)
        return origin

    return rearrange(data, shape, source, operator)


def _inside(position: Expr, size: int, mode: str) -> Expr:
    """Return the position of the element that a mode puts at `position`, which may be outside."""
    if mode == "edge" or size == 1:
        return maths.maximum(maths.minimum(position, size - 1), 0)
    if mode == "wrap":
        return maths.floormod(position, as_dim(size))
    # There and back again; reflect does not repeat the elements at the ends.
    last = 0 if mode == "reflect" else 1
    period = 2 * (size - 1 + last)
    place = maths.floormod(position, as_dim(period))
    return maths.select(place < size, place, period - last - place)


def _sample_pad(draws: Draws) -> Sample:
    mode = draws.choice(_MODES)
    least = 0 if mode == "constant" else 1
    data = draws.array(draws.shape(0, 3, least), draws.number_dtype())
    before = []
    after = []
    for extent in data.shape:
        before.append(draws.integer(-min(2, extent), 4))
        spare = extent + min(0, before[-1]) - least
        after.append(draws.integer(-max(0, min(2, spare)), 4))
        if spare < 0:
            before[-1] = 0
    attributes: dict[str, object] = {
        "pad_before": tuple(before),
        "pad_after": tuple(after),
        "mode": mode,
    }
    if mode == "constant" and draws.flag():
        attributes["pad_value"] = draws.choice((1, 3.0))
    if draws.flag():
        attributes["pad_before"] = tuple(max(0, count) for count in before)
        del attributes["pad_after"]
    return Sample((data,), attributes)


@meaning_of(pad, sample=_sample_pad)
def pad_numpy(
    data: Array,
    *,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "constant",
    pad_value: int | float = 0,
) -> Array:
    after = pad_before if pad_after is None else pad_after
    kept = tuple(
        slice(max(0, -low), max(0, extent - max(0, -high)))
        for extent, low, high in zip(data.shape, pad_before, after, strict=True)
    )
    result = data[kept]
    widths = [(max(0, b), max(0, a)) for b, a in zip(pad_before, after, strict=True)]
    if not widths:  # numpy pads no tensor of rank 0
        return data.copy()
    if mode != "constant":
        return np.pad(result, widths, mode=mode)  # type: ignore[call-overload, no-any-return]
    return np.pad(result, widths, constant_values=data.dtype.type(pad_value))


def mirror_pad(
    data: Tensor,
    *,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "symmetric",
) -> Tensor:
    """Add mirrored elements before and after each axis, at most once the whole axis.

    It is `pad` with its modes reflect and symmetric, for borders that one reflection fills.

    Args:
        data: a tensor of any dtype, whose extents along axes with a border are constant.
        pad_before: the number of elements to add before each axis, >= 0. It is at most the extent,
            or one less for reflect.
        pad_after: the same after each axis; as `pad_before` if not given.
        mode: symmetric repeats the element at the end; reflect does not.

    Raises:
        UserError: the numbers are not one for each axis, a number is negative or too large, or the
            mode is unknown.

    Reference: TensorFlow MirrorPad; TVM topi.nn.mirror_pad.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> B = rc.topi.mirror_pad(A, pad_before=[2], pad_after=[1])
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2, 3], "int32")}))
        [2 1 1 2 3 3]
    """
    require_choice(mode, _MIRRORS, "mirror_pad", "mode")
    borders = _borders(data, pad_before, pad_after, "mirror_pad")
    for place, border in enumerate(borders):
        what = f"mirror_pad: the extent of axis {place}"
        size = require_constant(extents(data)[place], what) if any(border) else 0
        most = max(0, size - (mode == "reflect"))
        if not all(0 <= count <= most for count in border):
            raise UserError(
                f"mirror_pad cannot add {border[0]} and {border[1]} elements to axis {place}",
                why=f"the mode {mode} has {most} elements to mirror",
                remedy=f"give numbers from 0 to {most}, or use pad",
                earlier=[data.declaration()],
            )
    added = {place: border for place, border in enumerate(borders) if any(border)}
    return _extended(data, added, mode, "mirror_pad")


def _sample_mirror_pad(draws: Draws) -> Sample:
    mode = draws.choice(_MIRRORS)
    data = draws.array(draws.shape(0, 3), draws.number_dtype())
    most = [max(0, extent - (mode == "reflect")) for extent in data.shape]
    attributes = {
        "pad_before": tuple(draws.integer(0, count) for count in most),
        "pad_after": tuple(draws.integer(0, count) for count in most),
        "mode": mode,
    }
    if draws.flag():
        del attributes["pad_after"]
    return Sample((data,), attributes)


@meaning_of(mirror_pad, sample=_sample_mirror_pad)
def mirror_pad_numpy(
    data: Array,
    *,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "symmetric",
) -> Array:
    result = data.copy()
    after = pad_before if pad_after is None else pad_after
    skipped = mode == "reflect"
    for axis, (low, high) in enumerate(zip(pad_before, after, strict=True)):
        size = data.shape[axis]
        front = np.flip(result.take(range(skipped, skipped + low), axis), axis)
        back = np.flip(
            result.take(range(size - high - skipped, size - skipped), axis), axis
        )
        result = np.concatenate([front, result, back], axis) if size else result
    return result
