"""Results of operators for numpy arrays: the functions of `topi.testing`.

Each evaluates the computation of the classic operator by numpy, element by element. No code is
generated, and so a compiled result can be compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from refcomp.classic.operators import arrays, convolutions, networks, vision
from refcomp.classic.operators.arguments import Sizes, pair_of
from refcomp.foundation.errors import UserError
from refcomp.oracle import evaluate
from refcomp.te.operation import placeholder
from refcomp.te.tensor import Tensor
from refcomp.topi.contraction import fully_connected
from refcomp.topi.normalization import log_softmax, softmax

Array = NDArray[np.generic]


def evaluated(
    operator: Callable[..., Tensor], *args: object, **kwargs: object
) -> Array:
    """Return what an operator computes for numpy arrays.

    Args:
        operator: takes a tensor for each numpy array, and returns a tensor.
        *args: its arguments.
        **kwargs: its arguments by keyword.
    """
    feeds: dict[Tensor, Array] = {}

    def operand(value: object) -> object:
        if not isinstance(value, np.ndarray):
            return value
        tensor = placeholder(value.shape, str(value.dtype), name=f"arg{len(feeds)}")
        feeds[tensor] = value
        return tensor

    made = operator(
        *(operand(value) for value in args),
        **{name: operand(value) for name, value in kwargs.items()},
    )
    return evaluate([made], feeds)[0]


def conv2d_nchw_python(
    a_np: Array, w_np: Array, stride: Sizes, padding: Sizes | str, groups: int = 1
) -> Array:
    """Return the convolution of images [n, c, h, w]."""
    return evaluated(networks.group_conv2d_nchw, a_np, w_np, stride, padding, 1, groups)


def conv2d_hwcn_python(
    a_np: Array, w_np: Array, stride: Sizes, padding: Sizes | str
) -> Array:
    """Return the convolution of images [h, w, c, n]."""
    return evaluated(networks.conv2d_hwcn, a_np, w_np, stride, padding)


def conv2d_nhwc_python(
    a_np: Array, w_np: Array, stride: Sizes, padding: Sizes | str
) -> Array:
    """Return the convolution of images [n, h, w, c]."""
    return evaluated(networks.conv2d_nhwc, a_np, w_np, stride, padding)


def conv2d_transpose_nchw_python(
    a_np: Array, w_np: Array, stride: Sizes, padding: Sizes | str
) -> Array:
    """Return the transposed convolution of images [n, c, h, w]."""
    return evaluated(networks.conv2d_transpose_nchw, a_np, w_np, stride, padding)


def depthwise_conv2d_python_nchw(
    input_np: Array, filter_np: Array, stride: Sizes, padding: Sizes | str
) -> Array:
    """Return the convolution of each channel of images [n, c, h, w]."""
    operator = networks.depthwise_conv2d_nchw
    return evaluated(operator, input_np, filter_np, stride, padding)


def depthwise_conv2d_python_nhwc(
    input_np: Array, filter_np: Array, stride: Sizes, padding: Sizes | str
) -> Array:
    """Return the convolution of each channel of images [n, h, w, c]."""
    operator = networks.depthwise_conv2d_nhwc
    return evaluated(operator, input_np, filter_np, stride, padding)


def conv1d_ncw_python(
    a_np: Array, w_np: Array, stride: Sizes, padding: Sizes | str, dilation: Sizes
) -> Array:
    """Return the convolution of sequences [n, c, w]."""
    return evaluated(convolutions.conv1d, a_np, w_np, stride, padding, dilation)


def dilate_python(input_np: Array, strides: Sequence[int]) -> Array:
    """Return an array with zeros between neighbours."""
    return evaluated(networks.dilate, input_np, strides)


def softmax_python(a_np: Array) -> Array:
    """Return exp(a), divided by its sum along the last axis."""
    return evaluated(softmax.softmax, a_np)


def log_softmax_python(a_np: Array) -> Array:
    """Return the logarithm of `softmax_python`."""
    return evaluated(log_softmax.log_softmax, a_np)


def upsampling_python(data: Array, scale: Sizes, layout: str = "NCHW") -> Array:
    """Return images whose pixels are repeated down and across."""
    down, across = pair_of(scale, "the scale")
    return evaluated(networks.upsampling, data, down, across, layout)


def bilinear_resize_python(
    image: Array, out_size: Sizes, layout: str, align_corners: bool = True
) -> Array:
    """Return resized images, whose pixels are interpolated."""
    operator = vision.resize
    return evaluated(operator, image, out_size, layout, "bilinear", align_corners)


def reorg_python(a_np: Array, stride: int) -> Array:
    """Return images whose blocks of pixels are moved into channels."""
    return evaluated(vision.reorg, a_np, stride)


def roi_pool_nchw_python(
    a_np: Array, rois_np: Array, pooled_size: Sizes, spatial_scale: float
) -> Array:
    """Return the maxima of the bins of regions."""
    operator = vision.roi_pool_nchw
    return evaluated(operator, a_np, rois_np, pooled_size, spatial_scale)


def roi_align_nchw_python(
    a_np: Array,
    rois_np: Array,
    pooled_size: Sizes,
    spatial_scale: float,
    sample_ratio: int,
) -> Array:
    """Return the means of samples in the bins of regions."""
    operator = vision.roi_align_nchw
    return evaluated(operator, a_np, rois_np, pooled_size, spatial_scale, sample_ratio)


def lrn_python(
    a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float
) -> Array:
    """Divide each element by a power of the mean square of its neighbours."""
    return evaluated(networks.lrn, a_np, size, axis, alpha, beta, bias)


def l2_normalize_python(
    a_np: Array, eps: float, axis: Sequence[int] | None = None
) -> Array:
    """Divide by the Euclidean norm along axes."""
    return evaluated(networks.l2_normalize, a_np, eps, axis)


def gather_nd_python(a_np: Array, indices_np: Array) -> Array:
    """Return slices at points. The first axis of the indices holds the coordinates of a point."""
    return evaluated(arrays.gather_nd, a_np, indices_np)


def strided_slice_python(
    data: Array,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Return the elements from `begin` to before `end` in steps of `strides`."""
    return evaluated(arrays.strided_slice, data, begin, end, strides)


def batch_matmul(x: Array, y: Array) -> Array:
    """Return the products of matrices x [b, m, k] and y [b, n, k], transposed."""
    return evaluated(fully_connected.batch_matmul, x, y)


def sequence_mask(
    data: Array, valid_length: Array, mask_value: float, axis: int
) -> Array:
    """Replace the elements behind the end of each sequence."""
    return evaluated(arrays.sequence_mask, data, valid_length, mask_value, axis)


def one_hot(
    indices: Array, on_value: float, off_value: float, depth: int, axis: int, dtype: str
) -> Array:
    """Return a vector for each index, whose element at the index is `on_value`."""
    return evaluated(arrays.one_hot, indices, on_value, off_value, depth, axis, dtype)


def space_to_depth_python(data: Array, block_size: int) -> Array:
    """Return images whose blocks of pixels are moved into channels."""
    return evaluated(networks.space_to_depth, data, block_size)


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Array:
    """Return images whose channels are moved into blocks of pixels."""
    return evaluated(networks.depth_to_space, data, block_size, mode=mode)


def slice_axis_python(
    data: Array, axis: int, begin: int, end: int | None = None
) -> Array:
    """Return the elements from `begin` to before `end` of an axis, by numpy.

    Raises:
        UserError: the array has no such axis.
    """
    if not -data.ndim <= axis < data.ndim:
        raise UserError(
            f"an array of {data.ndim} axes has no axis {axis}",
            remedy=f"give {-data.ndim} to {data.ndim - 1}",
        )
    index = [slice(None)] * data.ndim
    index[axis] = slice(begin, end)
    return data[tuple(index)]
