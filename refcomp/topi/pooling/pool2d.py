"""Pooling over two spatial axes: the maximum, the mean or a norm of each window.

Data is [n, c, h, w] in the layout NCHW, or [n, h, w, c] in the layout NHWC. The result
has the same dtype.

Reference: ONNX MaxPool, AveragePool and LpPool.
"""

from __future__ import annotations

from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.pooling.windows import (
    average_windows,
    avg_pool_numpy,
    lp_pool_numpy,
    make_windows,
    max_pool_numpy,
    max_windows,
    norm_windows,
    sample_images,
    sample_windows,
)
from refcomp.topi.shapes import Array, Pair, require_float
from refcomp.topi.spatial_padding import Padding


def max_pool2d(
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
    ceil_mode: bool = False,
) -> Tensor:
    """Return the maximum of each window. Padding is never the maximum.

    NaN propagates. A window of nothing but padding gives minus infinity, or the least integer.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of any numeric dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
        kernel: extents of a window down and across.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right, each less than a window.
        dilation: elements down and across, from one element of a window to the next.
        layout: NCHW, NHWC or NCHWc.
        ceil_mode: True for a last window that reaches beyond the padding, if it starts before it.

    Returns:
        A tensor of the rank and dtype of `data`, with an element for each window.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX MaxPool.

    Example::

        >>> X = rc.placeholder((1, 1, 4, 4), name="X")
        >>> Y = rc.topi.max_pool2d(X, kernel=(2, 2), strides=(2, 2))
        >>> x = np.arange(16, dtype="float32").reshape((1, 1, 4, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [ 5.  7. 13. 15.]
    """
    windows = make_windows(
        "max_pool2d",
        data,
        rank=2,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
    )
    return max_windows(data, windows)


def _sample_max_pool2d(draws: Draws) -> Sample:
    attributes = sample_windows(draws, 2)
    data = sample_images(draws, attributes, draws.number_dtype())
    return Sample((data,), attributes)


@meaning_of(max_pool2d, sample=_sample_max_pool2d)
def max_pool2d_numpy(
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
    ceil_mode: bool = False,
) -> Array:
    return max_pool_numpy(
        data,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
    )


def avg_pool2d(
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """Return the mean of each window.

    The sum of a window is divided by the number of its elements. Padding, which is 0, counts only
    with `count_include_pad`. NaN propagates. A window without elements gives NaN.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of a float dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
        kernel: extents of a window down and across.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right; any number.
        dilation: elements down and across, from one element of a window to the next.
        layout: NCHW, NHWC or NCHWc.
        ceil_mode: True for a last window that reaches beyond the padding, if it starts before it.
        count_include_pad: True if padding counts as elements. What is beyond it never counts.

    Returns:
        A tensor of the rank and dtype of `data`, with an element for each window.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX AveragePool.

    Example::

        >>> X = rc.placeholder((1, 1, 4, 4), name="X")
        >>> Y = rc.topi.avg_pool2d(X, kernel=(2, 2), strides=(2, 2))
        >>> x = np.arange(16, dtype="float32").reshape((1, 1, 4, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [ 2.5  4.5 10.5 12.5]
    """
    require_float(data, "avg_pool2d")
    windows = make_windows(
        "avg_pool2d",
        data,
        rank=2,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
        may_be_empty=True,
    )
    return average_windows(data, windows, count_include_pad)


def _sample_avg_pool2d(draws: Draws) -> Sample:
    attributes = sample_windows(draws, 2, may_be_empty=True)
    data = sample_images(draws, attributes, draws.float_dtype())
    attributes["count_include_pad"] = draws.flag()
    return Sample((data,), attributes)


@meaning_of(avg_pool2d, sample=_sample_avg_pool2d)
def avg_pool2d_numpy(
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    return avg_pool_numpy(
        data,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )


def lp_pool2d(
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
    ceil_mode: bool = False,
    p: int = 2,
) -> Tensor:
    """Return the norm of each window: (sum of |x| ** p) ** (1 / p).

    Padding is 0. Floats of 16 bits are added up in f32. 1 / p is rounded to the dtype of the sum,
    which overflows where |x| ** p does. NaN propagates.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of a float dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
        kernel: extents of a window down and across.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right, each less than a window.
        dilation: elements down and across, from one element of a window to the next.
        layout: NCHW, NHWC or NCHWc.
        ceil_mode: True for a last window that reaches beyond the padding, if it starts before it.
        p: the degree of the norm, at least 1.

    Returns:
        A tensor of the rank and dtype of `data`, with an element for each window.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX LpPool.

    Example::

        >>> X = rc.placeholder((1, 1, 4, 4), name="X")
        >>> Y = rc.topi.lp_pool2d(X, kernel=(2, 2), strides=(2, 2), p=1)
        >>> x = np.arange(16, dtype="float32").reshape((1, 1, 4, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [10. 18. 42. 50.]
    """
    windows = make_windows(
        "lp_pool2d",
        data,
        rank=2,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
    )
    return norm_windows(data, windows, p)


def _sample_lp_pool2d(draws: Draws) -> Sample:
    attributes = sample_windows(draws, 2)
    data = sample_images(draws, attributes, draws.float_dtype())
    attributes["p"] = draws.integer(1, 3)
    return Sample((data,), attributes)


@meaning_of(lp_pool2d, sample=_sample_lp_pool2d)
def lp_pool2d_numpy(
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    dilation: Pair = (1, 1),
    layout: str = "NCHW",
    ceil_mode: bool = False,
    p: int = 2,
) -> Array:
    return lp_pool_numpy(
        data,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
        p=p,
    )
