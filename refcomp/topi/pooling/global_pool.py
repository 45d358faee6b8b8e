"""Pooling over all elements of each channel of each sample.

Reference: ONNX GlobalAveragePool, GlobalMaxPool and GlobalLpPool.
"""

from __future__ import annotations

from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.pooling.whole_channels import (
    global_average,
    global_average_numpy,
    global_maximum,
    global_maximum_numpy,
    global_norm,
    global_norm_numpy,
    sample_whole,
)
from refcomp.topi.shapes import Array


def global_avg_pool1d(data: Tensor, *, layout: str = "NCW") -> Tensor:
    """Return the mean of each channel of each sample.

    The result is NaN without elements. NaN propagates.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of a float dtype.
        layout: NCW or NWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank or does not hold floats, or the layout is unknown.

    Reference: ONNX GlobalAveragePool.

    Example::

        >>> X = rc.placeholder((1, 2, 2), name="X")
        >>> Y = rc.topi.global_avg_pool1d(X)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1), [0.5, 2.5])
    """
    return global_average("global_avg_pool1d", data, 1, layout)


def _sample_global_avg_pool1d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 1, draws.float_dtype())
    return Sample((data,), {"layout": layout})


@meaning_of(global_avg_pool1d, sample=_sample_global_avg_pool1d)
def global_avg_pool1d_numpy(data: Array, *, layout: str = "NCW") -> Array:
    return global_average_numpy(data, layout)


def global_avg_pool2d(data: Tensor, *, layout: str = "NCHW") -> Tensor:
    """Return the mean of each channel of each sample.

    The result is NaN without elements. NaN propagates.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of a float dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
        layout: NCHW, NHWC or NCHWc.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank or does not hold floats, or the layout is unknown.

    Reference: ONNX GlobalAveragePool.

    Example::

        >>> X = rc.placeholder((1, 2, 1, 2), name="X")
        >>> Y = rc.topi.global_avg_pool2d(X)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 1, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1, 1), [0.5, 2.5])
    """
    return global_average("global_avg_pool2d", data, 2, layout)


def _sample_global_avg_pool2d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 2, draws.float_dtype())
    return Sample((data,), {"layout": layout})


@meaning_of(global_avg_pool2d, sample=_sample_global_avg_pool2d)
def global_avg_pool2d_numpy(data: Array, *, layout: str = "NCHW") -> Array:
    return global_average_numpy(data, layout)


def global_avg_pool3d(data: Tensor, *, layout: str = "NCDHW") -> Tensor:
    """Return the mean of each channel of each sample.

    The result is NaN without elements. NaN propagates.

    Args:
        data: [n, c, d, h, w], or [n, d, h, w, c] in the layout NDHWC, of a float dtype.
        layout: NCDHW or NDHWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank or does not hold floats, or the layout is unknown.

    Reference: ONNX GlobalAveragePool.

    Example::

        >>> X = rc.placeholder((1, 2, 1, 1, 2), name="X")
        >>> Y = rc.topi.global_avg_pool3d(X)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 1, 1, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1, 1, 1), [0.5, 2.5])
    """
    return global_average("global_avg_pool3d", data, 3, layout)


def _sample_global_avg_pool3d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 3, draws.float_dtype())
    return Sample((data,), {"layout": layout})


@meaning_of(global_avg_pool3d, sample=_sample_global_avg_pool3d)
def global_avg_pool3d_numpy(data: Array, *, layout: str = "NCDHW") -> Array:
    return global_average_numpy(data, layout)


def global_max_pool1d(data: Tensor, *, layout: str = "NCW") -> Tensor:
    """Return the maximum of each channel of each sample.

    Without elements, the result is minus infinity, or the least integer. NaN propagates.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of any numeric dtype.
        layout: NCW or NWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank, or the layout is unknown.

    Reference: ONNX GlobalMaxPool.

    Example::

        >>> X = rc.placeholder((1, 2, 2), name="X")
        >>> Y = rc.topi.global_max_pool1d(X)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1), [1.0, 3.0])
    """
    return global_maximum("global_max_pool1d", data, 1, layout)


def _sample_global_max_pool1d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 1, draws.number_dtype())
    return Sample((data,), {"layout": layout})


@meaning_of(global_max_pool1d, sample=_sample_global_max_pool1d)
def global_max_pool1d_numpy(data: Array, *, layout: str = "NCW") -> Array:
    return global_maximum_numpy(data, layout)


def global_max_pool2d(data: Tensor, *, layout: str = "NCHW") -> Tensor:
    """Return the maximum of each channel of each sample.

    Without elements, the result is minus infinity, or the least integer. NaN propagates.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of any numeric dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
        layout: NCHW, NHWC or NCHWc.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank, or the layout is unknown.

    Reference: ONNX GlobalMaxPool.

    Example::

        >>> X = rc.placeholder((1, 2, 1, 2), name="X")
        >>> Y = rc.topi.global_max_pool2d(X)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 1, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1, 1), [1.0, 3.0])
    """
    return global_maximum("global_max_pool2d", data, 2, layout)


def _sample_global_max_pool2d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 2, draws.number_dtype())
    return Sample((data,), {"layout": layout})


@meaning_of(global_max_pool2d, sample=_sample_global_max_pool2d)
def global_max_pool2d_numpy(data: Array, *, layout: str = "NCHW") -> Array:
    return global_maximum_numpy(data, layout)


def global_max_pool3d(data: Tensor, *, layout: str = "NCDHW") -> Tensor:
    """Return the maximum of each channel of each sample.

    Without elements, the result is minus infinity, or the least integer. NaN propagates.

    Args:
        data: [n, c, d, h, w], or [n, d, h, w, c] in the layout NDHWC, of any numeric dtype.
        layout: NCDHW or NDHWC.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank, or the layout is unknown.

    Reference: ONNX GlobalMaxPool.

    Example::

        >>> X = rc.placeholder((1, 2, 1, 1, 2), name="X")
        >>> Y = rc.topi.global_max_pool3d(X)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 1, 1, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1, 1, 1), [1.0, 3.0])
    """
    return global_maximum("global_max_pool3d", data, 3, layout)


def _sample_global_max_pool3d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 3, draws.number_dtype())
    return Sample((data,), {"layout": layout})


@meaning_of(global_max_pool3d, sample=_sample_global_max_pool3d)
def global_max_pool3d_numpy(data: Array, *, layout: str = "NCDHW") -> Array:
    return global_maximum_numpy(data, layout)


def global_lp_pool1d(data: Tensor, *, layout: str = "NCW", p: int = 2) -> Tensor:
    """Return the norm of each channel of each sample.

    The norm is (sum of |x| ** p) ** (1 / p), and 0 without elements. Floats of 16
    bits are added up in f32, and 1 / p is rounded to the dtype of the sum. NaN propagates.

    Args:
        data: [n, c, w], or [n, w, c] in the layout NWC, of a float dtype.
        layout: NCW or NWC.
        p: the degree of the norm, at least 1.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank or does not hold floats, the layout is unknown,
            or p is less than 1.

    Reference: ONNX GlobalLpPool.

    Example::

        >>> X = rc.placeholder((1, 2, 2), name="X")
        >>> Y = rc.topi.global_lp_pool1d(X, p=1)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1), [1.0, 5.0])
    """
    return global_norm("global_lp_pool1d", data, 1, layout, p)


def _sample_global_lp_pool1d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 1, draws.float_dtype())
    return Sample((data,), {"layout": layout, "p": draws.integer(1, 3)})


@meaning_of(global_lp_pool1d, sample=_sample_global_lp_pool1d)
def global_lp_pool1d_numpy(data: Array, *, layout: str = "NCW", p: int = 2) -> Array:
    return global_norm_numpy(data, layout, p)


def global_lp_pool2d(data: Tensor, *, layout: str = "NCHW", p: int = 2) -> Tensor:
    """Return the norm of each channel of each sample.

    The norm is (sum of |x| ** p) ** (1 / p), and 0 without elements. Floats of 16
    bits are added up in f32, and 1 / p is rounded to the dtype of the sum. NaN propagates.

    Args:
        data: [n, c, h, w], or [n, h, w, c] in the layout NHWC, of a float dtype. In the layout
            NCHWc it is [n, channels / block, h, w, block].
        layout: NCHW, NHWC or NCHWc.
        p: the degree of the norm, at least 1.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank or does not hold floats, the layout is unknown,
            or p is less than 1.

    Reference: ONNX GlobalLpPool.

    Example::

        >>> X = rc.placeholder((1, 2, 1, 2), name="X")
        >>> Y = rc.topi.global_lp_pool2d(X, p=1)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 1, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1, 1), [1.0, 5.0])
    """
    return global_norm("global_lp_pool2d", data, 2, layout, p)


def _sample_global_lp_pool2d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 2, draws.float_dtype())
    return Sample((data,), {"layout": layout, "p": draws.integer(1, 3)})


@meaning_of(global_lp_pool2d, sample=_sample_global_lp_pool2d)
def global_lp_pool2d_numpy(data: Array, *, layout: str = "NCHW", p: int = 2) -> Array:
    return global_norm_numpy(data, layout, p)


def global_lp_pool3d(data: Tensor, *, layout: str = "NCDHW", p: int = 2) -> Tensor:
    """Return the norm of each channel of each sample.

    The norm is (sum of |x| ** p) ** (1 / p), and 0 without elements. Floats of 16
    bits are added up in f32, and 1 / p is rounded to the dtype of the sum. NaN propagates.

    Args:
        data: [n, c, d, h, w], or [n, d, h, w, c] in the layout NDHWC, of a float dtype.
        layout: NCDHW or NDHWC.
        p: the degree of the norm, at least 1.

    Returns:
        A tensor of the dtype of `data` and of its shape, with the spatial extents 1.

    Raises:
        UserError: `data` has another rank or does not hold floats, the layout is unknown,
            or p is less than 1.

    Reference: ONNX GlobalLpPool.

    Example::

        >>> X = rc.placeholder((1, 2, 1, 1, 2), name="X")
        >>> Y = rc.topi.global_lp_pool3d(X, p=1)
        >>> x = np.arange(4, dtype="float32").reshape((1, 2, 1, 1, 2))
        >>> (y,) = rc.oracle.evaluate([Y], {X: x})
        >>> y.shape, y.ravel().tolist()
        ((1, 2, 1, 1, 1), [1.0, 5.0])
    """
    return global_norm("global_lp_pool3d", data, 3, layout, p)


def _sample_global_lp_pool3d(draws: Draws) -> Sample:
    layout, data = sample_whole(draws, 3, draws.float_dtype())
    return Sample((data,), {"layout": layout, "p": draws.integer(1, 3)})


@meaning_of(global_lp_pool3d, sample=_sample_global_lp_pool3d)
def global_lp_pool3d_numpy(data: Array, *, layout: str = "NCDHW", p: int = 2) -> Array:
    return global_norm_numpy(data, layout, p)
