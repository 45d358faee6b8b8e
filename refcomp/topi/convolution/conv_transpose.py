"""Transposed convolutions of sequences, images and volumes, also called deconvolutions.

NaN and infinities spread over their windows. An infinite weight times an inserted zero is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.convolution.transposed import (
    convolve_transposed,
    convolve_transposed_numpy,
    sample_transposed,
)
from refcomp.topi.convolution.windows import check_layout, kind_of
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array

# Layout of images -> layout of weights: I the channels of the data, O those of the result.
_OF_SEQUENCES = {"NCW": "IOW", "NWC": "WIO"}
_OF_IMAGES = {"NCHW": "IOHW", "NHWC": "HWIO"}
_OF_VOLUMES = {"NCDHW": "IODHW", "NDHWC": "DHWIO"}


def _sample(draws: Draws, layouts: Mapping[str, str]) -> Sample:
    layout = draws.choice(tuple(layouts))
    sample = sample_transposed(draws, layout, layouts[layout])
    return Sample(sample.operands, {**sample.attributes, "layout": layout})


def conv1d_transpose(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    output_padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
    layout: str = "NCW",
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the transposed convolution of sequences.

        y[n, o, j] = sum of all x[n, c, i] * w[c, o, k] with j = i * stride + k * dilation - before

    The result has (w - 1) * stride + dilation * (kw - 1) + 1 elements, less the padding, plus the
    output padding. Elements that no window reaches are 0, or the bias.

    Args:
        data: [n, c, w] in the layout NCW, [n, w, c] in NWC; of any numeric dtype.
        weight: [c, o / groups, kw] in NCW,
            [kw, c, o / groups] in NWC; of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements between the windows of neighbours.
        padding: elements cut off before and after the result.
        output_padding: further elements at the end, fewer than the stride or the dilation.
        dilation: elements from one element of a window to the next.
        groups: number of groups into which the channels are divided.
        layout: NCW or NWC.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor of `out_dtype` in the same layout, with o channels.

    Raises:
        UserError: a rank, extent, dtype or layout does not fit, or the padding cuts off all
            elements.

    Reference: ONNX ConvTranspose; TVM, topi.nn.conv1d_transpose_ncw.

    Example::

        >>> X, W = rc.placeholder((1, 1, 2), name="X"), rc.placeholder((1, 1, 3), name="W")
        >>> Y = rc.topi.conv1d_transpose(X, W, strides=(2,))
        >>> x, w = np.array([[[1, 10]]], "float32"), np.array([[[1, 2, 3]]], "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w}))
        [[[ 1.  2. 13. 20. 30.]]]
    """
    return convolve_transposed(
        data,
        weight,
        bias,
        operator="conv1d_transpose",
        layout=layout,
        weight_layout=check_layout(layout, _OF_SEQUENCES, "conv1d_transpose"),
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )


def _sample_conv1d_transpose(draws: Draws) -> Sample:
    return _sample(draws, _OF_SEQUENCES)


@meaning_of(conv1d_transpose, sample=_sample_conv1d_transpose)
def conv1d_transpose_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    output_padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
    layout: str = "NCW",
    out_dtype: DTypeLike | None = None,
) -> Array:
    return convolve_transposed_numpy(
        data,
        weight,
        bias,
        layout=layout,
        weight_layout=_OF_SEQUENCES[layout],
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        dtype=kind_of(data, out_dtype),
    )


def conv2d_transpose(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
    layout: str = "NCHW",
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the transposed convolution of images.

        y[n, o, j] = sum of all x[n, c, i] * w[c, o, k] with j = i * stride + k * dilation - before

    where i, j and k are pairs. Along each axis, the result has (h - 1) * stride + dilation *
    (kh - 1) + 1 elements, less the padding, plus the output padding. Elements that no window
    reaches are 0, or the bias.

    Args:
        data: [n, c, h, w] in the layout NCHW, [n, h, w, c] in NHWC; of any numeric dtype.
        weight: [c, o / groups, kh, kw] in NCHW,
            [kh, kw, c, o / groups] in NHWC; of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements between the windows of neighbours, down and across.
        padding: elements cut off at the top, left, bottom and right of the result.
        output_padding: further elements at the bottom and right, fewer than the stride or the
            dilation.
        dilation: elements from one element of a window to the next, down and across.
        groups: number of groups into which the channels are divided.
        layout: NCHW or NHWC.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor of `out_dtype` in the same layout, with o channels.

    Raises:
        UserError: a rank, extent, dtype or layout does not fit, or the padding cuts off all
            elements.

    Reference: ONNX ConvTranspose; TVM, topi.nn.conv2d_transpose_nchw.

    Example::

        >>> X, W = rc.placeholder((1, 1, 1, 2), name="X"), rc.placeholder((1, 1, 2, 1), name="W")
        >>> Y = rc.topi.conv2d_transpose(X, W, strides=(1, 2), output_padding=(0, 1))
        >>> x, w = np.array([[[[1, 10]]]], "float32"), np.array([[[[1], [2]]]], "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w}))
        [[[[ 1.  0. 10.  0.]
           [ 2.  0. 20.  0.]]]]
    """
    return convolve_transposed(
        data,
        weight,
        bias,
        operator="conv2d_transpose",
        layout=layout,
        weight_layout=check_layout(layout, _OF_IMAGES, "conv2d_transpose"),
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )


def _sample_conv2d_transpose(draws: Draws) -> Sample:
    return _sample(draws, _OF_IMAGES)


@meaning_of(conv2d_transpose, sample=_sample_conv2d_transpose)
def conv2d_transpose_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    output_padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
    layout: str = "NCHW",
    out_dtype: DTypeLike | None = None,
) -> Array:
    return convolve_transposed_numpy(
        data,
        weight,
        bias,
        layout=layout,
        weight_layout=_OF_IMAGES[layout],
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        dtype=kind_of(data, out_dtype),
    )


def conv3d_transpose(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Sequence[int] = (1, 1, 1),
    padding: Sequence[int] = (0, 0, 0, 0, 0, 0),
    output_padding: Sequence[int] = (0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    groups: int = 1,
    layout: str = "NCDHW",
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the transposed convolution of volumes.

        y[n, o, j] = sum of all x[n, c, i] * w[c, o, k] with j = i * stride + k * dilation - before

    where i, j and k are triples. Along each axis, the result has (d - 1) * stride + dilation *
    (kd - 1) + 1 elements, less the padding, plus the output padding. Elements that no window
    reaches are 0, or the bias.

    Args:
        data: [n, c, d, h, w] in the layout NCDHW, [n, d, h, w, c] in NDHWC; of any numeric dtype.
        weight: [c, o / groups, kd, kh, kw] in NCDHW,
            [kd, kh, kw, c, o / groups] in NDHWC; of constant extents and of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements between the windows of neighbours, along d, h and w.
        padding: elements cut off before d, h and w of the result, then those after them.
        output_padding: further elements after d, h and w, fewer than the stride or the dilation.
        dilation: elements from one element of a window to the next, along d, h and w.
        groups: number of groups into which the channels are divided.
        layout: NCDHW or NDHWC.
        out_dtype: a wider dtype of the same kind, in which products are added up. By default the
            dtype of `data`.

    Returns:
        A tensor of `out_dtype` in the same layout, with o channels.

    Raises:
        UserError: a rank, extent, dtype or layout does not fit, or the padding cuts off all
            elements.

    Reference: ONNX ConvTranspose; TVM, topi.nn.conv3d_transpose_ncdhw.

    Example::

        >>> X = rc.placeholder((1, 1, 1, 1, 2), name="X")
        >>> W = rc.placeholder((1, 1, 2, 1, 2), name="W")
        >>> Y = rc.topi.conv3d_transpose(X, W)
        >>> x = np.array([[[[[1, 10]]]]], "float32")
        >>> w = np.array([[[[[1, 2]], [[3, 4]]]]], "float32")
        >>> (y,) = rc.oracle.evaluate([Y], {X: x, W: w})
        >>> print(y[0, 0, :, 0])
        [[ 1. 12. 20.]
         [ 3. 34. 40.]]
    """
    return convolve_transposed(
        data,
        weight,
        bias,
        operator="conv3d_transpose",
        layout=layout,
        weight_layout=check_layout(layout, _OF_VOLUMES, "conv3d_transpose"),
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )


def _sample_conv3d_transpose(draws: Draws) -> Sample:
    return _sample(draws, _OF_VOLUMES)


@meaning_of(conv3d_transpose, sample=_sample_conv3d_transpose)
def conv3d_transpose_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] = (1, 1, 1),
    padding: Sequence[int] = (0, 0, 0, 0, 0, 0),
    output_padding: Sequence[int] = (0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    groups: int = 1,
    layout: str = "NCDHW",
    out_dtype: DTypeLike | None = None,
) -> Array:
    return convolve_transposed_numpy(
        data,
        weight,
        bias,
        layout=layout,
        weight_layout=_OF_VOLUMES[layout],
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        dtype=kind_of(data, out_dtype),
    )
