"""Operators that reduce windows, or all spatial axes."""

from __future__ import annotations

import math

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.converters.windows import (
    MAX_SPATIAL,
    NodeWindows,
    auto_pad,
    padded_windows,
    read_windows,
    require_spatial_extents,
    spatial_rank,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value
from refcomp.topi.operator import Attribute


def _kernel(node: OnnxNode) -> tuple[int, ...]:
    kernel = node.attributes.get("kernel_shape")
    if kernel is None:  # version 1 of LpPool does not require it
        raise UserError(
            "its attribute kernel_shape is missing",
            remedy="give the extent of a window along each spatial axis",
        )
    return tuple(kernel)


def _window_attributes(node: OnnxNode, data: Value) -> dict[str, Attribute]:
    """Return the attributes of topi's poolings that describe windows."""
    windows = padded_windows(node, data, _kernel(node))
    # With auto_pad, ONNX's formulas for both modes give the same number of windows.
    is_ceil = bool(node.attributes.get("ceil_mode", 0)) and auto_pad(node) == "NOTSET"
    if is_ceil:
        require_spatial_extents(data)
    return {
        "kernel": windows.kernel,
        "strides": windows.strides,
        "padding": windows.padding,
        "dilation": windows.dilation,
        "ceil_mode": is_ceil,
    }


@converter("AveragePool")
def average_pool(node: OnnxNode) -> Value:
    """Convert AveragePool of any version. Padding does not count before version 7."""
    data = node.required(0)
    counts = bool(node.attributes.get("count_include_pad", 0))
    return node.make(
        f"avg_pool{spatial_rank(data)}d",
        [data],
        **_window_attributes(node, data),
        count_include_pad=counts,
    )


@converter("MaxPool")
def max_pool(node: OnnxNode) -> list[Value]:
    """Convert MaxPool of any version; since version 8, it also returns places of the maxima."""
    data = node.required(0)
    attributes = _window_attributes(node, data)
    if not node.is_used(1):
        return [node.make(f"max_pool{spatial_rank(data)}d", [data], **attributes)]
    maxima, places = node.make_all("max_pool_with_indices", [data], **attributes)
    if node.attributes.get("storage_order", 0):
        places = _column_major(node, data, places)
    return [maxima, places]


def _column_major(node: OnnxNode, data: Value, places: Value) -> Value:
    """Return places in images whose first spatial axis varies fastest."""
    extents = require_spatial_extents(data)
    size = node.constant(math.prod(extents), "int64")
    rest = node.make("floor_mod", [places, size])
    result = node.make("subtract", [places, rest])  # the first element of the image
    factor = math.prod(extents)
    for extent in reversed(extents):
        factor //= max(extent, 1)
        width = node.constant(extent, "int64")
        position = node.make("floor_mod", [rest, width])
        rest = node.make("floor_divide", [rest, width])
        scaled = node.make("multiply", [position, node.constant(factor, "int64")])
        result = node.make("add", [result, scaled])
    zero = node.constant(0, "int64")
    is_padding = node.make("less", [places, zero])  # of a window outside of the data
    return node.make("where", [is_padding, places, result])


@converter("LpPool")
def lp_pool(node: OnnxNode) -> Value:
    """Convert LpPool of any version. In version 1, the degree of the norm is a float."""
    data = node.required(0)
    operator = f"lp_pool{spatial_rank(data)}d"
    attributes = _window_attributes(node, data)
    return _with_degree(node, data, operator, attributes)


def _with_degree(
    node: OnnxNode, data: Value, operator: str, attributes: dict[str, Attribute]
) -> Value:
    """Return norms of the degree that the node asks for, by an operator for whole degrees."""
    p = _degree(node)
    if p == int(p):
        return node.make(operator, [data], **attributes, p=int(p))
    powers = _power(node, node.make("abs", [data]), p)
    return _power(node, node.make(operator, [powers], **attributes, p=1), 1 / p)


def _degree(node: OnnxNode) -> float:
    p = float(node.attributes.get("p", 2))
    if not 0 < p < math.inf:
        raise UserError(
            f"its attribute p is {p:g}",
            why="a norm has a positive degree",
            remedy="give a number above 0",
        )
    return p


def _power(node: OnnxNode, value: Value, exponent: float) -> Value:
    return node.make("power", [value, node.constant(exponent, value.dtype.dtype)])


def _spatial_axes(data: Value) -> tuple[int, ...]:
    if len(data.shape) < 2:
        raise UserError(
            f"its input {data} has fewer than 2 dimensions",
            why="the first two are the batch and the channels",
            remedy="give a tensor [batch, channels, ...]",
        )
    return tuple(range(2, len(data.shape)))


def _global(node: OnnxNode, pooling: str, reduction: str) -> Value:
    """Reduce all spatial axes, however many there are."""
    data = node.required(0)
    axes = _spatial_axes(data)
    if not axes:
        return node.make("identity", [data])
    if len(axes) <= MAX_SPATIAL:
        return node.make(f"{pooling}{len(axes)}d", [data])
    return node.make(reduction, [data], axis=axes, keepdims=True)


@converter("GlobalAveragePool")
def global_average_pool(node: OnnxNode) -> Value:
    """Convert GlobalAveragePool of any version."""
    return _global(node, "global_avg_pool", "mean")


@converter("GlobalMaxPool")
def global_max_pool(node: OnnxNode) -> Value:
    """Convert GlobalMaxPool of any version."""
    return _global(node, "global_max_pool", "max")


@converter("GlobalLpPool")
def global_lp_pool(node: OnnxNode) -> Value:
    """Convert GlobalLpPool of any version. In version 1, the degree is a float."""
    data = node.required(0)
    axes = _spatial_axes(data)
    if 1 <= len(axes) <= MAX_SPATIAL:
        return _with_degree(node, data, f"global_lp_pool{len(axes)}d", {})
    p = _degree(node)
    powers = _power(node, node.make("abs", [data]), p)
    sums = node.make("sum", [powers], axis=axes, keepdims=True) if axes else powers
    return _power(node, sums, 1 / p)


@converter("MaxUnpool")
def max_unpool(node: OnnxNode) -> Value:
    """Convert MaxUnpool of any version.

    Places are those in the tensor without `output_shape`. With it, that tensor is cut or filled
    with zeros at the ends.
    """
    data = node.required(0)
    windows = read_windows(node, data, _kernel(node))
    require_spatial_extents(data)
    wanted = node.input(2)
    result = node.make_fitting(
        "max_unpool",
        [data, node.required(1)],
        kernel=windows.kernel,
        strides=windows.strides,
        padding=windows.padding,
    )
    if wanted is None:
        return result
    return _resized(node, result, node.integers(wanted, "output_shape"), windows)


def _resized(
    node: OnnxNode, result: Value, shape: tuple[int, ...], windows: NodeWindows
) -> Value:
    extents = require_spatial_extents(result)
    if len(shape) != len(extents) + 2 or any(extent < 0 for extent in shape):
        raise UserError(
            f"its output_shape is {list(shape)}",
            why=f"its input has {len(extents) + 2} dimensions",
            remedy="give all extents of the result, from the batch on",
        )
    added = [want - have for want, have in zip(shape[2:], extents, strict=True)]
    if not any(added):
        return result
    before = (0,) * len(shape)
    return node.make("pad", [result], pad_before=before, pad_after=(0, 0, *added))
