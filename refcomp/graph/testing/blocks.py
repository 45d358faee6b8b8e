"""Blocks of layers that several networks share."""

from __future__ import annotations

from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol

Pair = tuple[int, int]


def conv_bn(
    data: Symbol,
    channels: int,
    name: str,
    *,
    kernel: Pair = (3, 3),
    strides: Pair = (1, 1),
    padding: Pair = (0, 0),
    groups: int = 1,
    epsilon: float = 1e-5,
) -> Symbol:
    """Return a convolution without bias, then a batch norm.

    Args:
        data: images in the layout NCHW.
        channels: the number of channels of the result.
        name: the begin of the names of parameters.
        kernel: rows and columns of a filter.
        strides: elements from one window to the next.
        padding: rows and columns to add at each side.
        groups: the number of groups of channels.
        epsilon: added to the variances of the batch norm.
    """
    net = sym.conv2d(
        data,
        channels=channels,
        kernel_size=kernel,
        strides=strides,
        padding=padding,
        groups=groups,
        use_bias=False,
        name=f"{name}_conv",
    )
    return sym.batch_norm(net, epsilon=epsilon, name=f"{name}_bn")


def conv_bn_relu(
    data: Symbol,
    channels: int,
    name: str,
    *,
    kernel: Pair = (3, 3),
    strides: Pair = (1, 1),
    padding: Pair = (0, 0),
    groups: int = 1,
    epsilon: float = 1e-5,
) -> Symbol:
    """Return a convolution without bias, a batch norm and a rectifier; see `conv_bn`."""
    net = conv_bn(
        data,
        channels,
        name,
        kernel=kernel,
        strides=strides,
        padding=padding,
        groups=groups,
        epsilon=epsilon,
    )
    return sym.relu(net, name=f"{name}_relu")


def conv_relu(
    data: Symbol,
    channels: int,
    name: str,
    *,
    kernel: Pair = (3, 3),
    strides: Pair = (1, 1),
    padding: Pair = (0, 0),
) -> Symbol:
    """Return a convolution with a bias, then a rectifier."""
    net = sym.conv2d(
        data,
        channels=channels,
        kernel_size=kernel,
        strides=strides,
        padding=padding,
        name=name,
    )
    return sym.relu(net, name=f"{name}_relu")


def classifier(data: Symbol, num_classes: int, name: str = "fc") -> Symbol:
    """Return the probabilities of classes, from the means of all channels."""
    net = sym.global_avg_pool2d(data, name="pool")
    net = sym.flatten(net, name="flatten")
    net = sym.dense(net, units=num_classes, name=name)
    return sym.softmax(net, name="softmax")
