"""Inception, version 3, without its auxiliary classifier.

Source: Szegedy et al., Rethinking the Inception Architecture for Computer Vision, 2015. The numbers
of channels are those of torchvision.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.blocks import Pair, classifier, conv_bn_relu
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray

_EPSILON = 1e-3


def _conv(
    data: Symbol,
    channels: int,
    name: str,
    kernel: Pair = (1, 1),
    stride: int = 1,
    is_padded: bool = True,
) -> Symbol:
    """Return a convolution; padding keeps the extents of images."""
    rows, columns = kernel
    padding = (rows // 2, columns // 2) if is_padded else (0, 0)
    return conv_bn_relu(
        data,
        channels,
        name,
        kernel=kernel,
        strides=(stride, stride),
        padding=padding,
        epsilon=_EPSILON,
    )


def _shrinking_pool(data: Symbol, name: str) -> Symbol:
    return sym.max_pool2d(data, pool_size=(3, 3), strides=(2, 2), name=name)


def _pooled(data: Symbol, channels: int, name: str) -> Symbol:
    """Return the branch of a block that takes means of neighbours first."""
    net = sym.avg_pool2d(
        data,
        pool_size=(3, 3),
        padding=(1, 1),
        count_include_pad=True,
        name=f"{name}_means",
    )
    return _conv(net, channels, f"{name}_pool")


def _small_filters(data: Symbol, pooled: int, name: str) -> Symbol:
    """Return block A: filters of 1, 5 and twice 3 rows."""
    one = _conv(data, 64, f"{name}_1")
    five = _conv(data, 48, f"{name}_5_1")
    five = _conv(five, 64, f"{name}_5_2", (5, 5))
    three = _conv(data, 64, f"{name}_3_1")
    three = _conv(three, 96, f"{name}_3_2", (3, 3))
    three = _conv(three, 96, f"{name}_3_3", (3, 3))
    branches = [one, five, three, _pooled(data, pooled, name)]
    return sym.concatenate(*branches, axis=1, name=f"{name}_concat")


def _first_reduction(data: Symbol, name: str) -> Symbol:
    """Return block B, which halves the rows."""
    three = _conv(data, 384, f"{name}_3", (3, 3), stride=2, is_padded=False)
    double = _conv(data, 64, f"{name}_double_1")
    double = _conv(double, 96, f"{name}_double_2", (3, 3))
    double = _conv(double, 96, f"{name}_double_3", (3, 3), stride=2, is_padded=False)
    pool = _shrinking_pool(data, f"{name}_pool")
    return sym.concatenate(three, double, pool, axis=1, name=f"{name}_concat")


def _long_filters(data: Symbol, inside: int, name: str) -> Symbol:
    """Return block C: filters of 7 rows or 7 columns."""
    one = _conv(data, 192, f"{name}_1")
    seven = _conv(data, inside, f"{name}_7_1")
    seven = _conv(seven, inside, f"{name}_7_2", (1, 7))
    seven = _conv(seven, 192, f"{name}_7_3", (7, 1))
    double = _conv(data, inside, f"{name}_double_1")
    for number, kernel in enumerate(((7, 1), (1, 7), (7, 1)), 2):
        double = _conv(double, inside, f"{name}_double_{number}", kernel)
    double = _conv(double, 192, f"{name}_double_5", (1, 7))
    branches = [one, seven, double, _pooled(data, 192, name)]
    return sym.concatenate(*branches, axis=1, name=f"{name}_concat")


def _second_reduction(data: Symbol, name: str) -> Symbol:
    """Return block D, which halves the rows."""
    three = _conv(data, 192, f"{name}_3_1")
    three = _conv(three, 320, f"{name}_3_2", (3, 3), stride=2, is_padded=False)
    seven = _conv(data, 192, f"{name}_7_1")
    seven = _conv(seven, 192, f"{name}_7_2", (1, 7))
    seven = _conv(seven, 192, f"{name}_7_3", (7, 1))
    seven = _conv(seven, 192, f"{name}_7_4", (3, 3), stride=2, is_padded=False)
    pool = _shrinking_pool(data, f"{name}_pool")
    return sym.concatenate(three, seven, pool, axis=1, name=f"{name}_concat")


def _split_filters(data: Symbol, name: str) -> Symbol:
    """Return block E: filters of 3 rows beside filters of 3 columns."""
    one = _conv(data, 320, f"{name}_1")
    three = _conv(data, 384, f"{name}_3_1")
    double = _conv(data, 448, f"{name}_double_1")
    double = _conv(double, 384, f"{name}_double_2", (3, 3))
    branches = [one]
    for net, label in ((three, f"{name}_3"), (double, f"{name}_double")):
        branches.append(_conv(net, 384, f"{label}_row", (1, 3)))
        branches.append(_conv(net, 384, f"{label}_column", (3, 1)))
    branches.append(_pooled(data, 192, name))
    return sym.concatenate(*branches, axis=1, name=f"{name}_concat")


def get_symbol(num_classes: int = 1000) -> Symbol:
    """Return the network, for images of 299 rows; at least 75.

    Args:
        num_classes: the number of classes.

    Source: NNVM, nnvm.testing.inception_v3.

    Example::

        >>> net = rc.graph.testing.inception_v3.get_symbol()
        >>> net.list_output_names()
        ['softmax_output']
    """
    net = sym.Variable("data")
    net = _conv(net, 32, "stem1", (3, 3), stride=2, is_padded=False)
    net = _conv(net, 32, "stem2", (3, 3), is_padded=False)
    net = _conv(net, 64, "stem3", (3, 3))
    net = _shrinking_pool(net, "stem_pool1")
    net = _conv(net, 80, "stem4", is_padded=False)
    net = _conv(net, 192, "stem5", (3, 3), is_padded=False)
    net = _shrinking_pool(net, "stem_pool2")
    for number, pooled in enumerate((32, 64, 64), 1):
        net = _small_filters(net, pooled, f"small{number}")
    net = _first_reduction(net, "reduction1")
    for number, inside in enumerate((128, 160, 160, 192), 1):
        net = _long_filters(net, inside, f"long{number}")
    net = _second_reduction(net, "reduction2")
    for number in (1, 2):
        net = _split_filters(net, f"split{number}")
    return classifier(net, num_classes)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 299, 299),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return the network and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(num_classes)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
