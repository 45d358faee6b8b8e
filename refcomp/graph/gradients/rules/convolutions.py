"""Rules of convolutions of images, by the operators that compute their gradients.

Convolutions whose products are added up in a wider dtype are left to `vjp`, as are other layouts.
"""

from __future__ import annotations

from refcomp.graph.gradients.pullback import (
    Adjoints,
    Pullback,
    Rule,
    constant_extents,
)
from refcomp.graph.gradients.rules.products import is_widened
from refcomp.graph.graph import Value
from refcomp.topi.operator import Attribute

_WINDOWS = ("strides", "padding", "dilation")


def _with_bias(
    pull: Pullback, adjoints: list[Value | None], channel: int
) -> list[Value | None]:
    """Return the adjoints, and that of the bias if one is given."""
    if pull.has_input(2):
        axes = tuple(axis for axis in range(4) if axis != channel)
        adjoints.append(pull.add("sum", pull.head, axis=axes))
    return adjoints


def _conv2d(pull: Pullback) -> Adjoints | None:
    data, weight = pull.input(0), pull.input(1)
    size = constant_extents(data.shape[1:])
    kernel = constant_extents(weight.shape)
    if is_widened(pull) or size is None or kernel is None:
        return None
    windows = pull.given(*_WINDOWS, "groups")
    adjoints: list[Value | None] = [
        pull.add("conv2d_backward_data", pull.head, weight, size=size[1:], **windows),
        pull.add(
            "conv2d_backward_weight",
            pull.head,
            data,
            kernel_size=kernel[2:],
            **windows,
        ),
    ]
    return _with_bias(pull, adjoints, channel=1)


def _depthwise_nchw(pull: Pullback) -> Adjoints | None:
    """Return the adjoints of a convolution in as many groups as there are channels."""
    data, weight = pull.input(0), pull.input(1)
    size = constant_extents(data.shape[1:])
    kernel = constant_extents(weight.shape)
    if is_widened(pull) or size is None or kernel is None:
        return None
    channels, multiplier, *window = kernel
    windows = {**pull.given(*_WINDOWS), "groups": channels}
    flat = pull.add("reshape", weight, shape=(channels * multiplier, 1, *window))
    by_data = pull.add(
        "conv2d_backward_data", pull.head, flat, size=size[1:], **windows
    )
    by_weight = pull.add(
        "conv2d_backward_weight",
        pull.head,
        data,
        kernel_size=tuple(window),
        **windows,
    )
    shaped = pull.add("reshape", by_weight, shape=kernel)
    return _with_bias(pull, [by_data, shaped], channel=1)


def _depthwise_nhwc(pull: Pullback) -> Adjoints | None:
    data, weight = pull.input(0), pull.input(1)
    size = constant_extents(data.shape[1:])
    kernel = constant_extents(weight.shape)
    if is_widened(pull) or size is None or kernel is None:
        return None
    windows = pull.given(*_WINDOWS)
    name = "depthwise_conv2d_backward"
    adjoints: list[Value | None] = [
        pull.add(f"{name}_input_nhwc", pull.head, weight, size=size[:2], **windows),
        pull.add(
            f"{name}_weight_nhwc",
            pull.head,
            data,
            kernel_size=kernel[:2],
            **windows,
        ),
    ]
    return _with_bias(pull, adjoints, channel=3)


def _conv2d_transpose(pull: Pullback) -> Adjoints | None:
    """Return the adjoints, in which data and result of the convolution change places."""
    data, weight = pull.input(0), pull.input(1)
    result = constant_extents(pull.output.shape[1:])
    kernel = constant_extents(weight.shape)
    is_other_layout = pull.attribute("layout") != "NCHW"
    if is_widened(pull) or is_other_layout or result is None or kernel is None:
        return None
    windows: dict[str, Attribute] = pull.given(*_WINDOWS, "groups")
    adjoints: list[Value | None] = [
        pull.add("conv2d", pull.head, weight, **windows),
        pull.add(
            "conv2d_backward_weight",
            data,
            pull.head,
            kernel_size=kernel[2:],
            **windows,
        ),
    ]
    return _with_bias(pull, adjoints, channel=1)


RULES: dict[str, Rule] = {
    "conv2d": _conv2d,
    "group_conv2d_nchw": _conv2d,
    "depthwise_conv2d_nchw": _depthwise_nchw,
    "depthwise_conv2d_nhwc": _depthwise_nhwc,
    "conv2d_transpose": _conv2d_transpose,
}
