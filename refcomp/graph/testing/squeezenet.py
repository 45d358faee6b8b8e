"""SqueezeNets, versions 1.0 and 1.1.

Source: Iandola et al., SqueezeNet, 2016. Pools round their extents up, as in torchvision.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.blocks import conv_relu
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray

# Squeezed and expanded channels of each block; None is a pool.
_BLOCKS: dict[str, tuple[tuple[int, int] | None, ...]] = {
    "1.0": (
        None,
        *((16, 64), (16, 64), (32, 128), None),
        *((32, 128), (48, 192), (48, 192), (64, 256), None, (64, 256)),
    ),
    "1.1": (
        None,
        *((16, 64), (16, 64), None),
        *((32, 128), (32, 128), None),
        *((48, 192), (48, 192), (64, 256), (64, 256)),
    ),
}


def _fire(data: Symbol, squeezed: int, expanded: int, name: str) -> Symbol:
    """Return a block that narrows the data, and expands it by two kinds of filters."""
    net = conv_relu(data, squeezed, f"{name}_squeeze", kernel=(1, 1))
    small = conv_relu(net, expanded, f"{name}_expand1x1", kernel=(1, 1))
    large = conv_relu(net, expanded, f"{name}_expand3x3", padding=(1, 1))
    return sym.concatenate(small, large, axis=1, name=f"{name}_concat")


def get_symbol(num_classes: int = 1000, version: str = "1.0") -> Symbol:
    """Return a SqueezeNet.

    Args:
        num_classes: the number of classes.
        version: "1.0" or "1.1".

    Raises:
        UserError: there is no such version.

    Source: NNVM, nnvm.testing.squeezenet.

    Example::

        >>> net = rc.graph.testing.squeezenet.get_symbol(version="1.1")
        >>> net.infer_shape(data=(1, 3, 224, 224))[1]
        [(1, 1000)]
    """
    if version not in _BLOCKS:
        raise UserError(
            f"no SqueezeNet has version {version!r}", remedy='give "1.0" or "1.1"'
        )
    is_old = version == "1.0"
    net = conv_relu(
        sym.Variable("data"),
        96 if is_old else 64,
        "conv1",
        kernel=(7, 7) if is_old else (3, 3),
        strides=(2, 2),
    )
    for number, block in enumerate(_BLOCKS[version], 1):
        if block is None:
            net = sym.max_pool2d(
                net,
                pool_size=(3, 3),
                strides=(2, 2),
                ceil_mode=True,
                name=f"pool{number}",
            )
        else:
            net = _fire(net, *block, f"fire{number}")
    net = sym.dropout(net, rate=0.5, name="drop")
    net = conv_relu(net, num_classes, "conv10", kernel=(1, 1))
    net = sym.global_avg_pool2d(net, name="pool")
    return sym.softmax(sym.flatten(net, name="flatten"), name="softmax")


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return a SqueezeNet and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(num_classes, version)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
