"""Convolutions of any number of spatial axes, in any layout, which the operators share.

A layout names each axis by a letter: N the images, C the channels, and D, H and W the spatial axes.
In a layout of weights, O are the output channels and I the input channels of a group::

    y[n, o, i] = sum over (c, k) of x[n, c, i * stride + k * dilation - before] * w[o, c, k]

An image is padded first. So no read of the sum is guarded, and loops over it become vectors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import reducer
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tensor import DTypeLike, IterVar, Tensor
from refcomp.topi.contraction.dense import WIDER, check_factors, wider_dtype
from refcomp.topi.contraction.fully_connected import add_bias
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.spatial_padding import check_borders, pad_axes
from refcomp.topi.tags import REDUCTION

# Letter of an axis -> name of the axis of a result.
_KEPT = {"N": "n", "C": "o", "D": "z", "H": "y", "W": "x"}
# Letter of an axis -> name of the axis that is summed up.
_REDUCED = {"I": "rc", "D": "rz", "H": "ry", "W": "rx"}


@dataclass(frozen=True, slots=True)
class Windows:
    """The places of all windows along the spatial axes of an image.

    Attributes:
        operator: the name in messages.
        layout: the letters of the axes of images, such as NCHW.
        kernel: the elements of a window, for each spatial axis.
        strides: elements from one window to the next.
        dilation: elements from one element of a window to the next.
        borders: padding before and after each axis.
    """

    operator: str
    layout: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    borders: tuple[tuple[int, int], ...]

    @property
    def spatial(self) -> str:
        """Return the letters of the spatial axes."""
        return spatial_axes(self.layout)

    def pad(self, data: Tensor, value: Expr) -> Tensor:
        """Return the image with its borders, which have this value."""
        axes = [self.layout.index(letter) for letter in self.spatial]
        return pad_axes(data, dict(zip(axes, self.borders, strict=True)), value)

    def counts(self, data: Tensor) -> tuple[Extent, ...]:
        """Return the number of windows along each spatial axis of `data`, which is not padded."""
        sizes = dict(zip(self.layout, extents(data), strict=True))
        found = []
        for place, letter in enumerate(self.spatial):
            before, after = self.borders[place]
            count = window_extent(
                sizes[letter],
                self.kernel[place],
                self.strides[place],
                self.dilation[place],
                before,
                after,
            )
            found.append(count)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Tap:
    """One product of a sum: which weight meets which channel.

    Attributes:
        out: the output channel.
        channel: the channel that is read.
        place: the place of that channel among those of its group.
        offsets: letter of a spatial axis -> element of the window.
    """

    out: Expr
    channel: Expr
    place: Expr
    offsets: Mapping[str, IterVar]


def spatial_axes(layout: str) -> str:
    """Return the letters of a layout's spatial axes, in order."""
    return "".join(letter for letter in layout if letter in "DHW")


def check_numbers(
    value: Sequence[int], count: int, operator: str, what: str, least: int = 1
) -> tuple[int, ...]:
    """Return `value` as a tuple. Raise UserError unless it is `count` numbers >= `least`."""
    if len(value) != count or any(number < least for number in value):
        raise UserError(
            f"{operator} cannot have the {what} {tuple(value)}",
            remedy=f"give {count} numbers >= {least}, one for each spatial axis",
        )
    return tuple(value)


def check_layout(layout: str, known: Mapping[str, str], operator: str) -> str:
    """Return the layout of weights that belongs to a layout of images.

    Raises:
        UserError: the layout of images is not one of `known`.
    """
    if layout not in known:
        raise UserError(
            f"{operator} does not have the layout {layout!r}",
            remedy=f"use one of {', '.join(known)}",
        )
    return known[layout]


def check_groups(groups: int, out: int, operator: str) -> None:
    """Raise UserError unless `groups` divides the number of output channels."""
    if groups < 1 or out % groups:
        raise UserError(
            f"{operator} cannot divide {out} output channels into {groups} groups",
            remedy="let groups divide the number of output channels of the weight",
        )


def constant_sizes(weight: Tensor, layout: str, operator: str) -> dict[str, int]:
    """Return letter -> extent of the weight, whose extents must be constants."""
    require_rank(weight, len(layout), operator, "the weight")
    what = f"{operator}: the weight's shape"
    sizes = (require_constant(size, what) for size in extents(weight))
    return dict(zip(layout, sizes, strict=True))


def require_channels(
    data: Tensor, weight: Tensor, expected: int, layout: str, operator: str
) -> None:
    """Raise UserError unless the images have the channels that the weight reads."""
    actual = extents(data)[layout.index("C")]
    require_extent(
        actual,
        expected,
        operator,
        "the data's channel extent",
        tensors=(data, weight),
    )


def convolve(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    operator: str,
    layout: str,
    weight_layout: str,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
    out_dtype: DTypeLike | None = None,
    tag: str = REDUCTION,
    name: str | None = None,
) -> Tensor:
    """Return a convolution, with a bias if there is one.

    Args:
        data: images, of any numeric dtype.
        weight: the weights, of constant extents and of the dtype of `data`.
        bias: a value for each output channel, of `out_dtype`.
        operator: the name in messages.
        layout: the letters of the axes of `data` and of the result.
        weight_layout: the letters of the axes of `weight`.
        strides: for each spatial axis, elements from one window to the next.
        padding: zeros before each spatial axis, then those after each.
        dilation: for each spatial axis, elements from one element of a window to the next.
        groups: number of groups into which the channels are divided.
        out_dtype: the dtype of products and sums (see `wider_dtype`).
        tag: by which schedules find the stage of the sums.
        name: the name of this stage; by default that of the operator.

    Raises:
        UserError: a rank, extent or dtype does not fit, or a window does not fit in the image.
    """
    require_rank(data, len(layout), operator, "the data")
    sizes = constant_sizes(weight, weight_layout, operator)
    check_factors(operator, data, weight)
    dtype = wider_dtype(data.dtype, out_dtype, operator)
    check_groups(groups, sizes["O"], operator)
    require_channels(data, weight, sizes["I"] * groups, layout, operator)
    kernel = [sizes[letter] for letter in spatial_axes(layout)]
    windows = make_windows(operator, layout, kernel, strides, padding, dilation)

    def product(read: Expr, tap: Tap) -> Expr:
        at: dict[str, Expr | IterVar] = {"O": tap.out, "I": tap.place, **tap.offsets}
        factor = weight[tuple(at[letter] for letter in weight_layout)]
        return read.astype(dtype) * factor.astype(dtype)

    result = sum_windows(
        windows.pad(data, const(0, data.dtype)),
        windows,
        windows.counts(data),
        product,
        out=sizes["O"],
        depth=sizes["I"],
        groups=groups,
        tag=tag,
        name=name or operator,
        order=weight_layout,
    )
    if bias is None:
        return result
    return add_bias(result, bias, operator, layout.index("C"))


def make_windows(
    operator: str,
    layout: str,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Windows:
    """Return the places of windows, from checked attributes of an operator."""
    rank = len(spatial_axes(layout))
    return Windows(
        operator=operator,
        layout=layout,
        kernel=tuple(kernel),
        strides=check_numbers(strides, rank, operator, "strides"),
        dilation=check_numbers(dilation, rank, operator, "dilation"),
        borders=check_borders(padding, rank, operator),
    )


def sum_windows(
    padded: Tensor,
    windows: Windows,
    counts: Sequence[Extent],
    product: Callable[[Expr, Tap], Expr],
    *,
    out: int,
    depth: int,
    groups: int,
    name: str,
    tag: str = REDUCTION,
    order: str = "IDHW",
) -> Tensor:
    """Return the sums of `product` over the windows of a padded image.

    Args:
        padded: the images with their borders.
        windows: the places of the windows.
        counts: the number of windows along each spatial axis.
        product: from an element of an image and its tap to the term of the sum.
        out: the number of output channels.
        depth: the number of channels of a group, which an output channel reads.
        groups: the number of groups.
        name: the name of the compute.
        tag: its tag.
        order: the letters of the summed axes, from the outermost to the innermost.
    """
    layout = windows.layout
    lengths = {"I": depth}
    lengths.update(zip(windows.spatial, windows.kernel, strict=True))
    reduced = {
        letter: reduce_axis(lengths[letter], _REDUCED[letter])
        for letter in order
        if letter in lengths
    }
    offsets = {letter: reduced[letter] for letter in windows.spatial}

    def element(*index: Expr) -> Expr:
        at = dict(zip(layout, index, strict=True))
        place = reduced["I"].var
        o = at["C"]
        # With one group the quotient is 0.
        channel = place if groups == 1 else o // (out // groups) * depth + place
        source: dict[str, Expr] = {"N": at["N"], "C": channel}
        for letter, stride, gap in zip(
            windows.spatial, windows.strides, windows.dilation, strict=True
        ):
            source[letter] = at[letter] * stride + offsets[letter] * gap
        read = padded[tuple(source[letter] for letter in layout)]
        tap = Tap(o, channel, place, offsets)
        return reducer.sum(product(read, tap), axis=list(reduced.values()))

    shape: dict[str, Extent] = {"N": extents(padded)[layout.index("N")], "C": out}
    shape.update(zip(windows.spatial, counts, strict=True))
    sizes = [shape[letter] for letter in layout]
    return compute(sizes, _with_axes(element, layout), name=name, tag=tag)


def _with_axes(function: Callable[..., Expr], layout: str) -> Callable[..., Expr]:
    """Return a function of one index for each axis, after whose parameters axes are named."""
    parameters = [
        inspect.Parameter(_KEPT[letter], inspect.Parameter.POSITIONAL_ONLY)
        for letter in layout
    ]
    vars(function)["__signature__"] = inspect.Signature(parameters)
    return function


def to_plain(array: Array, layout: str, plain: str) -> Array:
    """Return a view of an array whose axes are in the order of `plain`."""
    return array.transpose([layout.index(letter) for letter in plain])


def windows_numpy(
    image: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """Return a view [n, c, *windows, *kernel] of a padded image [n, c, *spatial]."""
    rank = len(kernel)
    spans = [gap * (size - 1) + 1 for size, gap in zip(kernel, dilation, strict=True)]
    axes = tuple(range(2, 2 + rank))
    view = np.lib.stride_tricks.sliding_window_view(image, spans, axes)
    steps = [slice(None, None, step) for step in (*strides, *dilation)]
    return np.asarray(view[(slice(None), slice(None), *steps)])


def convolve_numpy(
    data: Array,
    weight: Array,
    bias: Array | None,
    *,
    layout: str,
    weight_layout: str,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
    dtype: np.dtype[np.generic] | None = None,
) -> Array:
    """Return the meaning of `convolve`, with products and sums of floats in f64."""
    kind = data.dtype if dtype is None else dtype
    spatial = spatial_axes(layout)
    rank = len(spatial)
    image = widen(to_plain(data, layout, f"NC{spatial}").astype(kind))
    factors = widen(to_plain(weight, weight_layout, f"OI{spatial}").astype(kind))
    borders = [(0, 0), (0, 0), *zip(padding[:rank], padding[rank:], strict=True)]
    padded = np.pad(image, borders)
    seen = windows_numpy(padded, factors.shape[2:], strides, dilation)
    # Of what is summed up: the channels and the elements of windows.
    axes = [1, *range(2 + rank, 2 + 2 * rank)]
    depth = factors.shape[1]
    per_group = len(factors) // groups
    parts = []
    for group in range(groups):
        channels = seen[:, group * depth : (group + 1) * depth]
        own = factors[group * per_group : (group + 1) * per_group]
        # A sum for each image, window and output channel.
        parts.append(np.tensordot(channels, own, (axes, list(range(1, 2 + rank)))))
    sums = np.concatenate(parts, axis=-1)
    if bias is not None:
        sums = sums + widen(bias)
    result = to_plain(sums, f"N{spatial}C", layout)
    return np.ascontiguousarray(result.astype(kind))


def kind_of(data: Array, out_dtype: DTypeLike | None) -> np.dtype[np.generic]:
    """Return numpy's dtype of a result: `out_dtype`, or that of the data."""
    return as_dtype(data.dtype if out_dtype is None else out_dtype).dtype


def sample_convolution(draws: Draws, layout: str, weight_layout: str) -> Sample:
    """Return operands and attributes of a convolution in these layouts."""
    spatial = spatial_axes(layout)
    rank = len(spatial)
    groups = draws.choice((1, 1, 2))
    depth = draws.integer(1, 3)
    out = draws.integer(1, 3) * groups
    dtype = draws.number_dtype()
    # A window spans at most 5 elements.
    sizes = {"N": draws.extent(0), "C": depth * groups, "I": depth, "O": out}
    kernel = {letter: draws.integer(1, 3) for letter in spatial}
    sizes.update({letter: draws.integer(5, 6) for letter in spatial})
    data = draws.array([sizes[letter] for letter in layout], dtype)
    sizes.update(kernel)
    shape = [sizes[letter] for letter in weight_layout]
    weight = draws.array(shape, dtype, special=False)
    attributes: dict[str, object] = {
        "strides": tuple(draws.integer(1, 2) for _ in range(rank)),
        "padding": tuple(draws.integer(0, 2) for _ in range(2 * rank)),
        "dilation": tuple(draws.integer(1, 2) for _ in range(rank)),
        "groups": groups,
    }
    kind = dtype
    if dtype in WIDER and draws.flag():
        kind = WIDER[dtype]
        attributes["out_dtype"] = kind
    bias = draws.array((out,), kind) if draws.flag() else None
    return Sample((data, weight, bias), attributes)
