"""A perceptron with two hidden layers, for images of digits."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray


def get_symbol(num_classes: int = 10) -> Symbol:
    """Return the network: layers of 128 and 64 units, then the classes.

    Args:
        num_classes: the number of classes.

    Source: NNVM, nnvm.testing.mlp.

    Example::

        >>> net = rc.graph.testing.mlp.get_symbol()
        >>> net.infer_shape(data=(1, 1, 28, 28))[1]
        [(1, 10)]
    """
    net = sym.flatten(sym.Variable("data"), name="flatten")
    for number, units in enumerate((128, 64), 1):
        net = sym.dense(net, units=units, name=f"fc{number}")
        net = sym.relu(net, name=f"relu{number}")
    net = sym.dense(net, units=num_classes, name="fc3")
    return sym.softmax(net, name="softmax")


def get_workload(
    batch_size: int = 1,
    num_classes: int = 10,
    image_shape: Sequence[int] = (1, 28, 28),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return the network and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(num_classes)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
