"""Gradients of poolings over two spatial axes, as operators of their own.

Each element of the result adds up what the windows that cover it contribute.

Reference: TVM, topi.nn.pool_grad.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.pooling.indices import (
    flat_index,
    max_pool_with_indices_numpy,
    places_of_maxima,
    reduce_covering,
)
from refcomp.topi.pooling.pool2d import max_pool2d_numpy
from refcomp.topi.pooling.windows import (
    PoolWindows,
    make_windows,
    max_windows,
    of_array,
    sample_images,
    sample_windows,
    windows_numpy,
)
from refcomp.topi.shapes import (
    Array,
    Pair,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import REDUCTION


def _make_windows(
    operator: str,
    grad: Tensor,
    data: Tensor,
    kernel: Pair,
    strides: Pair,
    padding: Padding,
    ceil_mode: bool,
    may_be_empty: bool = False,
) -> PoolWindows:
    """Return the windows. Raise UserError for operands that do not fit."""
    require_float(data, operator)
    windows = make_windows(
        operator,
        data,
        rank=2,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=(1, 1),
        layout="NCHW",
        ceil_mode=ceil_mode,
        may_be_empty=may_be_empty,
    )
    require_one_dtype(operator, data, grad)
    require_rank(grad, 4, operator, "grad")
    expected = windows.output_shape(extents(data))
    for actual, extent in zip(extents(grad), expected, strict=True):
        require_extent(actual, extent, operator, "grad", tensors=(data, grad))
    return windows


def _add_contributions(
    windows: PoolWindows,
    grad: Tensor,
    data: Tensor,
    term: Callable[[tuple[Expr, ...], tuple[Expr, ...]], Expr],
) -> Tensor:
    """Return for each element the sum of term(element, window) over the windows that cover it."""
    counts = [
        require_constant(size, f"{windows.operator}: a spatial extent")
        for size in extents(grad)[2:]
    ]
    zero = const(0, data.dtype)

    def element(*index: Expr) -> Expr:
        def contribution(window: tuple[Expr, ...]) -> Expr:
            return term(index, window)

        return reduce_covering(windows, counts, index, contribution, zero, reducer.sum)

    return compute(data.shape, element, name=windows.operator, tag=REDUCTION)


def max_pool2d_grad(
    grad: Tensor,
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    ceil_mode: bool = False,
) -> Tensor:
    """Return the gradient of `max_pool2d`: each window's goes to its first greatest element.

    A NaN is greater than all numbers.

    Args:
        grad: [n, c, h', w'], the gradient of the result of the pooling, of the dtype of `data`.
        data: floats [n, c, h, w], the data that was pooled.
        kernel: extents of a window down and across.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right, each less than a window.
        ceil_mode: True if a last window may reach beyond the padding.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: an argument is not as described, or `grad` has another shape than the result of
            the pooling. Its spatial extents are constants.

    Reference: TVM, topi.nn.pool_grad.

    Example::

        >>> G, X = rc.placeholder((1, 1, 1, 2), name="G"), rc.placeholder((1, 1, 1, 3), name="X")
        >>> Y = rc.topi.max_pool2d_grad(G, X, kernel=(1, 2))
        >>> g, x = np.array([[[[1, 10]]]], "float32"), np.array([[[[0, 5, 2]]]], "float32")
        >>> rc.oracle.evaluate([Y], {G: g, X: x})[0].tolist()
        [[[[0.0, 11.0, 0.0]]]]
    """
    operator = "max_pool2d_grad"
    windows = _make_windows(operator, grad, data, kernel, strides, padding, ceil_mode)
    places = places_of_maxima(data, max_windows(data, windows), windows)

    def term(index: tuple[Expr, ...], window: tuple[Expr, ...]) -> Expr:
        is_place = places[window] == flat_index(index, data.shape)
        return maths.select(is_place, grad[window], const(0, data.dtype))

    return _add_contributions(windows, grad, data, term)


def _sample_gradient(draws: Draws) -> Sample:
    attributes = {**sample_windows(draws, 2), "layout": "NCHW", "dilation": (1, 1)}
    data = sample_images(draws, attributes, draws.float_dtype())
    del attributes["layout"], attributes["dilation"]
    pooled = max_pool2d_numpy(data, **attributes)  # type: ignore[arg-type]
    grad = draws.array(pooled.shape, str(data.dtype), special=False)
    return Sample((grad, data), attributes)


@meaning_of(max_pool2d_grad, sample=_sample_gradient)
def max_pool2d_grad_numpy(
    grad: Array,
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    ceil_mode: bool = False,
) -> Array:
    _, places = max_pool_with_indices_numpy(
        data,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=(1, 1),
        ceil_mode=ceil_mode,
    )
    result = np.zeros(data.size)
    is_element = places >= 0
    np.add.at(result, places[is_element], widen(grad)[is_element])
    return result.reshape(data.shape).astype(data.dtype)


def avg_pool2d_grad(
    grad: Tensor,
    data: Tensor,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """Return the gradient of `avg_pool2d`: each window's is shared by its elements.

    NaN and infinities of `grad` reach all elements of their window.

    Args:
        grad: [n, c, h', w'], the gradient of the result of the pooling, of the dtype of `data`.
        data: floats [n, c, h, w], of which only the shape and dtype matter.
        kernel: extents of a window down and across.
        strides: elements down and across, from one window to the next.
        padding: elements added at the top, left, bottom and right; any number.
        ceil_mode: True if a last window may reach beyond the padding.
        count_include_pad: True if padding counts as elements.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: an argument is not as described, or `grad` has another shape than the result of
            the pooling. Its spatial extents are constants.

    Reference: TVM, topi.nn.pool_grad.

    Example::

        >>> G, X = rc.placeholder((1, 1, 1, 2), name="G"), rc.placeholder((1, 1, 1, 3), name="X")
        >>> Y = rc.topi.avg_pool2d_grad(G, X, kernel=(1, 2))
        >>> g, x = np.array([[[[1, 10]]]], "float32"), np.zeros((1, 1, 1, 3), "float32")
        >>> rc.oracle.evaluate([Y], {G: g})[0].tolist()
        [[[[0.5, 5.5, 5.0]]]]
    """
    operator = "avg_pool2d_grad"
    windows = _make_windows(
        operator, grad, data, kernel, strides, padding, ceil_mode, may_be_empty=True
    )

    def term(index: tuple[Expr, ...], window: tuple[Expr, ...]) -> Expr:
        count = windows.count(data, window, count_include_pad)
        return grad[window] / cast(data.dtype, count)

    return _add_contributions(windows, grad, data, term)


def _sample_avg_pool2d_grad(draws: Draws) -> Sample:
    sample = _sample_gradient(draws)
    attributes = {**sample.attributes, "count_include_pad": draws.flag()}
    return Sample(sample.operands, attributes)


@meaning_of(avg_pool2d_grad, sample=_sample_avg_pool2d_grad)
def avg_pool2d_grad_numpy(
    grad: Array,
    data: Array,
    *,
    kernel: Pair,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    windows = of_array(data, kernel, strides, padding, (1, 1), "NCHW", ceil_mode)
    ones = np.ones(data.shape)
    count = np.add.reduce(windows_numpy(ones, windows, float(count_include_pad), 0))
    with np.errstate(divide="ignore", invalid="ignore"):  # of a window without elements
        share = widen(grad) / count
    own = np.arange(data.size).reshape(data.shape)
    result = np.zeros(data.size)
    for places in windows_numpy(own, windows, -1):
        is_element = places >= 0
        np.add.at(result, places[is_element], share[is_element])
    return result.reshape(data.shape).astype(data.dtype)
