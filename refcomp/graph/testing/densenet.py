"""Densely connected networks of 121 to 201 layers.

Source: Huang et al., Densely Connected Convolutional Networks, 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.blocks import Pair, classifier, conv_bn_relu
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray


@dataclass(frozen=True, slots=True)
class _Shape:
    """The first number of channels, the channels of each layer, and the layers of each block."""

    first: int
    growth: int
    blocks: tuple[int, int, int, int]


_SHAPES = {
    121: _Shape(64, 32, (6, 12, 24, 16)),
    161: _Shape(96, 48, (6, 12, 36, 24)),
    169: _Shape(64, 32, (6, 12, 32, 32)),
    201: _Shape(64, 32, (6, 12, 48, 32)),
}
_WIDTH = 4  # channels of the first convolution of a layer, in units of the growth


def _bn_relu_conv(
    data: Symbol, channels: int, name: str, kernel: Pair, padding: Pair
) -> Symbol:
    net = sym.relu(sym.batch_norm(data, name=f"{name}_bn"), name=f"{name}_relu")
    return sym.conv2d(
        net,
        channels=channels,
        kernel_size=kernel,
        padding=padding,
        use_bias=False,
        name=f"{name}_conv",
    )


def _dense_block(data: Symbol, layers: int, growth: int, name: str) -> Symbol:
    """Return the data, with the results of all layers behind it."""
    for number in range(1, layers + 1):
        label = f"{name}_layer{number}"
        net = _bn_relu_conv(data, _WIDTH * growth, f"{label}_1", (1, 1), (0, 0))
        net = _bn_relu_conv(net, growth, f"{label}_2", (3, 3), (1, 1))
        data = sym.concatenate(data, net, axis=1, name=f"{label}_concat")
    return data


def get_symbol(num_classes: int = 1000, num_layers: int = 121) -> Symbol:
    """Return a densely connected network.

    Args:
        num_classes: the number of classes.
        num_layers: 121, 161, 169 or 201.

    Raises:
        UserError: there is no network of so many layers.

    Source: NNVM, nnvm.testing.densenet.

    Example::

        >>> net = rc.graph.testing.densenet.get_symbol()
        >>> net.list_output_names()
        ['softmax_output']
    """
    shape = _SHAPES.get(num_layers)
    if shape is None:
        raise UserError(
            f"no densely connected network has {num_layers!r} layers",
            remedy=f"give one of {', '.join(map(str, _SHAPES))}",
        )
    channels = shape.first
    net = conv_bn_relu(
        sym.Variable("data"),
        channels,
        "stem",
        kernel=(7, 7),
        strides=(2, 2),
        padding=(3, 3),
    )
    net = sym.max_pool2d(
        net, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), name="stem_pool"
    )
    for number, layers in enumerate(shape.blocks, 1):
        net = _dense_block(net, layers, shape.growth, f"block{number}")
        channels += layers * shape.growth
        if number < len(shape.blocks):
            channels //= 2
            name = f"transition{number}"
            net = _bn_relu_conv(net, channels, name, (1, 1), (0, 0))
            net = sym.avg_pool2d(
                net, pool_size=(2, 2), strides=(2, 2), name=f"{name}_pool"
            )
    net = sym.relu(sym.batch_norm(net, name="last_bn"), name="last_relu")
    return classifier(net, num_classes)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 121,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return a densely connected network and random parameters; see `create_workload`."""
    net = get_symbol(num_classes, num_layers)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
