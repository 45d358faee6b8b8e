"""Two-dimensional convolution of integers of few bits, by AND and popcount.

Channels are packed into words (see `bitpack`). The zeros around an image have no bits, so they add
nothing to a sum, whatever a bit of the weights means.

Reference: M. Cowan et al., "Automating Generation of Low Precision Deep Learning Operators", arXiv
1810.11066.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import DTypeLike, IterVar, Tensor
from refcomp.topi.contraction.bitserial import (
    check_sums,
    check_words,
    low_bits,
    meant_weights,
    pack_bits,
    product_of_planes,
)
from refcomp.topi.convolution.windows import (
    check_layout,
    constant_sizes,
    convolve_numpy,
    make_windows,
    require_channels,
    sample_convolution,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, Pair, require_rank
from refcomp.topi.spatial_padding import Padding
from refcomp.topi.tags import REDUCTION

_WEIGHTS = {"NCHW": "OIHW", "NHWC": "HWIO"}


def bitserial_conv2d(
    data: Tensor,
    weight: Tensor,
    *,
    data_bits: int,
    weight_bits: int,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    layout: str = "NCHW",
    pack_dtype: DTypeLike = "uint32",
    out_dtype: DTypeLike = "int32",
    unipolar: bool = True,
) -> Tensor:
    """Return the convolution of images of integers of few bits, by AND and popcount.

    Bits of the data mean 0 and 1. Bits of the weights mean -1 and 1 if `unipolar`, else 0 and 1. So
    weights w of b bits stand for 2 * w - (2^b - 1), or for w itself.

    Args:
        data: [n, c, h, w] in the layout NCHW, [n, h, w, c] in NHWC; integers, of which the lowest
            `data_bits` are taken. c must be constant.
        weight: [o, c, kh, kw] or [kh, kw, c, o], of constant extents; integers, of which the lowest
            `weight_bits` are taken.
        data_bits: the number of bits of the data.
        weight_bits: the number of bits of the weights.
        strides: elements down and across, from one window to the next.
        padding: zeros added at the top, left, bottom and right.
        layout: NCHW or NHWC.
        pack_dtype: the dtype of words (see `bitpack`).
        out_dtype: the dtype of sums: int16, int32 or int64, which wraps.
        unipolar: True if bits of the weights mean -1 and 1.

    Returns:
        A tensor of `out_dtype` in the same layout, with o channels.

    Raises:
        UserError: a rank, extent, dtype, layout or number of bits does not fit, or a window does
            not fit in the image.

    Reference: TVM, topi.nn.bitserial_conv2d_nchw and bitserial_conv2d_nhwc.

    Example::

        >>> X = rc.placeholder((1, 2, 1, 2), "uint8", name="X")
        >>> W = rc.placeholder((1, 2, 1, 1), "uint8", name="W")
        >>> Y = rc.topi.bitserial_conv2d(X, W, data_bits=2, weight_bits=1)
        >>> x = np.array([[[[3, 1]], [[1, 2]]]], "uint8")
        >>> w = np.array([1, 0], "uint8").reshape(1, 2, 1, 1)
        >>> print(*rc.oracle.evaluate([Y], {X: x, W: w}))
        [[[[ 2 -1]]]]
    """
    name = "bitserial_conv2d"
    weight_layout = check_layout(layout, _WEIGHTS, name)
    require_rank(data, 4, name, "the data")
    sizes = constant_sizes(weight, weight_layout, name)
    require_channels(data, weight, sizes["I"], layout, name)
    words = check_words(pack_dtype, name)
    dtype = check_sums(out_dtype, name)
    windows = make_windows(
        name, layout, (sizes["H"], sizes["W"]), strides, padding, (1, 1)
    )
    # Zeros are added to the images: their bits are 0.
    padded = windows.pad(data, const(0, data.dtype))
    counts = windows.counts(data)
    # Planes are the first axis.
    packed = pack_bits(padded, data_bits, layout.index("C"), 0, words, name)
    factors = pack_bits(weight, weight_bits, weight_layout.index("I"), 0, words, name)
    p = reduce_axis(data_bits, "p")
    q = reduce_axis(weight_bits, "q")
    rc = reduce_axis(extents(packed)[1 + layout.index("C")], "rc")
    ry = reduce_axis(sizes["H"], "ry")
    rx = reduce_axis(sizes["W"], "rx")

    def element(*index: Expr) -> Expr:
        at = dict(zip(layout, index, strict=True))
        source: dict[str, Expr | IterVar] = {
            "N": at["N"],
            "C": rc,
            "H": at["H"] * windows.strides[0] + ry,
            "W": at["W"] * windows.strides[1] + rx,
        }
        tap: dict[str, Expr | IterVar] = {"O": at["C"], "I": rc, "H": ry, "W": rx}
        read = packed[(p, *(source[letter] for letter in layout))]
        factor = factors[(q, *(tap[letter] for letter in weight_layout))]
        term = product_of_planes(read, factor, p + q, dtype, unipolar)
        return reducer.sum(term, axis=[p, q, rc, ry, rx])

    shape: dict[str, Extent] = {
        "N": extents(data)[0],
        "C": sizes["O"],
        "H": counts[0],
        "W": counts[1],
    }
    sizes_of_result = [shape[letter] for letter in layout]
    return compute(sizes_of_result, element, name=name, tag=REDUCTION)


def _sample_bitserial_conv2d(draws: Draws) -> Sample:
    layout = draws.choice(tuple(_WEIGHTS))
    while True:
        sample = sample_convolution(draws, layout, _WEIGHTS[layout])
        if sample.attributes["groups"] == 1:
            break
    data, weight, _ = sample.operands
    assert data is not None and weight is not None
    attributes = {
        "strides": sample.attributes["strides"],
        "padding": sample.attributes["padding"],
        "layout": layout,
        "data_bits": draws.integer(1, 3),
        "weight_bits": draws.integer(1, 2),
        "pack_dtype": draws.choice(("uint8", "uint16", "uint32", "uint64")),
        "out_dtype": draws.choice(("int16", "int32", "int64")),
        "unipolar": draws.flag(),
    }
    operands = (
        draws.array(data.shape, draws.integer_dtype()),
        draws.array(weight.shape, draws.integer_dtype()),
    )
    return Sample(operands, attributes)


@meaning_of(bitserial_conv2d, sample=_sample_bitserial_conv2d)
def bitserial_conv2d_numpy(
    data: Array,
    weight: Array,
    *,
    data_bits: int,
    weight_bits: int,
    strides: Pair = (1, 1),
    padding: Padding = (0, 0, 0, 0),
    layout: str = "NCHW",
    pack_dtype: DTypeLike = "uint32",
    out_dtype: DTypeLike = "int32",
    unipolar: bool = True,
) -> Array:
    sums = convolve_numpy(
        low_bits(data, data_bits),
        meant_weights(weight, weight_bits, unipolar),
        None,
        layout=layout,
        weight_layout=_WEIGHTS[layout],
        strides=strides,
        padding=padding,
        dilation=(1, 1),
    )
    return np.asarray(sums.astype(to_numpy(as_dtype(out_dtype))))
