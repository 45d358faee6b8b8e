"""The generator of images of a deep convolutional generative adversarial network.

Source: Radford et al., Unsupervised Representation Learning with Deep Convolutional Generative
Adversarial Networks, 2015.
"""

from __future__ import annotations

from refcomp.graph import symbol as sym
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.workload import create_workload
from refcomp.runtime.arrays.ndarray import NDArray


def _enlarged(data: Symbol, channels: int, name: str) -> Symbol:
    """Return images of twice as many rows and columns."""
    return sym.conv2d_transpose(
        data,
        channels=channels,
        kernel_size=(4, 4),
        strides=(2, 2),
        padding=(1, 1),
        use_bias=False,
        name=name,
    )


def get_symbol(ngf: int = 128, channels: int = 3) -> Symbol:
    """Return the generator: codes [n, c] become images [n, channels, 64, 64].

    Args:
        ngf: the channels of the last hidden layer.
        channels: the channels of the images.

    Source: NNVM, nnvm.testing.dcgan.

    Example::

        >>> net = rc.graph.testing.dcgan.get_symbol()
        >>> net.infer_shape(data=(1, 100))[1]
        [(1, 3, 64, 64)]
    """
    net = sym.dense(
        sym.Variable("data"), units=4 * 4 * ngf * 8, use_bias=False, name="code"
    )
    net = sym.relu(net, name="code_relu")
    net = sym.reshape(net, shape=(-1, ngf * 8, 4, 4), name="code_image")
    for number, factor in enumerate((4, 2, 1), 1):
        net = _enlarged(net, ngf * factor, f"g{number}")
        net = sym.batch_norm(net, name=f"g{number}_bn")
        net = sym.relu(net, name=f"g{number}_relu")
    return sym.tanh(_enlarged(net, channels, "g4"), name="image")


def get_workload(
    batch_size: int = 1,
    ngf: int = 128,
    channels: int = 3,
    code_size: int = 100,
    dtype: str = "float32",
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return the generator and random parameters; see `get_symbol` and `create_workload`."""
    net = get_symbol(ngf, channels)
    return create_workload(net, batch_size, (code_size,), dtype, seed=seed)
