"""Residual networks of 18 to 152 layers.

Source: He et al., Deep Residual Learning for Image Recognition, 2015. Blocks with bottlenecks have
the stride in their second convolution, as in torchvision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.foundation.errors import UserError
from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.blocks import classifier, conv_bn, conv_bn_relu
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray


@dataclass(frozen=True, slots=True)
class _Depth:
    """The blocks of each stage, and whether they have bottlenecks."""

    blocks: tuple[int, int, int, int]
    has_bottlenecks: bool


_DEPTHS = {
    18: _Depth((2, 2, 2, 2), False),
    34: _Depth((3, 4, 6, 3), False),
    50: _Depth((3, 4, 6, 3), True),
    101: _Depth((3, 4, 23, 3), True),
    152: _Depth((3, 8, 36, 3), True),
}
_EXPANSION = 4  # of the channels behind a bottleneck


def _block(
    data: Symbol, inside: int, channels: int, stride: int, name: str, is_same: bool
) -> Symbol:
    """Return a residual block. The first of a stage has a convolution in its shortcut."""
    strides = (stride, stride)
    if channels == inside:
        net = conv_bn_relu(data, inside, f"{name}_1", strides=strides, padding=(1, 1))
        net = conv_bn(net, channels, f"{name}_2", padding=(1, 1))
    else:
        net = conv_bn_relu(data, inside, f"{name}_1", kernel=(1, 1))
        net = conv_bn_relu(net, inside, f"{name}_2", strides=strides, padding=(1, 1))
        net = conv_bn(net, channels, f"{name}_3", kernel=(1, 1))
    shortcut = data
    if not is_same:
        shortcut = conv_bn(
            data, channels, f"{name}_shortcut", kernel=(1, 1), strides=strides
        )
    total = sym.elemwise_add(net, shortcut, name=f"{name}_add")
    return sym.relu(total, name=f"{name}_relu")


def get_symbol(num_classes: int = 1000, num_layers: int = 18) -> Symbol:
    """Return a residual network.

    Args:
        num_classes: the number of classes.
        num_layers: 18, 34, 50, 101 or 152.

    Raises:
        UserError: there is no network of so many layers.

    Source: NNVM, nnvm.testing.resnet.

    Example::

        >>> net = rc.graph.testing.resnet.get_symbol(num_layers=18)
        >>> net.infer_shape(data=(1, 3, 224, 224))[1]
        [(1, 1000)]
    """
    depth = _DEPTHS.get(num_layers)
    if depth is None:
        raise UserError(
            f"no residual network has {num_layers!r} layers",
            remedy=f"give one of {', '.join(map(str, _DEPTHS))}",
        )
    net = conv_bn_relu(
        sym.Variable("data"), 64, "stem", kernel=(7, 7), strides=(2, 2), padding=(3, 3)
    )
    net = sym.max_pool2d(
        net, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), name="stem_pool"
    )
    for stage, count in enumerate(depth.blocks):
        inside = 64 << stage
        channels = inside * _EXPANSION if depth.has_bottlenecks else inside
        for number in range(count):
            is_first = number == 0
            is_same = not is_first or (stage == 0 and not depth.has_bottlenecks)
            net = _block(
                net,
                inside,
                channels,
                stride=2 if is_first and stage else 1,
                name=f"stage{stage + 1}_block{number + 1}",
                is_same=is_same,
            )
    return classifier(net, num_classes)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return a residual network and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(num_classes, num_layers)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
