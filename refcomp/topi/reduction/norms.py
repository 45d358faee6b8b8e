"""Norms of elements along axes. Reference: ONNX ReduceL1 and ReduceL2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.te import maths, reducer
from refcomp.te.tensor import Tensor
from refcomp.topi.operator import meaning_of
from refcomp.topi.reduction.reduce import (
    as_numpy_axis,
    reduce_elements,
    reduction_of_floats,
    reduction_of_numbers,
)
from refcomp.topi.shapes import Array, require_float, widen


def l1_norm(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum of the absolute values of the elements along axes.

    It is 0 without elements. NaN propagates. Integers wrap. f16 and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats or integers, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of numbers, or an axis does not exist or is named twice.

    Reference: ONNX ReduceL1.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.l1_norm(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[1, -2, 3], [-4, 5, -6]], "float32")}))
        [ 6. 15.]
    """
    return reduce_elements(
        data,
        reducer.sum,
        axis=axis,
        keepdims=keepdims,
        name="l1_norm",
        before=maths.abs,
    )


@meaning_of(l1_norm, pattern="reduction", sample=reduction_of_numbers)
def l1_norm_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    wide = np.abs(widen(data))
    total = np.sum(wide, axis=as_numpy_axis(axis), keepdims=keepdims, dtype=wide.dtype)
    return np.asarray(total, data.dtype)


def l2_norm(
    data: Tensor,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the square root of the sum of squares along axes.

    It is 0 without elements. NaN propagates. The squares may overflow, which gives infinity. f16
    and bf16 are accumulated in f32.

    Args:
        data: a tensor of floats, of any shape.
        axis: the axis or the axes to reduce; a negative one counts from the last. By default, all
            axes are reduced. An empty list reduces none.
        keepdims: True to keep each reduced axis with extent 1.

    Returns:
        A tensor of the dtype of `data`.

    Raises:
        UserError: `data` is not a tensor of floats, or an axis does not exist or is named twice.

    Reference: ONNX ReduceL2.

    Example::

        >>> A = rc.placeholder((2, 3), "float32", name="A")
        >>> B = rc.topi.l2_norm(A, axis=1)
        >>> print(*rc.oracle.evaluate([B], {A: np.array([[3, 4, 0], [2, 3, 6]], "float32")}))
        [5. 7.]
    """
    require_float(data, "l2_norm")
    return reduce_elements(
        data,
        reducer.sum,
        axis=axis,
        keepdims=keepdims,
        name="l2_norm",
        before=lambda x: x * x,
        after=maths.sqrt,
    )


@meaning_of(l2_norm, pattern="reduction", sample=reduction_of_floats)
def l2_norm_numpy(
    data: Array,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    squares = np.square(widen(data))
    total = np.sum(squares, axis=as_numpy_axis(axis), keepdims=keepdims)
    return np.asarray(np.sqrt(total), data.dtype)
