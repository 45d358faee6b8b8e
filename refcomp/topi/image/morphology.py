"""Grey dilation and erosion of images: the maximum of sums, the minimum of differences.

Reference: P. Maragos, "Slope transforms", IEEE Transactions on Signal Processing 43, 1995; TVM,
topi.image.dilation2d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.resize_images import image_axes
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Pair,
    check_pair,
    replace_entry,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
    window_extent,
)
from refcomp.topi.spatial_padding import Padding, check_padding
from refcomp.topi.tags import REDUCTION


def dilation2d(
    data: Tensor,
    weight: Tensor,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilations: Pair = (1, 1),
    layout: str = "NCHW",
) -> Tensor:
    """Return the maximum over each window of the sums of an element and its weight.

    Elements outside of the image are left out. A window that has no others gives minus infinity.
    A NaN in a window makes its maximum NaN.

    Args:
        data: floats [n, c, h, w], or [n, h, w, c] in the layout NHWC; h and w are constant.
        weight: floats [c, kh, kw], or [kh, kw, c] in the layout NHWC, of the dtype of `data`; kh
            and kw are constant and at least 1.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right.
        dilations: elements down and across, from one element of a window to the next.
        layout: NCHW or NHWC.

    Returns:
        A tensor of the layout and dtype of `data`; `max_pool2d` has the same extents.

    Raises:
        UserError: an argument is not as described, or a window does not fit.

    Reference: TVM, topi.image.dilation2d_nchw and dilation2d_nhwc; tf.nn.dilation2d.

    Example::

        >>> A = rc.placeholder((1, 1, 1, 3), name="A")
        >>> W = rc.placeholder((1, 1, 2), name="W")
        >>> B = rc.topi.dilation2d(A, W)
        >>> a = np.array([1, 5, 2], "float32").reshape(1, 1, 1, 3)
        >>> w = np.array([0, 1], "float32").reshape(1, 1, 2)
        >>> print(rc.oracle.evaluate([B], {A: a, W: w})[0].ravel())
        [6. 5.]
    """
    require_float(data, "dilation2d")
    require_float(weight, "dilation2d")
    require_one_dtype("dilation2d", data, weight)
    axis = image_axes(layout, "HW", "dilation2d")[0]
    require_rank(data, 4, "dilation2d", "the data")
    require_rank(weight, 3, "dilation2d", "the weight")
    check_pair(strides, "dilation2d", "strides")
    check_pair(dilations, "dilation2d", "dilations")
    added = check_padding(padding, "dilation2d")
    channel = 1 if layout == "NCHW" else 3
    require_extent(
        extents(weight)[channel - 1],
        extents(data)[channel],
        "dilation2d",
        "the number of channels of the weight",
        tensors=(data, weight),
    )
    shape = extents(data)
    kernel = []
    for k in (0, 1):
        size = require_constant(extents(weight)[axis - 1 + k], "an extent of a window")
        kernel.append(size)
        count = window_extent(
            require_constant(extents(data)[axis + k], "a spatial extent"),
            kernel=size,
            stride=strides[k],
            dilation=dilations[k],
            before=added[k],
            after=added[k + 2],
        )
        shape = replace_entry(shape, axis + k, count)
    check_pair(kernel, "dilation2d", "kernel")
    steps = [reduce_axis(size, f"k{k}") for k, size in enumerate(kernel)]

    def greatest(*index: Expr) -> Expr:
        source = index
        place: tuple[Expr, ...] = index[1:]
        inside: list[Expr] = []
        for k in (0, 1):
            start = index[axis + k] * strides[k] - added[k]
            position = start + steps[k].var * dilations[k]
            inside += [position >= 0, position < data.shape[axis + k]]
            source = replace_entry(source, axis + k, position)
            place = replace_entry(place, axis - 1 + k, steps[k].var)
        total = data[source] + weight[place]
        return reducer.max(total, axis=steps, where=maths.all(*inside))

    return compute(shape, greatest, name="dilation2d", tag=REDUCTION)


def _sample_dilation2d(draws: Draws) -> Sample:
    layout = draws.choice(("NCHW", "NHWC"))
    dtype = draws.float_dtype()
    kernel = draws.pair(1, 3)
    dilations = draws.pair(1, 2)
    size = [
        d * (k - 1) + draws.integer(1, 3)
        for k, d in zip(kernel, dilations, strict=True)
    ]
    channels = draws.integer(1, 2)
    batch = draws.extent(0)
    image: Sequence[int] = (batch, channels, *size)
    window: Sequence[int] = (channels, *kernel)
    if layout == "NHWC":
        image = (batch, *size, channels)
        window = (*kernel, channels)
    options = {
        "strides": draws.pair(1, 2),
        "padding": tuple(draws.integer(0, 2) for _ in range(4)),
        "dilations": dilations,
        "layout": layout,
    }
    return Sample((draws.array(image, dtype), draws.array(window, dtype)), options)


@meaning_of(dilation2d, sample=_sample_dilation2d)
def dilation2d_numpy(
    data: Array,
    weight: Array,
    *,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilations: Pair = (1, 1),
    layout: str = "NCHW",
) -> Array:
    if layout == "NHWC":
        moved = dilation2d_numpy(
            data.transpose(0, 3, 1, 2),
            weight.transpose(2, 0, 1),
            strides=strides,
            padding=padding,
            dilations=dilations,
        )
        return np.ascontiguousarray(moved.transpose(0, 2, 3, 1))
    top, left, bottom, right = padding
    batch, channels, height, width = data.shape
    # A sum outside of the image is minus infinity, whatever the weight is.
    inside = np.zeros((height + top + bottom, width + left + right), np.bool_)
    inside[top : top + height, left : left + width] = True
    padded = np.zeros((batch, channels, *inside.shape), np.float64)
    padded[:, :, inside] = data.reshape(batch, channels, height * width)
    reach = [dilations[k] * (weight.shape[1 + k] - 1) for k in (0, 1)]
    sums = []
    for y, x in np.ndindex(*weight.shape[1:]):
        rows = slice(
            y * dilations[0], inside.shape[0] - reach[0] + y * dilations[0], strides[0]
        )
        columns = slice(
            x * dilations[1], inside.shape[1] - reach[1] + x * dilations[1], strides[1]
        )
        total = padded[:, :, rows, columns] + weight[:, y, x].reshape(-1, 1, 1)
        sums.append(np.where(inside[rows, columns], total, -np.inf))
    return np.asarray(np.maximum.reduce(sums), data.dtype)
