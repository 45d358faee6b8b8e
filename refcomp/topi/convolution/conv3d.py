"""Three-dimensional convolution, with the channels second (NCDHW) or last (NDHWC).

NaN, infinities and sums of nothing are as in `conv2d`. The kernel is not mirrored.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.convolution.windows import (
    check_layout,
    convolve,
    convolve_numpy,
    kind_of,
    sample_convolution,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array

# Layout of images -> layout of weights.
_WEIGHTS = {"NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def conv3d(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Sequence[int] = (1, 1, 1),
    padding: Sequence[int] = (0, 0, 0, 0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    groups: int = 1,
    layout: str = "NCDHW",
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of volumes.

        y[n, o, i] = bias[o] + sum over (c, k) of x[n, c, j] * w[o, c, k]
        j = i * stride + k * dilation - before

    where i, j and k are triples, and x is 0 outside of the volume. `before` is the padding.

    Args:
        data: [n, c, d, h, w] in the layout NCDHW, [n, d, h, w, c] in NDHWC; of any numeric dtype.
        weight: [o, c / groups, kd, kh, kw] or [kd, kh, kw, c / groups, o], of constant extents and
            of the dtype of `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements from one window to the next, along d, h and w.
        padding: zeros added before d, h and w, then those added after them.
        dilation: elements from one element of a window to the next, along d, h and w.
        groups: number of groups into which the channels are divided.
        layout: NCDHW or NDHWC.
        out_dtype: a wider dtype of the same kind, in which products are added up, such as int32 for
            int8. By default the dtype of `data`.

    Returns:
        A tensor of `out_dtype` in the same layout, with o channels. See `window_extent` for its
        spatial extents.

    Raises:
        UserError: a rank, extent, dtype or layout does not fit, or a window does not fit in the
            volume.

    Reference: ONNX Conv; TVM, topi.nn.conv3d. NaN propagates.

    Example::

        >>> X = rc.placeholder((1, 1, 2, 2, 2), name="X")
        >>> W = rc.placeholder((1, 1, 2, 2, 1), name="W")
        >>> Y = rc.topi.conv3d(X, W)
        >>> x = np.arange(8).reshape(1, 1, 2, 2, 2)
        >>> w = np.array([1, 0, 0, 10]).reshape(1, 1, 2, 2, 1)
        >>> print(*rc.oracle.evaluate([Y], {X: x.astype("float32"), W: w.astype("float32")}))
        [[[[[60. 71.]]]]]
    """
    return convolve(
        data,
        weight,
        bias,
        operator="conv3d",
        layout=layout,
        weight_layout=check_layout(layout, _WEIGHTS, "conv3d"),
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )


def _sample_conv3d(draws: Draws) -> Sample:
    layout = draws.choice(tuple(_WEIGHTS))
    sample = sample_convolution(draws, layout, _WEIGHTS[layout])
    return Sample(sample.operands, {**sample.attributes, "layout": layout})


@meaning_of(conv3d, sample=_sample_conv3d)
def conv3d_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] = (1, 1, 1),
    padding: Sequence[int] = (0, 0, 0, 0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    groups: int = 1,
    layout: str = "NCDHW",
    out_dtype: DTypeLike | None = None,
) -> Array:
    return convolve_numpy(
        data,
        weight,
        bias,
        layout=layout,
        weight_layout=_WEIGHTS[layout],
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        dtype=kind_of(data, out_dtype),
    )
