"""Convolutions: plain, transposed, of integers, of quantized tensors, deformable, and causal."""

from __future__ import annotations

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.converters.windows import (
    NodeWindows,
    auto_pad,
    padded_windows,
    read_windows,
    require_spatial_extents,
    shared_padding,
    spatial_rank,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError
from refcomp.topi.operator import Attribute


def _kernel(node: OnnxNode, data: Value, weight: Value) -> tuple[int, ...]:
    """Return the spatial extents of the weights, which kernel_shape must repeat."""
    spatial_rank(data)
    if len(weight.shape) != len(data.shape):
        raise UserError(
            f"its weights are {weight}",
            why=f"its input {data} has {len(data.shape)} dimensions",
            remedy="give weights of as many dimensions",
        )
    extents = require_spatial_extents(weight)
    if not all(isinstance(dim, int) for dim in weight.shape):
        raise NotKnownError
    given = tuple(node.attributes.get("kernel_shape") or extents)
    if given != extents:
        raise UserError(
            f"its attribute kernel_shape is {list(given)}",
            why=f"its weights are {weight}",
            remedy="leave kernel_shape out, or give the extents of the weights",
        )
    return extents


def _attributes(node: OnnxNode, windows: NodeWindows) -> dict[str, Attribute]:
    return {
        "strides": windows.strides,
        "padding": windows.padding,
        "dilation": windows.dilation,
        "groups": int(node.attributes.get("group", 1)),
    }


@converter("Conv")
def conv(node: OnnxNode) -> Value:
    """Convert Conv of any version."""
    data = node.required(0)
    weight = node.required(1)
    windows = padded_windows(node, data, _kernel(node, data, weight))
    bias = node.input(2)
    return _summed(
        node, f"conv{windows.rank}d", (data, weight, bias), _attributes(node, windows)
    )


def _summed(
    node: OnnxNode,
    operator: str,
    operands: tuple[Value, Value, Value | None],
    attributes: dict[str, Attribute],
) -> Value:
    """Return a convolution. Products of floats of 16 bits are added up in f32."""
    data, weight, bias = operands
    if not data.dtype.is_float or data.dtype.bits > 16:
        return node.make_fitting(operator, operands, **attributes)
    shift = None if bias is None else node.cast(bias, "float32")
    sums = node.make_fitting(
        operator, [data, weight, shift], **attributes, out_dtype="float32"
    )
    return node.cast(sums, data.dtype)


@converter("ConvTranspose")
def conv_transpose(node: OnnxNode) -> Value:
    """Convert ConvTranspose of any version.

    The padding follows from `output_shape`, if that is given, or from auto_pad. Negative padding
    extends the result by elements that no window reaches.
    """
    data = node.required(0)
    weight = node.required(1)
    windows = read_windows(node, data, _kernel(node, data, weight))
    rank = windows.rank
    padding, extra = _transposed_padding(node, data, windows)
    attributes = _attributes(node, windows)
    attributes["padding"] = tuple(max(0, cut) for cut in padding)
    before = tuple(max(0, -cut) for cut in padding[:rank])
    after = tuple(
        more + max(0, -cut) for more, cut in zip(extra, padding[rank:], strict=True)
    )
    operator = f"conv{rank}d_transpose"
    steps = zip(windows.strides, windows.dilation, strict=True)
    is_short = all(more < max(pair) for more, pair in zip(after, steps, strict=True))
    bias = node.input(2)
    if is_short and not any(before):
        attributes["output_padding"] = after
        return _summed(node, operator, (data, weight, bias), attributes)
    result = _summed(node, operator, (data, weight, None), attributes)
    result = node.make(
        "pad", [result], pad_before=(0, 0, *before), pad_after=(0, 0, *after)
    )
    if bias is None:
        return result
    shift = node.make("reshape", [bias], shape=(-1, *(1,) * rank))
    return node.make("add", [result, shift])


def _transposed_padding(
    node: OnnxNode, data: Value, windows: NodeWindows
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return by how much the result is cut off at both ends, and extended at the ends."""
    rank = windows.rank
    extra = tuple(node.attributes.get("output_padding") or (0,) * rank)
    if len(extra) != rank or any(more < 0 for more in extra):
        raise UserError(
            f"its attribute output_padding is {list(extra)}",
            why=f"its input has {rank} spatial axes",
            remedy="give a number that is not negative for each of them",
        )
    mode = auto_pad(node)
    wanted = tuple(node.attributes.get("output_shape") or ())
    if wanted:
        spare = _spare(data, windows, wanted)
    elif mode.startswith("SAME"):  # the result has stride elements for each of the data
        reaches = map(windows.reach, range(rank))
        spare = [r - s for r, s in zip(reaches, windows.strides, strict=True)]
    else:
        return windows.padding, extra
    totals = [less + more for less, more in zip(spare, extra, strict=True)]
    # ONNX corrected its equation for an odd total later. Its text, and other programs, always
    # had the odd element at the end for SAME_UPPER alone.
    return shared_padding(totals, mode == "SAME_UPPER"), extra


def _spare(data: Value, windows: NodeWindows, wanted: tuple[int, ...]) -> list[int]:
    """Return by how much all windows together exceed the attribute output_shape."""
    wanted = wanted[-windows.rank :]  # some models give batch and channels, too
    if len(wanted) != windows.rank or any(extent < 0 for extent in wanted):
        raise UserError(
            f"its attribute output_shape is {list(wanted)}",
            why=f"its input has {windows.rank} spatial axes",
            remedy="give an extent for each of them",
        )
    sizes = require_spatial_extents(data)
    return [
        windows.strides[k] * (size - 1) + windows.reach(k) - wanted[k]
        for k, size in enumerate(sizes)
    ]


@converter("ConvInteger")
def conv_integer(node: OnnxNode) -> Value:
    """Convert ConvInteger. Padding counts as the zero point, so that it adds nothing."""
    data = node.required(0)
    weight = node.required(1)
    windows = padded_windows(node, data, _kernel(node, data, weight))
    return _integer_sums(node, windows, data, weight, (node.input(2), node.input(3)))


def _integer_sums(
    node: OnnxNode,
    windows: NodeWindows,
    data: Value,
    weight: Value,
    zero_points: tuple[Value | None, Value | None],
) -> Value:
    """Return the convolution of integers less their zero points, as int32."""
    if windows.rank == 3:
        whole = _shifted(node, data, zero_points[0], per_channel=False)
        factors = _shifted(node, weight, zero_points[1], per_channel=True)
        return node.make_fitting(
            "conv3d", [whole, factors], **_attributes(node, windows)
        )
    points = [_vector(node, point) for point in zero_points]
    if windows.rank == 2:
        return node.make_fitting(
            "conv2d_integer", [data, weight, *points], **_attributes(node, windows)
        )
    images = [node.make("expand_dims", [value], axis=2) for value in (data, weight)]
    attributes = _attributes(node, windows.with_axis())
    sums = node.make_fitting("conv2d_integer", [*images, *points], **attributes)
    return node.make("squeeze", [sums], axis=(2,))


def _shifted(
    node: OnnxNode, data: Value, zero_point: Value | None, *, per_channel: bool
) -> Value:
    """Return integers less their zero point, as int32."""
    wide = node.cast(data, "int32")
    if zero_point is None:
        return wide
    shape = (-1, *(1,) * (len(data.shape) - 1)) if per_channel else (-1,)
    shift = node.make("reshape", [node.cast(zero_point, "int32")], shape=shape)
    return node.make("subtract", [wide, shift])


def _vector(node: OnnxNode, value: Value | None) -> Value | None:
    """Return a scale or a zero point with at most one dimension."""
    if value is None or len(value.shape) <= 1:
        return value
    return node.make("reshape", [value], shape=(-1,))


@converter("QLinearConv")
def qlinear_conv(node: OnnxNode) -> Value:
    """Convert QLinearConv."""
    data, data_scale, data_zero, weight, weight_scale, weight_zero, scale, zero = (
        node.required(place) for place in range(8)
    )
    windows = padded_windows(node, data, _kernel(node, data, weight))
    bias = node.input(8)
    if windows.rank == 3:
        sums = _integer_sums(node, windows, data, weight, (data_zero, weight_zero))
        if bias is not None:
            shift = node.make("reshape", [bias], shape=(-1, 1, 1, 1))
            sums = node.make("add", [sums, shift])
        return _requantized(node, sums, (data_scale, weight_scale, scale, zero))
    if windows.rank == 1:
        data = node.make("expand_dims", [data], axis=2)
        weight = node.make("expand_dims", [weight], axis=2)
        windows = windows.with_axis()
    data_terms = [_vector(node, value) for value in (data_scale, data_zero)]
    weight_terms = [_vector(node, value) for value in (weight_scale, weight_zero)]
    result_terms = [_vector(node, value) for value in (scale, zero)]
    result = node.make_fitting(
        "qlinear_conv2d",
        [data, *data_terms, weight, *weight_terms, *result_terms, bias],
        **_attributes(node, windows),
    )
    if spatial_rank(node.required(0)) == 1:
        return node.make("squeeze", [result], axis=(2,))
    return result


def _requantized(
    node: OnnxNode, sums: Value, scales: tuple[Value, Value, Value, Value]
) -> Value:
    """Return int32 sums of products as quantized integers."""
    data_scale, weight_scale, scale, zero = scales
    factor = node.make("multiply", [data_scale, weight_scale])
    zeros = node.make("zeros_like", [node.cast(factor, "int32")])
    points = [_vector(node, value) for value in (scale, zero)]
    return node.make("requantize", [sums, factor, zeros, *points], axis=1)


@converter("DeformConv", since=19)
def deform_conv(node: OnnxNode) -> Value:
    """Convert DeformConv of any version, for images."""
    data, weight, offset = (node.required(place) for place in range(3))
    kernel = _kernel(node, data, weight)
    if spatial_rank(data) != 2:
        raise Unsupported(
            "its input has not two spatial axes: ONNX defines interpolation for images"
        )
    windows = read_windows(node, data, kernel)
    return node.make_fitting(
        "deformable_conv2d",
        [data, offset, weight, node.input(3), node.input(4)],
        **_attributes(node, windows),
        offset_groups=int(node.attributes.get("offset_group", 1)),
    )


_ACTIVATIONS = ("none", "silu", "swish")


@converter("CausalConvWithState", since=27)
def causal_conv_with_state(node: OnnxNode) -> list[Value]:
    """Convert CausalConvWithState: a depthwise convolution along time, and its last inputs."""
    data = node.required(0)
    weight = node.required(1)
    (size,) = _kernel(node, data, weight)
    channels = weight.shape[0]
    assert isinstance(channels, int)
    past = node.input(3)
    before = size - 1
    extended = (
        node.make("pad", [data], pad_before=(0, 0, before), pad_after=(0, 0, 0))
        if past is None
        else node.make_fitting("concatenate", [past, data], axis=2)
    )
    shift = node.input(2)
    if data.dtype.bits > 16:
        result = node.make_fitting("conv1d", [extended, weight, shift], groups=channels)
    else:
        shift = None if shift is None else node.cast(shift, "float32")
        operands = [extended, weight, shift]
        result = node.make_fitting(
            "conv1d", operands, groups=channels, out_dtype="float32"
        )
    name = str(node.attributes.get("activation", "none"))
    if name not in _ACTIVATIONS:
        raise UserError(
            f"its attribute activation is {name!r}",
            remedy=advise(name, _ACTIVATIONS, f"use {', '.join(_ACTIVATIONS)}"),
        )
    if name != "none":
        result = node.make("silu", [result])
    result = node.cast(result, data.dtype)
    if not node.is_used(1):
        return [result]
    end = extended.shape[2]
    if not isinstance(end, int):
        raise NotKnownError
    state = node.make(
        "strided_slice", [extended], begin=(end - before,), end=(end,), axes=(2,)
    )
    return [result, state]
