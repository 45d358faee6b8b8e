"""Pooling over one spatial axis: the maximum, the mean or a norm of each window.

Data is [n, c, w] in the layout NCW, or [n, w, c] in the layout NWC. The result
has the same dtype.

Reference: ONNX MaxPool, AveragePool and LpPool.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from refcomp.topi.shapes import Array, require_float


def max_pool1d(
    data: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    layout: str = "NCW",
    ceil_mode: bool = False,
) -> Tensor:
    """Return the maximum of each window. Padding is never the maximum.

    NaN propagates. A window of nothing but padding gives minus infinity, or the least integer.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of any numeric dtype.
        kernel: the extent of a window, as a tuple of one number, as are the next ones.
        strides: elements from one window to the next.
        padding: elements added at the beginning and at the end, each less than a window.
        dilation: elements from one element of a window to the next.
        layout: NCW or NWC.
        ceil_mode: True for a last window that reaches beyond the padding, if it starts before it.

    Returns:
        A tensor of the rank and dtype of `data`, with an element for each window.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX MaxPool.

    Example::

        >>> X = rc.placeholder((1, 1, 4), name="X")
        >>> Y = rc.topi.max_pool1d(X, kernel=(2,), strides=(2,))
        >>> x = np.arange(4, dtype="float32").reshape((1, 1, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [1. 3.]
    """
    windows = make_windows(
        "max_pool1d",
        data,
        rank=1,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
    )
    return max_windows(data, windows)


def _sample_max_pool1d(draws: Draws) -> Sample:
    attributes = sample_windows(draws, 1)
    data = sample_images(draws, attributes, draws.number_dtype())
    return Sample((data,), attributes)


@meaning_of(max_pool1d, sample=_sample_max_pool1d)
def max_pool1d_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    layout: str = "NCW",
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


def avg_pool1d(
    data: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    layout: str = "NCW",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """Return the mean of each window.

    The sum of a window is divided by the number of its elements. Padding, which is 0, counts only
    with `count_include_pad`. NaN propagates. A window without elements gives NaN.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of a float dtype.
        kernel: the extent of a window, as a tuple of one number, as are the next ones.
        strides: elements from one window to the next.
        padding: elements added at the beginning and at the end; any number.
        dilation: elements from one element of a window to the next.
        layout: NCW or NWC.
        ceil_mode: True for a last window that reaches beyond the padding, if it starts before it.
        count_include_pad: True if padding counts as elements. What is beyond it never counts.

    Returns:
        A tensor of the rank and dtype of `data`, with an element for each window.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX AveragePool.

    Example::

        >>> X = rc.placeholder((1, 1, 4), name="X")
        >>> Y = rc.topi.avg_pool1d(X, kernel=(2,), strides=(2,))
        >>> x = np.arange(4, dtype="float32").reshape((1, 1, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [0.5 2.5]
    """
    require_float(data, "avg_pool1d")
    windows = make_windows(
        "avg_pool1d",
        data,
        rank=1,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
        may_be_empty=True,
    )
    return average_windows(data, windows, count_include_pad)


def _sample_avg_pool1d(draws: Draws) -> Sample:
    attributes = sample_windows(draws, 1, may_be_empty=True)
    data = sample_images(draws, attributes, draws.float_dtype())
    attributes["count_include_pad"] = draws.flag()
    return Sample((data,), attributes)


@meaning_of(avg_pool1d, sample=_sample_avg_pool1d)
def avg_pool1d_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    layout: str = "NCW",
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


def lp_pool1d(
    data: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    layout: str = "NCW",
    ceil_mode: bool = False,
    p: int = 2,
) -> Tensor:
    """Return the norm of each window: (sum of |x| ** p) ** (1 / p).

    Padding is 0. Floats of 16 bits are added up in f32. 1 / p is rounded to the dtype of the sum,
    which overflows where |x| ** p does. NaN propagates.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of a float dtype.
        kernel: the extent of a window, as a tuple of one number, as are the next ones.
        strides: elements from one window to the next.
        padding: elements added at the beginning and at the end, each less than a window.
        dilation: elements from one element of a window to the next.
        layout: NCW or NWC.
        ceil_mode: True for a last window that reaches beyond the padding, if it starts before it.
        p: the degree of the norm, at least 1.

    Returns:
        A tensor of the rank and dtype of `data`, with an element for each window.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX LpPool.

    Example::

        >>> X = rc.placeholder((1, 1, 4), name="X")
        >>> Y = rc.topi.lp_pool1d(X, kernel=(2,), strides=(2,), p=1)
        >>> x = np.arange(4, dtype="float32").reshape((1, 1, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [1. 5.]
    """
    windows = make_windows(
        "lp_pool1d",
        data,
        rank=1,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=layout,
        ceil_mode=ceil_mode,
    )
    return norm_windows(data, windows, p)


def _sample_lp_pool1d(draws: Draws) -> Sample:
    attributes = sample_windows(draws, 1)
    data = sample_images(draws, attributes, draws.float_dtype())
    attributes["p"] = draws.integer(1, 3)
    return Sample((data,), attributes)


@meaning_of(lp_pool1d, sample=_sample_lp_pool1d)
def lp_pool1d_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    layout: str = "NCW",
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
