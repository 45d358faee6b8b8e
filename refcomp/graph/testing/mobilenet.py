"""MobileNets, versions 1 and 2.

Source: Howard et al., MobileNets, 2017; Sandler et al., MobileNetV2, 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.blocks import classifier, conv_bn, conv_bn_relu
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray

# Channels and stride of each separable block of version 1.
_BLOCKS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
# Expansion, channels, count and first stride of each stage of version 2.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _separable(
    data: Symbol, inside: int, channels: int, stride: int, name: str
) -> Symbol:
    """Return a depthwise convolution, then a convolution of single pixels."""
    net = conv_bn_relu(
        data,
        inside,
        f"{name}_depth",
        strides=(stride, stride),
        padding=(1, 1),
        groups=inside,
    )
    return conv_bn_relu(net, channels, f"{name}_point", kernel=(1, 1))


def _first_version(data: Symbol, alpha: float) -> Symbol:
    inside = int(32 * alpha)
    net = conv_bn_relu(data, inside, "stem", strides=(2, 2), padding=(1, 1))
    for number, (wide, stride) in enumerate(_BLOCKS, 1):
        channels = int(wide * alpha)
        net = _separable(net, inside, channels, stride, f"block{number}")
        inside = channels
    return net


def _relu6(data: Symbol, name: str) -> Symbol:
    return sym.clip(data, a_min=0.0, a_max=6.0, name=name)


def _inverted(
    data: Symbol, inside: int, channels: int, expansion: int, stride: int, name: str
) -> Symbol:
    """Return a block that widens the data, and narrows it again without a rectifier."""
    wide = inside * expansion
    net = data
    if expansion != 1:
        net = conv_bn(net, wide, f"{name}_expand", kernel=(1, 1))
        net = _relu6(net, f"{name}_expand_relu")
    net = conv_bn(
        net,
        wide,
        f"{name}_depth",
        strides=(stride, stride),
        padding=(1, 1),
        groups=wide,
    )
    net = _relu6(net, f"{name}_depth_relu")
    net = conv_bn(net, channels, f"{name}_project", kernel=(1, 1))
    if stride == 1 and inside == channels:
        return sym.elemwise_add(net, data, name=f"{name}_add")
    return net


def _divisible(channels: float) -> int:
    """Return the nearest multiple of 8, at least 8, that loses less than a tenth."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _second_version(data: Symbol, alpha: float) -> Symbol:
    inside = _divisible(32 * alpha)
    net = conv_bn(data, inside, "stem", strides=(2, 2), padding=(1, 1))
    net = _relu6(net, "stem_relu")
    number = 0
    for expansion, wide, count, first in _STAGES:
        channels = _divisible(wide * alpha)
        for repeat in range(count):
            number += 1
            stride = first if repeat == 0 else 1
            net = _inverted(net, inside, channels, expansion, stride, f"block{number}")
            inside = channels
    net = conv_bn(net, _divisible(1280 * max(alpha, 1.0)), "head", kernel=(1, 1))
    return _relu6(net, "head_relu")


def get_symbol(num_classes: int = 1000, alpha: float = 1.0, version: int = 1) -> Symbol:
    """Return a MobileNet.

    Args:
        num_classes: the number of classes.
        alpha: the factor of all numbers of channels.
        version: 1 or 2.

    Raises:
        UserError: there is no such version, or no channel is left.

    Source: NNVM, nnvm.testing.mobilenet.

    Example::

        >>> net = rc.graph.testing.mobilenet.get_symbol(version=2)
        >>> net.infer_shape(data=(1, 3, 224, 224))[1]
        [(1, 1000)]
    """
    if version not in (1, 2):
        raise UserError(f"no MobileNet has version {version!r}", remedy="give 1 or 2")
    if not 1 / 32 <= alpha <= 16:
        raise UserError(
            f"a MobileNet cannot have alpha {alpha!r}", remedy="give 1 / 32 to 16"
        )
    make = _first_version if version == 1 else _second_version
    return classifier(make(sym.Variable("data"), alpha), num_classes)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    version: int = 1,
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return a MobileNet and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(num_classes, alpha, version)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
