"""Operators that move blocks of an image into channels or batches, and back.

They take tensors of any dtype and keep each element to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, require_tensor
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import require_choice
from refcomp.topi.movement.rearrange import rearrange
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_constant, require_rank
from refcomp.topi.spatial_padding import pad_axes

_MODES = ("DCR", "CRD")


def space_to_depth(data: Tensor, *, block_size: int, mode: str = "DCR") -> Tensor:
    """Move each block of pixels into the channels of one pixel.

    Row r and column s of a block have the number q = r * block_size + s. Channel k of this pixel
    becomes channel q * c + k in the mode DCR. It becomes k * block_size ** 2 + q in the mode CRD.

    Args:
        data: [n, c, height, width] of any dtype; all but n are constant.
        block_size: the extent of a block down and across, which divides height and width.
        mode: DCR or CRD. ONNX SpaceToDepth is DCR.

    Returns:
        A tensor [n, c * block_size ** 2, height / block_size, width / block_size].

    Raises:
        UserError: the rank, the block size or the mode does not fit.

    Reference: ONNX SpaceToDepth; TVM topi.nn.space_to_depth.

    Example::

        >>> A = rc.placeholder((1, 1, 2, 2), "int32", name="A")
        >>> rc.topi.space_to_depth(A, block_size=2).shape
        (1, 4, 1, 1)
    """
    n, channels, height, width = _image(data, block_size, mode, "space_to_depth")
    size = block_size
    if height % size or width % size:
        raise UserError(
            f"space_to_depth cannot divide {height} x {width} pixels by blocks of {size}",
            remedy="pad the image first, or use a block size that divides both",
            earlier=[data.declaration()],
        )

    def source(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        image, mixed, y, x = index
        c, r, s = _parts(mixed, channels, size, mode)
        return image, c, y * size + r, x * size + s

    shape = (n, channels * size * size, height // size, width // size)
    return rearrange(data, shape, source, "space_to_depth")


def _parts(mixed: Expr, channels: int, size: int, mode: str) -> tuple[Expr, Expr, Expr]:
    """Return the channel, and the row and column in a block, for which a channel stands."""
    if mode == "DCR":
        block = maths.floordiv(mixed, as_dim(channels))
        channel = maths.floormod(mixed, as_dim(channels))
    else:
        block = maths.floormod(mixed, as_dim(size * size))
        channel = maths.floordiv(mixed, as_dim(size * size))
    row = maths.floordiv(block, as_dim(size))
    column = maths.floormod(block, as_dim(size))
    return channel, row, column


def _image(
    data: Tensor, block_size: int, mode: str, operator: str
) -> tuple[Extent, int, int, int]:
    """Return the extents of an image, after checks."""
    require_rank(data, 4, operator, "data")
    require_choice(mode, _MODES, operator, "mode")
    if block_size < 1:
        raise UserError(
            f"{operator} has the block size {block_size}", remedy="give a number >= 1"
        )
    n, *others = extents(data)
    names = ("channels", "height", "width")
    channels, height, width = (
        require_constant(extent, f"{operator}: {name}")
        for extent, name in zip(others, names, strict=True)
    )
    return n, channels, height, width


def _sample_space_to_depth(draws: Draws) -> Sample:
    size = draws.integer(1, 3)
    n, c, height, width = draws.shape(4, 4)
    shape = (min(n, 2), min(c, 3), min(height, 2) * size, min(width, 2) * size)
    data = draws.array(shape, draws.number_dtype())
    return Sample((data,), {"block_size": size, "mode": draws.choice(_MODES)})


@meaning_of(space_to_depth, sample=_sample_space_to_depth, pattern="injective")
def space_to_depth_numpy(data: Array, *, block_size: int, mode: str = "DCR") -> Array:
    n, c, height, width = data.shape
    high = height // block_size
    wide = width // block_size
    blocks = data.reshape(n, c, high, block_size, wide, block_size)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(n, c * block_size**2, high, wide)


def depth_to_space(data: Tensor, *, block_size: int, mode: str = "DCR") -> Tensor:
    """Move the channels of each pixel into a block of pixels: the inverse of space_to_depth.

    Args:
        data: [n, c, height, width] of any dtype; all but n are constant.
        block_size: the extent of a block down and across. Its square divides c.
        mode: DCR or CRD, the order of the channels (see space_to_depth).

    Returns:
        A tensor [n, c / block_size ** 2, height * block_size, width * block_size].

    Raises:
        UserError: the rank, the block size or the mode does not fit.

    Reference: ONNX DepthToSpace; TVM topi.nn.depth_to_space.

    Example::

        >>> A = rc.placeholder((1, 4, 1, 1), "int32", name="A")
        >>> B = rc.topi.depth_to_space(A, block_size=2)
        >>> a = np.arange(4, dtype="int32").reshape(1, 4, 1, 1)
        >>> print(rc.oracle.evaluate([B], {A: a})[0][0])
        [[[0 1]
          [2 3]]]
    """
    n, mixed, height, width = _image(data, block_size, mode, "depth_to_space")
    size = block_size
    if mixed % (size * size):
        raise UserError(
            f"depth_to_space cannot divide {mixed} channels by blocks of {size} x {size}",
            remedy="use a block size whose square divides the channels",
            earlier=[data.declaration()],
        )
    channels = mixed // (size * size)

    def source(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        image, c, y, x = index
        r = maths.floormod(y, as_dim(size))
        s = maths.floormod(x, as_dim(size))
        block = r * size + s
        channel = c * (size * size) + block
        if mode == "DCR":
            channel = block * channels + c
        down = maths.floordiv(y, as_dim(size))
        return image, channel, down, maths.floordiv(x, as_dim(size))

    shape = (n, channels, height * size, width * size)
    return rearrange(data, shape, source, "depth_to_space")


def _sample_depth_to_space(draws: Draws) -> Sample:
    size = draws.integer(1, 3)
    n, c, height, width = draws.shape(4, 4)
    shape = (min(n, 2), min(c, 3) * size * size, min(height, 2), min(width, 2))
    data = draws.array(shape, draws.number_dtype())
    return Sample((data,), {"block_size": size, "mode": draws.choice(_MODES)})


@meaning_of(depth_to_space, sample=_sample_depth_to_space, pattern="injective")
def depth_to_space_numpy(data: Array, *, block_size: int, mode: str = "DCR") -> Array:
    n, c, height, width = data.shape
    channels = c // block_size**2
    if mode == "DCR":
        blocks = data.reshape(n, block_size, block_size, channels, height, width)
        moved = blocks.transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = data.reshape(n, channels, block_size, block_size, height, width)
        moved = blocks.transpose(0, 1, 4, 2, 5, 3)
    return moved.reshape(n, channels, height * block_size, width * block_size)


def space_to_batch_nd(
    data: Tensor,
    *,
    block_shape: Sequence[int],
    pad_before: Sequence[int] | None = None,
    pad_after: Sequence[int] | None = None,
    pad_value: int | float = 0,
) -> Tensor:
    """Pad spatial axes, and move each place in their blocks to a batch of its own.

    Args:
        data: [batch, spatial axes, others] of any dtype; batch and spatial extents are constant.
        block_shape: the extents of a block, one for each spatial axis, >= 1.
        pad_before: the elements to add before each spatial axis, >= 0; none by default.
        pad_after: the elements to add after each spatial axis, >= 0; none by default.
        pad_value: the value of these elements.

    Returns:
        A tensor [batch * product of block_shape, spatial / block_shape, others]. The place in the
        block is the slower part of the batch.

    Raises:
        UserError: a list has another length than `block_shape`, a number is too small, or a block
            does not divide its padded axis.

    Reference: TensorFlow SpaceToBatchND; TVM topi.nn.space_to_batch_nd.

    Example::

        >>> A = rc.placeholder((1, 4), "int32", name="A")
        >>> B = rc.topi.space_to_batch_nd(A, block_shape=[2])
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 2, 3, 4]], "int32")}))
        [[1 3]
         [2 4]]
    """
    name = "space_to_batch_nd"
    before, after = _margins(data, block_shape, pad_before, pad_after, name)
    borders = {k + 1: pair for k, pair in enumerate(zip(before, after, strict=True))}
    padded = pad_axes(data, borders, const(pad_value, data.dtype))
    first, *rest = extents(padded)
    count = len(block_shape)
    batch = require_constant(first, f"{name}: the batch")
    shape: list[Extent] = [batch * math.prod(block_shape)]
    for place, (extent, block) in enumerate(zip(rest, block_shape, strict=False), 1):
        size = require_constant(extent, f"{name}: the extent of axis {place}")
        if size % block:
            raise UserError(
                f"{name} cannot divide {size} elements of axis {place} by blocks of {block}",
                remedy="add padding, so that each block divides its axis",
                earlier=[data.declaration()],
            )
        shape.append(size // block)

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        image, offsets = _divided(index[0], batch, block_shape)
        spatial = [
            i * block + offset
            for i, block, offset in zip(index[1:], block_shape, offsets, strict=False)
        ]
        return [image, *spatial, *index[count + 1 :]]

    return rearrange(padded, [*shape, *rest[count:]], source, name)


def _divided(
    mixed: Expr, batch: int, block_shape: Sequence[int]
) -> tuple[Expr, list[Expr]]:
    """Return the number of the image, and the place in a block, for which a batch stands."""
    image = maths.floormod(mixed, as_dim(max(1, batch)))
    place = maths.floordiv(mixed, as_dim(max(1, batch)))
    offsets: list[Expr] = []
    for block in reversed(block_shape):
        offsets.insert(0, maths.floormod(place, as_dim(block)))
        place = maths.floordiv(place, as_dim(block))
    return image, offsets


def _margins(
    data: Tensor,
    block_shape: Sequence[int],
    before: Sequence[int] | None,
    after: Sequence[int] | None,
    operator: str,
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the numbers for both ends of each spatial axis, after checks."""
    require_tensor(data, operator)
    count = len(block_shape)
    first = [0] * count if before is None else before
    last = [0] * count if after is None else after
    if not count < data.ndim or not len(first) == len(last) == count:
        raise UserError(
            f"{operator} has {count} blocks and margins of {len(first)} and {len(last)} axes "
            f"for a tensor of {data.ndim} dimensions",
            remedy="give one block, and one margin at each end, for each spatial axis",
            earlier=[data.declaration()],
        )
    if min(block_shape, default=1) < 1 or min([*first, *last], default=0) < 0:
        raise UserError(
            f"{operator} cannot use blocks of {tuple(block_shape)} "
            f"with margins of {tuple(first)} and {tuple(last)}",
            remedy="give blocks >= 1 and margins >= 0",
        )
    return first, last


def _sample_space_to_batch_nd(draws: Draws) -> Sample:
    blocks = tuple(draws.integer(1, 3) for _ in range(draws.integer(0, 2)))
    before = tuple(draws.integer(0, 1) for _ in blocks)
    sizes = [draws.integer(0, 3) for _ in blocks]
    after = []
    for size, block, low in zip(sizes, blocks, before, strict=True):
        after.append(-(size + low) % block)
    shape = (draws.extent(0), *sizes, *draws.shape(0, 1))
    data = draws.array(shape, draws.number_dtype())
    attributes: dict[str, object] = {"block_shape": blocks, "pad_after": tuple(after)}
    attributes |= {"pad_before": before, "pad_value": draws.choice((0, 3))}
    return Sample((data,), attributes)


@meaning_of(space_to_batch_nd, sample=_sample_space_to_batch_nd)
def space_to_batch_nd_numpy(
    data: Array,
    *,
    block_shape: Sequence[int],
    pad_before: Sequence[int] | None = None,
    pad_after: Sequence[int] | None = None,
    pad_value: int | float = 0,
) -> Array:
    count = len(block_shape)
    low = pad_before or [0] * count
    high = pad_after or [0] * count
    widths = [(0, 0)] * data.ndim
    widths[1 : count + 1] = zip(low, high, strict=True)
    padded = np.pad(data, widths, constant_values=data.dtype.type(pad_value))
    parts = []
    for offsets in np.ndindex(*block_shape):
        pairs = zip(offsets, block_shape, strict=True)
        slices = [slice(offset, None, block) for offset, block in pairs]
        parts.append(padded[(slice(None), *slices)])
    return np.concatenate(parts)


def batch_to_space_nd(
    data: Tensor,
    *,
    block_shape: Sequence[int],
    crop_before: Sequence[int] | None = None,
    crop_after: Sequence[int] | None = None,
) -> Tensor:
    """Move batches into blocks of spatial axes, and crop these: undo space_to_batch_nd.

    Args:
        data: [batch, spatial axes, others] of any dtype; batch and spatial extents are constant.
            The product of `block_shape` divides the batch.
        block_shape: the extents of a block, one for each spatial axis, >= 1.
        crop_before: the elements to remove before each spatial axis, >= 0; none by default.
        crop_after: the elements to remove after each spatial axis, >= 0; none by default.

    Returns:
        A tensor [batch / product of block_shape, spatial * block_shape - crops, others].

    Raises:
        UserError: a list has another length than `block_shape`, a number is too small, the batch
            does not divide, or more elements are removed than an axis has.

    Reference: TensorFlow BatchToSpaceND; TVM topi.nn.batch_to_space_nd.

    Example::

        >>> A = rc.placeholder((2, 2), "int32", name="A")
        >>> B = rc.topi.batch_to_space_nd(A, block_shape=[2], crop_after=[1])
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, 3], [2, 4]], "int32")}))
        [[1 2 3]]
    """
    name = "batch_to_space_nd"
    before, after = _margins(data, block_shape, crop_before, crop_after, name)
    first, *rest = extents(data)
    total = require_constant(first, f"{name}: the batch")
    count = len(block_shape)
    if total % math.prod(block_shape):
        raise UserError(
            f"{name} cannot divide a batch of {total} by blocks of {tuple(block_shape)}",
            remedy="use blocks whose product divides the batch",
            earlier=[data.declaration()],
        )
    batch = total // math.prod(block_shape)
    shape: list[Extent] = [batch]
    for place, block in enumerate(block_shape):
        what = f"{name}: the extent of axis {place + 1}"
        size = require_constant(rest[place], what) * block
        kept = size - before[place] - after[place]
        if kept < 0:
            raise UserError(
                f"{name} cannot remove {before[place]} and {after[place]} "
                f"of the {size} elements of axis {place + 1}",
                remedy="remove at most as many elements as the axis has",
            )
        shape.append(kept)

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        offset = as_dim(0)
        spatial: list[Expr] = []
        for i, block, start in zip(index[1:], block_shape, before, strict=False):
            whole = i + start
            spatial.append(maths.floordiv(whole, as_dim(block)))
            offset = offset * block + maths.floormod(whole, as_dim(block))
        return [offset * batch + index[0], *spatial, *index[count + 1 :]]

    return rearrange(data, [*shape, *rest[count:]], source, name)


def _sample_batch_to_space_nd(draws: Draws) -> Sample:
    blocks = tuple(draws.integer(1, 3) for _ in range(draws.integer(0, 2)))
    sizes = [draws.integer(1, 2) for _ in blocks]
    pairs = list(zip(sizes, blocks, strict=True))
    before = tuple(draws.integer(0, size * block // 2) for size, block in pairs)
    after = tuple(draws.integer(0, size * block // 2) for size, block in pairs)
    batch = min(2, draws.extent(0)) * math.prod(blocks)
    data = draws.array((batch, *sizes, *draws.shape(0, 1)), draws.number_dtype())
    attributes = {"block_shape": blocks, "crop_before": before, "crop_after": after}
    return Sample((data,), attributes)


@meaning_of(batch_to_space_nd, sample=_sample_batch_to_space_nd, pattern="injective")
def batch_to_space_nd_numpy(
    data: Array,
    *,
    block_shape: Sequence[int],
    crop_before: Sequence[int] | None = None,
    crop_after: Sequence[int] | None = None,
) -> Array:
    count = len(block_shape)
    batch = len(data) // math.prod(block_shape)
    spatial = [n * b for n, b in zip(data.shape[1:], block_shape, strict=False)]
    whole = np.zeros((batch, *spatial, *data.shape[count + 1 :]), data.dtype)
    for number, offsets in enumerate(np.ndindex(*block_shape)):
        places = zip(offsets, block_shape, strict=True)
        slices = [slice(offset, None, block) for offset, block in places]
        part = data[number * batch : (number + 1) * batch]
        whole[(slice(None), *slices)] = part
    low = crop_before or [0] * count
    high = crop_after or [0] * count
    ends = zip(spatial, low, high, strict=True)
    kept = [slice(first, size - last) for size, first, last in ends]
    return whole[(slice(None), *kept)].copy()
