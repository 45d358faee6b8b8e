"""One-dimensional convolution, with the channels second (NCW) or last (NWC).

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
_WEIGHTS = {"NCW": "OIW", "NWC": "WIO"}


def conv1d(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
    layout: str = "NCW",
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the convolution of sequences.

        y[n, o, i] = bias[o] + sum over (c, k) of x[n, c, j] * w[o, c, k]
        j = i * stride + k * dilation - before

    where x is 0 outside of the sequence, and `before` is the padding at its begin.

    Args:
        data: [n, c, w] in the layout NCW, [n, w, c] in NWC; of any numeric dtype.
        weight: [o, c / groups, kw] or [kw, c / groups, o], of constant extents and of the dtype of
            `data`.
        bias: [o], of `out_dtype`; optional.
        strides: elements from one window to the next.
        padding: zeros added before and after the sequence.
        dilation: elements from one element of a window to the next.
        groups: number of groups into which the channels are divided.
        layout: NCW or NWC.
        out_dtype: a wider dtype of the same kind, in which products are added up, such as int32 for
            int8. By default the dtype of `data`.

    Returns:
        A tensor of `out_dtype` in the same layout, with o channels. See `window_extent` for its
        spatial extents.

    Raises:
        UserError: a rank, extent, dtype or layout does not fit, or a window does not fit in the
            sequence.

    Reference: ONNX Conv; TVM, topi.nn.conv1d. NaN propagates.

    Example::

        >>> X, W = rc.placeholder((1, 1, 4), name="X"), rc.placeholder((1, 1, 2), name="W")
        >>> Y = rc.topi.conv1d(X, W, padding=(0, 1))
        >>> x, w = np.array([[[1, 2, 3, 4]]], "float32"), np.array([[[1, 10]]], "float32")
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w}))
        [[[21. 32. 43.  4.]]]
    """
    return convolve(
        data,
        weight,
        bias,
        operator="conv1d",
        layout=layout,
        weight_layout=check_layout(layout, _WEIGHTS, "conv1d"),
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        out_dtype=out_dtype,
    )


def _sample_conv1d(draws: Draws) -> Sample:
    layout = draws.choice(tuple(_WEIGHTS))
    sample = sample_convolution(draws, layout, _WEIGHTS[layout])
    return Sample(sample.operands, {**sample.attributes, "layout": layout})


@meaning_of(conv1d, sample=_sample_conv1d)
def conv1d_numpy(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] = (1,),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1,),
    groups: int = 1,
    layout: str = "NCW",
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
