"""Correlation of the patches of two images, by which optical flow is found.

Reference: A. Dosovitskiy et al., "FlowNet: Learning Optical Flow with Convolutional Networks", ICCV
2015, section 3.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.spatial_padding import pad_spatial
from refcomp.topi.tags import REDUCTION


def correlation(
    first: Tensor,
    second: Tensor,
    *,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    padding: int = 0,
    is_multiply: bool = True,
) -> Tensor:
    """Return the mean product of patches of two images, for each displacement of the second one.

        y[n, q, i, j] = mean over (c, k) of a[n, c, p + k] * b[n, c, p + k + d(q)]
        p = (i * stride1 + m, j * stride1 + m)

    where k goes over a patch of kernel_size x kernel_size and m is `max_displacement`. With r = m
    // stride2, the displacement d(q) is that number q of (-r ... r) x (-r ... r) in the order of
    rows, times stride2. Both images are 0 in a border of `padding` elements. NaN propagates.

    Args:
        first: [n, c, h, w], of floats.
        second: [n, c, h, w], of the dtype of `first`.
        kernel_size: rows and columns of a patch; an odd number.
        max_displacement: the greatest displacement along an axis, at least 0.
        stride1: elements from one patch of the first image to the next.
        stride2: elements from one displacement to the next.
        padding: zeros added on each side of both images.
        is_multiply: True for products; False for absolute differences.

    Returns:
        A tensor [n, (2 r + 1)^2, h', w'] of the dtype of `first`, with as many rows and columns as
        windows of 2 * max_displacement + kernel_size fit in the padded image.

    Raises:
        UserError: a rank, extent, dtype or attribute does not fit, or c is 0 or symbolic.

    Reference: TVM, topi.nn.correlation_nchw.

    Example::

        >>> A, B = (rc.placeholder((1, 1, 1, 3), name=name) for name in "AB")
        >>> C = rc.topi.correlation(A, B, padding=1)
        >>> a, b = np.array([[[[1, 2, 3]]]], "float32"), np.array([[[[4, 5, 6]]]], "float32")
        >>> (c,) = rc.oracle.evaluate([C], {A: a, B: b})
        >>> print(c[0, 3:6, 0])  # one to the left, none, one to the right
        [[ 0.  8. 15.]
         [ 4. 10. 18.]
         [ 5. 12.  0.]]
    """
    name = "correlation"
    require_rank(first, 4, name, "the first image")
    require_rank(second, 4, name, "the second image")
    require_float(first, name)
    require_one_dtype(name, first, second)
    for axis in range(4):
        require_extent(
            extents(second)[axis],
            extents(first)[axis],
            name,
            f"the second image's extent {axis}",
            tensors=(first, second),
        )
    _check_attributes(kernel_size, max_displacement, stride1, stride2, padding)
    batch, channels, *size = extents(first)
    if not isinstance(channels, int) or channels == 0:
        raise UserError(
            f"{name} does not have a mean over {channels} channels",
            remedy="give images with a constant number of channels, at least 1",
            earlier=[first.declaration()],
        )
    window = 2 * max_displacement + kernel_size
    counts: list[Extent] = [
        window_extent(extent, window, stride1, 1, padding, padding) for extent in size
    ]
    zero = const(0, first.dtype)
    borders = (padding,) * 4
    left = pad_spatial(first, borders, zero, 2)
    right = pad_spatial(second, borders, zero, 2)
    radius = max_displacement // stride2
    places = 2 * radius + 1
    rc = reduce_axis(channels, "rc")
    ry = reduce_axis(kernel_size, "ry")
    rx = reduce_axis(kernel_size, "rx")

    def total(n: Expr, q: Expr, i: Expr, j: Expr) -> Expr:
        y = i * stride1 + max_displacement + ry
        x = j * stride1 + max_displacement + rx
        down = (q // places - radius) * stride2
        across = (q % places - radius) * stride2
        a = left[n, rc, y, x]
        b = right[n, rc, y + down, x + across]
        term = a * b if is_multiply else maths.abs(a - b)
        return reducer.sum(term, axis=[rc, ry, rx])

    shape = (batch, places * places, *counts)
    sums = compute(shape, total, name="sums", tag=REDUCTION)
    terms = const(channels * kernel_size**2, first.dtype)
    return compute(shape, lambda *at: sums[at] / terms, name=name, tag=INJECTIVE)


def _check_attributes(
    kernel_size: int, max_displacement: int, stride1: int, stride2: int, padding: int
) -> None:
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise UserError(
            f"correlation cannot have patches of {kernel_size} rows",
            remedy="give an odd number, so that a patch has a centre",
        )
    given = {
        "max_displacement": (max_displacement, 0),
        "stride1": (stride1, 1),
        "stride2": (stride2, 1),
        "padding": (padding, 0),
    }
    for name, (value, least) in given.items():
        if value < least:
            raise UserError(
                f"correlation cannot have the {name} {value}",
                remedy=f"give a number >= {least}",
            )


def _sample_correlation(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    shape = (draws.extent(0), draws.integer(1, 3), *draws.pair(5, 6))
    attributes = {
        "kernel_size": draws.choice((1, 1, 3)),
        "max_displacement": draws.integer(0, 2),
        "stride1": draws.integer(1, 2),
        "stride2": draws.integer(1, 2),
        "padding": draws.integer(1, 2),
        "is_multiply": draws.flag(),
    }
    return Sample((draws.array(shape, dtype), draws.array(shape, dtype)), attributes)


@meaning_of(correlation, sample=_sample_correlation)
def correlation_numpy(
    first: Array,
    second: Array,
    *,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    padding: int = 0,
    is_multiply: bool = True,
) -> Array:
    borders = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    a = np.pad(widen(first), borders)
    b = np.pad(widen(second), borders)
    reach = max_displacement
    height = a.shape[2] - 2 * reach
    width = a.shape[3] - 2 * reach
    radius = reach // stride2
    planes = []
    for step in np.ndindex(2 * radius + 1, 2 * radius + 1):
        down, across = (reach + (place - radius) * stride2 for place in step)
        still = a[:, :, reach : reach + height, reach : reach + width]
        moved = b[:, :, down : down + height, across : across + width]
        terms = still * moved if is_multiply else abs(still - moved)
        edge = (kernel_size, kernel_size)
        patches = np.lib.stride_tricks.sliding_window_view(terms, edge, (2, 3))
        planes.append(patches[:, :, ::stride1, ::stride1].mean(axis=(1, 4, 5)))
    return np.stack(planes, axis=1).astype(first.dtype)
