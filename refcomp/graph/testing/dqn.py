"""The deep Q-network that plays Atari games.

Source: Mnih et al., Human-level control through deep reinforcement learning, Nature, 2015.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.blocks import conv_relu
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray


def get_symbol(num_actions: int = 18) -> Symbol:
    """Return the network: four frames of 84 rows become a value for each action.

    Args:
        num_actions: the number of actions.

    Source: NNVM, nnvm.testing.dqn.

    Example::

        >>> net = rc.graph.testing.dqn.get_symbol()
        >>> net.infer_shape(data=(1, 4, 84, 84))[1]
        [(1, 18)]
    """
    net = sym.Variable("data")
    net = conv_relu(net, 32, "conv1", kernel=(8, 8), strides=(4, 4))
    net = conv_relu(net, 64, "conv2", kernel=(4, 4), strides=(2, 2))
    net = conv_relu(net, 64, "conv3", kernel=(3, 3))
    net = sym.flatten(net, name="flatten")
    net = sym.relu(sym.dense(net, units=512, name="fc4"), name="relu4")
    return sym.dense(net, units=num_actions, name="fc5")


def get_workload(
    batch_size: int = 1,
    num_actions: int = 18,
    image_shape: Sequence[int] = (4, 84, 84),
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return the network and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(num_actions)
    return create_workload(net, batch_size, image_shape, dtype, seed=seed)
