"""Networks of the Visual Geometry Group, of 11 to 19 layers.

Source: Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition,
2014.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray

# Number of layers -> convolutions of each stage.
_STAGES = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
_CHANNELS = (64, 128, 256, 512, 512)


def get_symbol(
    num_classes: int = 1000,
    num_layers: int = 11,
    batch_norm: bool = False,
    units: int = 4096,
) -> Symbol:
    """Return a network of stages of convolutions, and three dense layers.

    Args:
        num_classes: the number of classes.
        num_layers: 11, 13, 16 or 19.
        batch_norm: True for a batch norm behind each convolution.
        units: the number of outputs of the first two dense layers.

    Raises:
        UserError: there is no network of so many layers.

    Source: NNVM, nnvm.testing.vgg.

    Example::

        >>> net = rc.graph.testing.vgg.get_symbol(num_layers=16)
        >>> net.infer_shape(data=(1, 3, 224, 224))[1]
        [(1, 1000)]
    """
    if num_layers not in _STAGES:
        raise UserError(
            f"no VGG network has {num_layers!r} layers",
            remedy=f"give one of {', '.join(map(str, _STAGES))}",
        )
    net = sym.Variable("data")
    pairs = zip(_STAGES[num_layers], _CHANNELS, strict=True)
    for stage, (count, channels) in enumerate(pairs, 1):
        for number in range(1, count + 1):
            name = f"conv{stage}_{number}"
            net = sym.conv2d(
                net, channels=channels, kernel_size=(3, 3), padding=(1, 1), name=name
            )
            if batch_norm:
                net = sym.batch_norm(net, name=f"bn{stage}_{number}")
            net = sym.relu(net, name=f"relu{stage}_{number}")
        net = sym.max_pool2d(net, pool_size=(2, 2), strides=(2, 2), name=f"pool{stage}")
    net = sym.flatten(net, name="flatten")
    for number in (6, 7):
        net = sym.dense(net, units=units, name=f"fc{number}")
        net = sym.relu(net, name=f"relu{number}")
        net = sym.dropout(net, rate=0.5, name=f"drop{number}")
    net = sym.dense(net, units=num_classes, name="fc8")
    return sym.softmax(net, name="softmax")


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 11,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    batch_norm: bool = False,
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return a VGG network and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(num_classes, num_layers, batch_norm)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
