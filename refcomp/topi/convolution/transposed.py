"""The transpose of a convolution, which spreads each element of an image over a window.

    y[n, o, i * stride + k * dilation - before] += x[n, c, i] * w[c, o, k]

The image is spread first: stride - 1 zeros are inserted between neighbours. Its convolution with
mirrored kernels is the result. So an infinite weight times an inserted zero is NaN.

Reference: V. Dumoulin and F. Visin, "A guide to convolution arithmetic for deep learning", arXiv
1603.07285, section 4; ONNX ConvTranspose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.contraction.dense import WIDER, check_factors, wider_dtype
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.convolution.windows import (
    Tap,
    Windows,
    check_numbers,
    constant_sizes,
    convolve_numpy,
    make_windows,
    require_channels,
    spatial_axes,
    sum_windows,
    to_plain,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.shapes import Array, require_constant, require_rank
from refcomp.topi.tags import PAD


def convolve_transposed(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    operator: str,
    layout: str,
    weight_layout: str,
    strides: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the transpose of a convolution, with a bias if there is one.

    Args:
        data: images, of any numeric dtype.
        weight: the weights, of constant extents and of the dtype of `data`. In its layout, I are
            the channels of `data` and O those of the result, in one group.
        bias: a value for each channel of the result, of `out_dtype`.
        operator: the name in messages.
        layout: the letters of the axes of `data` and of the result.
        weight_layout: the letters of the axes of `weight`.
        strides: for each spatial axis, elements between the windows of neighbours.
        padding: elements cut off before each spatial axis of the result, then those after.
        output_padding: further elements at the end of each spatial axis.
        dilation: for each spatial axis, elements from one element of a window to the next.
        groups: number of groups into which the channels are divided.
        out_dtype: the dtype of products and sums (see `wider_dtype`).

    Raises:
        UserError: a rank, extent or dtype does not fit, or the result would have no elements.
    """
    require_rank(data, len(layout), operator, "the data")
    sizes = constant_sizes(weight, weight_layout, operator)
    check_factors(operator, data, weight)
    dtype = wider_dtype(data.dtype, out_dtype, operator)
    kernel = [sizes[letter] for letter in spatial_axes(layout)]
    windows = make_windows(operator, layout, kernel, strides, padding, dilation)
    further = _check_output_padding(output_padding, windows)
    if groups < 1 or sizes["I"] % groups:
        raise UserError(
            f"{operator} cannot divide {sizes['I']} channels into {groups} groups",
            remedy="let groups divide the number of channels of the data",
        )
    require_channels(data, weight, sizes["I"], layout, operator)
    counts = _result_extents(data, windows, further)
    result = sum_spread(
        data,
        factors_of(weight, weight_layout, groups),
        windows,
        counts,
        out=sizes["O"] * groups,
        groups=groups,
        dtype=dtype,
    )
    if bias is None:
        return result
    return add_bias(result, bias, operator, layout.index("C"))


def factors_of(
    weight: Tensor, weight_layout: str, groups: int
) -> Callable[[Expr, Expr, Mapping[str, Expr]], Expr]:
    """Return the function of an output channel, a channel and a tap that reads the weight."""
    per_group = extents(weight)[weight_layout.index("O")]

    def factor(out: Expr, channel: Expr, offsets: Mapping[str, Expr]) -> Expr:
        place = out if groups == 1 else out % per_group
        at: dict[str, Expr] = {"I": channel, "O": place, **offsets}
        return weight[tuple(at[letter] for letter in weight_layout)]

    return factor


def sum_spread(
    data: Tensor,
    factor: Callable[[Expr, Expr, Mapping[str, Expr]], Expr],
    windows: Windows,
    counts: Sequence[Extent],
    *,
    out: int,
    groups: int,
    dtype: DType,
) -> Tensor:
    """Return the sums over mirrored kernels, for a result of `counts` elements along the axes.

    Args:
        data: the images, with a constant number of channels.
        factor: from an output channel, a channel of `data` and the letters of the spatial axes with
            the elements of a kernel to the weight.
        windows: the windows over which the elements of an image are spread.
        counts: the extents of the result along its spatial axes.
        out: the number of its channels.
        groups: number of groups into which the channels are divided.
        dtype: the dtype of products and sums.
    """
    last = dict(zip(windows.spatial, windows.kernel, strict=True))
    what = f"{windows.operator}: the number of channels"
    channels = require_constant(extents(data)[windows.layout.index("C")], what)

    def product(read: Expr, tap: Tap) -> Expr:
        mirrored = {
            letter: last[letter] - 1 - offset.var
            for letter, offset in tap.offsets.items()
        }
        value = factor(tap.out, tap.channel, mirrored)
        return read.astype(dtype) * value.astype(dtype)

    rank = len(windows.kernel)
    dense = Windows(
        operator=windows.operator,
        layout=windows.layout,
        kernel=windows.kernel,
        strides=(1,) * rank,
        dilation=windows.dilation,
        borders=((0, 0),) * rank,
    )
    return sum_windows(
        _spread(data, windows, counts),
        dense,
        counts,
        product,
        out=out,
        depth=channels // groups,
        groups=groups,
        name=windows.operator,
    )


def _check_output_padding(value: Sequence[int], windows: Windows) -> tuple[int, ...]:
    """Return the output padding. Raise UserError if it reaches further than a window's gap."""
    rank = len(windows.kernel)
    operator = windows.operator
    found = check_numbers(value, rank, operator, "output padding", least=0)
    for count, stride, gap in zip(
        found, windows.strides, windows.dilation, strict=True
    ):
        if count >= max(stride, gap):
            raise UserError(
                f"{operator} cannot have the output padding {tuple(value)}",
                why="an output padding of a stride or more adds elements without a window",
                remedy="give numbers below the stride or the dilation",
            )
    return found


def _result_extents(
    data: Tensor, windows: Windows, further: Sequence[int]
) -> tuple[Extent, ...]:
    sizes = dict(zip(windows.layout, extents(data), strict=True))
    found = []
    for place, letter in enumerate(windows.spatial):
        window = windows.dilation[place] * (windows.kernel[place] - 1) + 1
        rest = window + further[place] - sum(windows.borders[place])
        extent = (sizes[letter] - 1) * windows.strides[place] + rest
        if isinstance(extent, int) and extent < 1:
            raise UserError(
                f"{windows.operator}: the padding cuts off all elements along {letter}",
                remedy="give less padding",
            )
        found.append(extent)
    return tuple(found)


def _spread(data: Tensor, windows: Windows, counts: Sequence[Extent]) -> Tensor:
    """Return the image with zeros between neighbours and around it.

    The windows of `counts` elements fit in it. Elements of the image that no window reads are cut
    off.
    """
    layout = windows.layout
    sizes = dict(zip(layout, extents(data), strict=True))
    shape = dict(sizes)
    before = {}
    strides = dict(zip(windows.spatial, windows.strides, strict=True))
    for place, letter in enumerate(windows.spatial):
        reach = windows.dilation[place] * (windows.kernel[place] - 1)
        shape[letter] = counts[place] + reach
        before[letter] = reach - windows.borders[place][0]

    def element(*index: Expr) -> Expr:
        source = list(index)
        inside: list[Expr] = []
        for letter, stride in strides.items():
            axis = layout.index(letter)
            place = index[axis] - before[letter]
            inside.append(place >= 0)
            inside.append(place < (sizes[letter] - 1) * stride + 1)
            if stride > 1:
                inside.append((place % stride).equal(0))
            source[axis] = place if stride == 1 else place // stride
        # `if_then_else`, not `select`: elements outside must not be read.
        zero = const(0, data.dtype)
        return maths.if_then_else(maths.all(*inside), data[tuple(source)], zero)

    sizes_of_result = [shape[letter] for letter in layout]
    return compute(sizes_of_result, element, name="spread", tag=PAD)


def convolve_transposed_numpy(
    data: Array,
    weight: Array,
    bias: Array | None,
    *,
    layout: str,
    weight_layout: str,
    strides: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    dtype: np.dtype[np.generic],
) -> Array:
    """Return the meaning of `convolve_transposed`: a convolution of the image with zeros inside."""
    spatial = spatial_axes(layout)
    rank = len(spatial)
    image = to_plain(data, layout, f"NC{spatial}")
    factors = to_plain(weight, weight_layout, f"IO{spatial}")
    kernel = factors.shape[2:]
    spread = np.zeros(
        (
            *image.shape[:2],
            *((e - 1) * s + 1 for e, s in zip(image.shape[2:], strides, strict=True)),
        ),
        image.dtype,
    )
    steps = [slice(None, None, stride) for stride in strides]
    spread[(slice(None), slice(None), *steps)] = image
    reach = [gap * (size - 1) for gap, size in zip(dilation, kernel, strict=True)]
    borders = [(0, 0), (0, 0)]
    kept = [slice(None), slice(None)]
    for axis in range(rank):
        before = reach[axis] - padding[axis]
        after = reach[axis] - padding[rank + axis] + output_padding[axis]
        borders.append((max(before, 0), max(after, 0)))
        kept.append(slice(max(-before, 0), min(after, 0) or None))
    mirrored = np.flip(factors, tuple(range(2, 2 + rank)))
    # From [groups * i, o, ...] to [groups * o, i, ...].
    depth = len(factors) // groups
    own = mirrored.reshape(groups, depth, *mirrored.shape[1:]).swapaxes(1, 2)
    result = convolve_numpy(
        np.pad(spread, borders)[tuple(kept)],
        own.reshape(groups * factors.shape[1], depth, *kernel),
        bias,
        layout=f"NC{spatial}",
        weight_layout=f"OI{spatial}",
        strides=(1,) * rank,
        padding=(0,) * (2 * rank),
        dilation=dilation,
        groups=groups,
        dtype=dtype,
    )
    return np.ascontiguousarray(to_plain(result, f"NC{spatial}", layout))


def sample_transposed(draws: Draws, layout: str, weight_layout: str) -> Sample:
    """Return operands and attributes of a transposed convolution in these layouts."""
    spatial = spatial_axes(layout)
    rank = len(spatial)
    groups = draws.choice((1, 1, 2))
    depth = draws.integer(1, 2) * groups
    out = draws.integer(1, 2)
    dtype = draws.number_dtype()
    sizes = {"N": draws.extent(0), "C": depth, "I": depth, "O": out}
    strides = tuple(draws.integer(1, 3) for _ in range(rank))
    dilation = tuple(draws.integer(1, 2) for _ in range(rank))
    reach = []
    for letter in spatial:
        sizes[letter] = draws.integer(2, 4)
    data = draws.array([sizes[letter] for letter in layout], dtype)
    for letter, gap in zip(spatial, dilation, strict=True):
        sizes[letter] = draws.integer(1, 3)
        reach.append(gap * (sizes[letter] - 1))
    shape = [sizes[letter] for letter in weight_layout]
    weight = draws.array(shape, dtype, special=False)
    # Of an extent of at least 1 + reach + stride, at most reach + 1 elements are cut off.
    before = [draws.integer(0, span) for span in reach]
    after = [
        draws.integer(0, 1 + span - low)
        for span, low in zip(reach, before, strict=True)
    ]
    attributes: dict[str, object] = {
        "strides": strides,
        "padding": (*before, *after),
        "output_padding": tuple(draws.integer(0, stride - 1) for stride in strides),
        "dilation": dilation,
        "groups": groups,
    }
    kind = dtype
    if dtype in WIDER and draws.flag():
        kind = WIDER[dtype]
        attributes["out_dtype"] = kind
    bias = draws.array((out * groups,), kind) if draws.flag() else None
    return Sample((data, weight, bias), attributes)
