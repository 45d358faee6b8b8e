"""Convolution whose taps move: each reads the image at an offset, between pixels if need be.

    y[n, o, i] = sum over (c, k) of w[o, c, k] * mask[n, k, i] * x(n, c, i * stride + k * dilation -
    before + offset[n, k, i])

where i and k are pairs, and x(n, c, position) interpolates linearly between four pixels. A pixel
outside of the image counts as 0. A position that is a row or more outside, or NaN, gives 0.

Reference: J. Dai et al., "Deformable Convolutional Networks", ICCV 2017; X. Zhu et al., "Deformable
ConvNets v2", CVPR 2019, for the mask; ONNX DeformConv.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import I32
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.convolution.windows import (
    Tap,
    Windows,
    check_groups,
    constant_sizes,
    make_windows,
    require_channels,
    sample_convolution,
    sum_windows,
    windows_numpy,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Pair,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import SHARED


def deformable_conv2d(
    data: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    offset_groups: int = 1,
) -> Tensor:
    """Return the convolution of images at positions that the offsets move.

        y[n, o, i] = bias[o] + sum over (c, k) of w[o, c, k] * mask[n, k, i] * x(n, c, p)
        p = i * stride + k * dilation - before + offset[n, k, i]

    where i, k and p are pairs, and x(n, c, p) interpolates linearly between the four pixels around
    p. A pixel outside of the image counts as 0. A position that is a row or a column or more
    outside, or NaN, gives 0. NaN of an image propagates, also with a factor of 0.

    Args:
        data: [n, c, h, w], of floats.
        offset: [n, offset_groups * kh * kw * 2, h', w'], of the dtype of `data`: for each element
            of the kernel, in the order of rows, the offset down and the offset across.
        weight: [o, c / groups, kh, kw], of constant extents and of the dtype of `data`.
        bias: [o], of the dtype of `data`; optional.
        mask: [n, offset_groups * kh * kw, h', w'], of the dtype of `data`; a factor for each
            element of the kernel, 1 by default.
        strides: elements down and across, from one window to the next.
        padding: rows and columns by which windows may begin or end outside of the image: top, left,
            bottom and right.
        dilation: elements down and across, from one element of a window to the next.
        groups: number of groups into which the channels are divided for the sums.
        offset_groups: number of groups of channels, each with offsets of its own. It divides c.

    Returns:
        A tensor [n, o, h', w'] of the dtype of `data`. See `window_extent` for h' and w'.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.

    Reference: ONNX DeformConv; TVM, topi.nn.deformable_conv2d_nchw.

    Example::

        >>> X, O = rc.placeholder((1, 1, 1, 3), name="X"), rc.placeholder((1, 2, 1, 3), name="O")
        >>> W = rc.placeholder((1, 1, 1, 1), name="W")
        >>> Y = rc.topi.deformable_conv2d(X, O, W)
        >>> x, w = np.array([[[[10, 20, 40]]]], "float32"), np.ones((1, 1, 1, 1), "float32")
        >>> o = np.array([[[[0, 0, 0]], [[0.5, 1, 0.25]]]], "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, O: o, W: w}))
        [[[[15. 40. 30.]]]]
    """
    name = "deformable_conv2d"
    require_rank(data, 4, name, "the data")
    require_float(data, name)
    require_one_dtype(name, data, offset, weight, mask)
    sizes = constant_sizes(weight, "OIHW", name)
    check_groups(groups, sizes["O"], name)
    channels = sizes["I"] * groups
    require_channels(data, weight, channels, "NCHW", name)
    if offset_groups < 1 or channels % offset_groups:
        raise UserError(
            f"{name} cannot divide {channels} channels into {offset_groups} groups of offsets",
            remedy="let offset_groups divide the number of channels of the data",
        )
    kernel = (sizes["H"], sizes["W"])
    windows = make_windows(name, "NCHW", kernel, strides, padding, dilation)
    counts = windows.counts(data)
    taps = offset_groups * kernel[0] * kernel[1]
    batch = extents(data)[0]
    _require_shape(offset, (batch, 2 * taps, *counts), "the offset")
    if mask is not None:
        _require_shape(mask, (batch, taps, *counts), "the mask")
    moved = _move_image(data, offset, mask, windows, counts, offset_groups)
    result = _sum_moved(moved, weight, windows, counts, groups)
    return result if bias is None else add_bias(result, bias, name, 1)


def _require_shape(tensor: Tensor, shape: Sequence[Extent], what: str) -> None:
    """Raise UserError unless the tensor has this shape."""
    name = "deformable_conv2d"
    require_rank(tensor, 4, name, what)
    for axis, expected in enumerate(shape):
        require_extent(
            extents(tensor)[axis],
            expected,
            name,
            f"{what}'s extent {axis}",
            tensors=(tensor,),
        )


def _move_image(
    data: Tensor,
    offset: Tensor,
    mask: Tensor | None,
    windows: Windows,
    counts: Sequence[Extent],
    offset_groups: int,
) -> Tensor:
    """Return the elements that each tap reads: adjacent windows [n, c, h' * kh, w' * kw]."""
    batch, channels, height, width = extents(data)
    assert isinstance(channels, int)
    ky_count, kx_count = windows.kernel
    per_group = channels // offset_groups
    dtype = data.dtype

    def moved_to(axis: int, i: Expr, k: Expr, by: Expr) -> Expr:
        place = i * windows.strides[axis] + k * windows.dilation[axis]
        return (place - windows.borders[axis][0]).astype(dtype) + by

    def element(n: Expr, c: Expr, row: Expr, column: Expr) -> Expr:
        y, ky = row // ky_count, row % ky_count
        x, kx = column // kx_count, column % kx_count
        tap = ky * kx_count + kx
        if offset_groups > 1:
            tap = c // per_group * (ky_count * kx_count) + tap
        down = moved_to(0, y, ky, offset[n, 2 * tap, y, x])
        across = moved_to(1, x, kx, offset[n, 2 * tap + 1, y, x])
        value = _interpolated(data, (n, c), (down, across), (height, width))
        return value if mask is None else value * mask[n, tap, y, x]

    shape = (batch, channels, counts[0] * ky_count, counts[1] * kx_count)
    return compute(shape, element, name="moved", tag=SHARED)


def _interpolated(
    data: Tensor,
    image: tuple[Expr, Expr],
    position: tuple[Expr, Expr],
    size: tuple[Extent, Extent],
) -> Expr:
    """Return the image at a position between pixels, or 0 outside of it."""
    dtype = data.dtype
    zero = const(0, dtype)
    inside: list[Expr] = []
    lower: list[Expr] = []
    rest: list[Expr] = []
    for place, extent in zip(position, size, strict=True):
        floor = maths.floor(place)
        # A comparison with NaN is false.
        inside.append(place > const(-1, dtype))
        inside.append(place < _as_float(extent, dtype))
        lower.append(floor.astype(I32))
        rest.append(place - floor)
    total: Expr = zero
    for down in (0, 1):
        for across in (0, 1):
            y = lower[0] + down
            x = lower[1] + across
            is_pixel = maths.all(y >= 0, y < size[0], x >= 0, x < size[1])
            # `if_then_else`, not `select`: pixels outside must not be read.
            pixel = maths.if_then_else(is_pixel, data[(*image, y, x)], zero)
            vertical = rest[0] if down else const(1, dtype) - rest[0]
            horizontal = rest[1] if across else const(1, dtype) - rest[1]
            total = total + vertical * horizontal * pixel
    return maths.if_then_else(maths.all(*inside), total, zero)


def _as_float(extent: Extent, dtype: object) -> Expr:
    value = const(extent, I32) if isinstance(extent, int) else extent
    return value.astype(dtype)


def _sum_moved(
    moved: Tensor,
    weight: Tensor,
    windows: Windows,
    counts: Sequence[Extent],
    groups: int,
) -> Tensor:
    """Return the sums over windows that lie side by side."""
    sizes = constant_sizes(weight, "OIHW", windows.operator)
    beside = Windows(
        operator=windows.operator,
        layout="NCHW",
        kernel=windows.kernel,
        strides=windows.kernel,
        dilation=(1, 1),
        borders=((0, 0), (0, 0)),
    )

    def product(read: Expr, tap: Tap) -> Expr:
        at: dict[str, Expr | IterVar] = {"O": tap.out, "I": tap.place, **tap.offsets}
        return read * weight[tuple(at[letter] for letter in "OIHW")]

    return sum_windows(
        moved,
        beside,
        counts,
        product,
        out=sizes["O"],
        depth=sizes["I"],
        groups=groups,
        name=windows.operator,
    )


def _sample_deformable_conv2d(draws: Draws) -> Sample:
    sample = sample_convolution(draws, "NCHW", "OIHW")
    data, weight, _ = sample.operands
    assert data is not None and weight is not None
    attributes = dict(sample.attributes)
    attributes.pop("out_dtype", None)
    strides = attributes["strides"]
    dilation = attributes["dilation"]
    padding = attributes["padding"]
    assert isinstance(strides, tuple)
    assert isinstance(dilation, tuple)
    assert isinstance(padding, tuple)
    dtype = draws.choice(("float32", "float64"))
    offset_groups = draws.choice((1, attributes["groups"]))
    assert isinstance(offset_groups, int)
    kernel = weight.shape[2:]
    taps = offset_groups * kernel[0] * kernel[1]
    borders = [(0, 0), (0, 0), *zip(padding[:2], padding[2:], strict=True)]
    seen = windows_numpy(np.pad(data, borders), kernel, strides, dilation)
    size = (len(data), *seen.shape[2:4])
    offset = draws.uniform((size[0], 2 * taps, *size[1:]), -3, 3, dtype)
    corners = np.array([np.nan, np.inf, -np.inf, 0, 0, -1, 1], dtype)
    place = draws.integers(offset.shape, 0, 40)
    offset = np.where(place < len(corners), corners[place % len(corners)], offset)
    mask = draws.uniform((size[0], taps, *size[1:]), 0, 1, dtype)
    bias = draws.array((len(weight),), dtype)
    operands = (
        draws.array(data.shape, dtype),
        offset,
        draws.array(weight.shape, dtype, special=False),
        bias if draws.flag() else None,
        mask if draws.flag() else None,
    )
    return Sample(operands, {**attributes, "offset_groups": offset_groups})


@meaning_of(deformable_conv2d, sample=_sample_deformable_conv2d)
def deformable_conv2d_numpy(
    data: Array,
    offset: Array,
    weight: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    offset_groups: int = 1,
) -> Array:
    batch, channels, height, width = data.shape
    out, depth, *kernel = weight.shape
    rows, columns = offset.shape[2:]
    shape = (batch, offset_groups, kernel[0] * kernel[1])
    moves = widen(offset).reshape(*shape, 2, rows, columns)
    factors = np.ones((*shape, rows, columns))
    if mask is not None:
        factors = widen(mask).reshape(factors.shape)
    # With a border of a pixel, each position inside has four neighbours.
    image = np.pad(widen(data), [(0, 0), (0, 0), (1, 1), (1, 1)])
    own = channels // offset_groups
    image = image.reshape(batch, offset_groups, own, height + 2, width + 2)
    result = np.zeros((batch, out, rows, columns))
    top, left = padding[:2]
    y0 = (np.arange(rows) * strides[0] - top)[:, None]
    x0 = np.arange(columns) * strides[1] - left
    n = np.arange(batch)[:, None, None, None]
    g = np.arange(offset_groups)[:, None, None]
    for tap, (ky, kx) in enumerate(np.ndindex(*kernel)):
        y = moves[:, :, tap, 0] + (y0 + ky * dilation[0])
        x = moves[:, :, tap, 1] + (x0 + kx * dilation[1])
        is_inside = (y > -1) & (y < height) & (x > -1) & (x < width)
        y = np.where(is_inside, y, 0)
        x = np.where(is_inside, x, 0)
        i = np.floor(y).astype(int)
        j = np.floor(x).astype(int)
        read = np.zeros((batch, offset_groups, rows, columns, image.shape[2]))
        for down, across in np.ndindex(2, 2):
            near = (1 - abs(y - i - down)) * (1 - abs(x - j - across))
            # An index between slices puts the channels last.
            read += near[..., None] * image[n, g, :, i + 1 + down, j + 1 + across]
        read = np.where(is_inside[..., None], read, 0) * factors[:, :, tap, ..., None]
        # [batch, channels, rows, columns]
        by_channel = read.transpose(0, 1, 4, 2, 3).reshape(
            batch, channels, rows, columns
        )
        for o in range(out):
            first = o // (out // groups) * depth
            seen = by_channel[:, first : first + depth]
            result[:, o] += (seen * widen(weight[o, :, ky, kx]).reshape(-1, 1, 1)).sum(
                1
            )
    if bias is not None:
        result += widen(bias).reshape(-1, 1, 1)
    return result.astype(data.dtype)
