"""Pooling to a given number of windows, which cover each spatial axis evenly.

Window i of `count` windows has the elements from floor(i * size / count) to
ceil((i + 1) * size / count). Windows overlap where the count does not divide the size.

Reference: PyTorch, torch.nn.AdaptiveAvgPool2d; TVM, topi.nn.adaptive_pool.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.pooling.even_windows import (
    adaptive_average,
    adaptive_average_numpy,
    adaptive_maximum,
    adaptive_maximum_numpy,
    sample_adaptive,
)
from refcomp.topi.shapes import Array


def adaptive_avg_pool1d(
    data: Tensor, *, output_size: Sequence[int], layout: str = "NCW"
) -> Tensor:
    """Return the mean of each of `output_size` windows, which cover the data evenly.

    Window i has the elements from floor(i * size / count) to ceil((i + 1) * size / count). NaN
    propagates.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of a float dtype.
            The spatial extents are constants of at least 1.
        output_size: the number of windows along each spatial axis, as a number >= 1.
        layout: NCW or NWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with `output_size` as spatial extents.

    Raises:
        UserError: `data` has another rank, does not hold floats, or has a spatial extent that is
            symbolic or 0; or `output_size` is ill-formed, or the layout is unknown.

    Reference: PyTorch, torch.nn.AdaptiveAvgPool1d; TVM, topi.nn.adaptive_pool.

    Example::

        >>> X = rc.placeholder((1, 1, 4), name="X")
        >>> Y = rc.topi.adaptive_avg_pool1d(X, output_size=(3,))
        >>> x = np.arange(4, dtype="float32").reshape((1, 1, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [0.5 1.5 2.5]
    """
    return adaptive_average("adaptive_avg_pool1d", data, output_size, layout, 1)


def _sample_adaptive_avg_pool1d(draws: Draws) -> Sample:
    return sample_adaptive(draws, 1, draws.float_dtype())


@meaning_of(adaptive_avg_pool1d, sample=_sample_adaptive_avg_pool1d)
def adaptive_avg_pool1d_numpy(
    data: Array, *, output_size: Sequence[int], layout: str = "NCW"
) -> Array:
    return adaptive_average_numpy(data, output_size, layout)


def adaptive_avg_pool2d(
    data: Tensor, *, output_size: Sequence[int], layout: str = "NCHW"
) -> Tensor:
    """Return the mean of each of `output_size` windows, which cover the data evenly.

    Window i has the elements from floor(i * size / count) to ceil((i + 1) * size / count). NaN
    propagates.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of a float dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
            The spatial extents are constants of at least 1.
        output_size: the number of windows along each spatial axis, as two numbers >= 1.
        layout: NCHW, NHWC or NCHWc.

    Returns:
        A tensor of the dtype of `data` and of its shape, with `output_size` as spatial extents.

    Raises:
        UserError: `data` has another rank, does not hold floats, or has a spatial extent that is
            symbolic or 0; or `output_size` is ill-formed, or the layout is unknown.

    Reference: PyTorch, torch.nn.AdaptiveAvgPool2d; TVM, topi.nn.adaptive_pool.

    Example::

        >>> X = rc.placeholder((1, 1, 2, 4), name="X")
        >>> Y = rc.topi.adaptive_avg_pool2d(X, output_size=(1, 3))
        >>> x = np.arange(8, dtype="float32").reshape((1, 1, 2, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [2.5 3.5 4.5]
    """
    return adaptive_average("adaptive_avg_pool2d", data, output_size, layout, 2)


def _sample_adaptive_avg_pool2d(draws: Draws) -> Sample:
    return sample_adaptive(draws, 2, draws.float_dtype())


@meaning_of(adaptive_avg_pool2d, sample=_sample_adaptive_avg_pool2d)
def adaptive_avg_pool2d_numpy(
    data: Array, *, output_size: Sequence[int], layout: str = "NCHW"
) -> Array:
    return adaptive_average_numpy(data, output_size, layout)


def adaptive_avg_pool3d(
    data: Tensor, *, output_size: Sequence[int], layout: str = "NCDHW"
) -> Tensor:
    """Return the mean of each of `output_size` windows, which cover the data evenly.

    Window i has the elements from floor(i * size / count) to ceil((i + 1) * size / count). NaN
    propagates.

    Args:
        data: [n, c, d, h, w], or [n, d, h, w, c] in the layout NDHWC, of a float dtype.
            The spatial extents are constants of at least 1.
        output_size: the number of windows along each spatial axis, as three numbers >= 1.
        layout: NCDHW or NDHWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with `output_size` as spatial extents.

    Raises:
        UserError: `data` has another rank, does not hold floats, or has a spatial extent that is
            symbolic or 0; or `output_size` is ill-formed, or the layout is unknown.

    Reference: PyTorch, torch.nn.AdaptiveAvgPool3d; TVM, topi.nn.adaptive_pool.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 2, 4), name="X")
        >>> Y = rc.topi.adaptive_avg_pool3d(X, output_size=(1, 1, 3))
        >>> x = np.arange(8, dtype="float32").reshape((1, 1, 1, 2, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [2.5 3.5 4.5]
    """
    return adaptive_average("adaptive_avg_pool3d", data, output_size, layout, 3)


def _sample_adaptive_avg_pool3d(draws: Draws) -> Sample:
    return sample_adaptive(draws, 3, draws.float_dtype())


@meaning_of(adaptive_avg_pool3d, sample=_sample_adaptive_avg_pool3d)
def adaptive_avg_pool3d_numpy(
    data: Array, *, output_size: Sequence[int], layout: str = "NCDHW"
) -> Array:
    return adaptive_average_numpy(data, output_size, layout)


def adaptive_max_pool1d(
    data: Tensor, *, output_size: Sequence[int], layout: str = "NCW"
) -> Tensor:
    """Return the maximum of each of `output_size` windows, which cover the data evenly.

    Window i has the elements from floor(i * size / count) to ceil((i + 1) * size / count). NaN
    propagates.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of any numeric dtype.
            The spatial extents are constants of at least 1.
        output_size: the number of windows along each spatial axis, as a number >= 1.
        layout: NCW or NWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with `output_size` as spatial extents.

    Raises:
        UserError: `data` has another rank, or has a spatial extent that is
            symbolic or 0; or `output_size` is ill-formed, or the layout is unknown.

    Reference: PyTorch, torch.nn.AdaptiveMaxPool1d; TVM, topi.nn.adaptive_pool.

    Example::

        >>> X = rc.placeholder((1, 1, 4), name="X")
        >>> Y = rc.topi.adaptive_max_pool1d(X, output_size=(3,))
        >>> x = np.arange(4, dtype="float32").reshape((1, 1, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [1. 2. 3.]
    """
    return adaptive_maximum("adaptive_max_pool1d", data, output_size, layout, 1)


def _sample_adaptive_max_pool1d(draws: Draws) -> Sample:
    return sample_adaptive(draws, 1, draws.number_dtype())


@meaning_of(adaptive_max_pool1d, sample=_sample_adaptive_max_pool1d)
def adaptive_max_pool1d_numpy(
    data: Array, *, output_size: Sequence[int], layout: str = "NCW"
) -> Array:
    return adaptive_maximum_numpy(data, output_size, layout)


def adaptive_max_pool2d(
    data: Tensor, *, output_size: Sequence[int], layout: str = "NCHW"
) -> Tensor:
    """Return the maximum of each of `output_size` windows, which cover the data evenly.

    Window i has the elements from floor(i * size / count) to ceil((i + 1) * size / count). NaN
    propagates.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of any numeric dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
            The spatial extents are constants of at least 1.
        output_size: the number of windows along each spatial axis, as two numbers >= 1.
        layout: NCHW, NHWC or NCHWc.

    Returns:
        A tensor of the dtype of `data` and of its shape, with `output_size` as spatial extents.

    Raises:
        UserError: `data` has another rank, or has a spatial extent that is
            symbolic or 0; or `output_size` is ill-formed, or the layout is unknown.

    Reference: PyTorch, torch.nn.AdaptiveMaxPool2d; TVM, topi.nn.adaptive_pool.

    Example::

        >>> X = rc.placeholder((1, 1, 2, 4), name="X")
        >>> Y = rc.topi.adaptive_max_pool2d(X, output_size=(1, 3))
        >>> x = np.arange(8, dtype="float32").reshape((1, 1, 2, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [5. 6. 7.]
    """
    return adaptive_maximum("adaptive_max_pool2d", data, output_size, layout, 2)


def _sample_adaptive_max_pool2d(draws: Draws) -> Sample:
    return sample_adaptive(draws, 2, draws.number_dtype())


@meaning_of(adaptive_max_pool2d, sample=_sample_adaptive_max_pool2d)
def adaptive_max_pool2d_numpy(
    data: Array, *, output_size: Sequence[int], layout: str = "NCHW"
) -> Array:
    return adaptive_maximum_numpy(data, output_size, layout)


def adaptive_max_pool3d(
    data: Tensor, *, output_size: Sequence[int], layout: str = "NCDHW"
) -> Tensor:
    """Return the maximum of each of `output_size` windows, which cover the data evenly.

    Window i has the elements from floor(i * size / count) to ceil((i + 1) * size / count). NaN
    propagates.

    Args:
        data: [n, c, d, h, w], or [n, d, h, w, c] in the layout NDHWC, of any numeric dtype.
            The spatial extents are constants of at least 1.
        output_size: the number of windows along each spatial axis, as three numbers >= 1.
        layout: NCDHW or NDHWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with `output_size` as spatial extents.

    Raises:
        UserError: `data` has another rank, or has a spatial extent that is
            symbolic or 0; or `output_size` is ill-formed, or the layout is unknown.

    Reference: PyTorch, torch.nn.AdaptiveMaxPool3d; TVM, topi.nn.adaptive_pool.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 2, 4), name="X")
        >>> Y = rc.topi.adaptive_max_pool3d(X, output_size=(1, 1, 3))
        >>> x = np.arange(8, dtype="float32").reshape((1, 1, 1, 2, 4))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> print(y.ravel())
        [5. 6. 7.]
    """
    return adaptive_maximum("adaptive_max_pool3d", data, output_size, layout, 3)


def _sample_adaptive_max_pool3d(draws: Draws) -> Sample:
    return sample_adaptive(draws, 3, draws.number_dtype())


@meaning_of(adaptive_max_pool3d, sample=_sample_adaptive_max_pool3d)
def adaptive_max_pool3d_numpy(
    data: Array, *, output_size: Sequence[int], layout: str = "NCDHW"
) -> Array:
    return adaptive_maximum_numpy(data, output_size, layout)
