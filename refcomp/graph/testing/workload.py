"""Workloads: a network together with parameters that are drawn at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.inference import infer_types
from refcomp.graph.symbol.sources import INIT_NOTE
from refcomp.graph.symbol.symbol import Symbol
from refcomp.graph.testing.initializers import Initializer, Xavier, initializer_named
from refcomp.runtime.arrays.ndarray import NDArray, array


def create_workload(
    net: Symbol,
    batch_size: int = 1,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    initializer: Initializer | None = None,
    seed: int = 0,
) -> tuple[Symbol, dict[str, NDArray]]:
    """Return a network and random parameters for it.

    Args:
        net: the network, whose input is called `data`.
        batch_size: the first extent of the input.
        image_shape: the other extents of the input.
        dtype: the dtype of the input and the parameters.
        initializer: fills the parameters; None for `Xavier()`. A variable may name another one.
        seed: of the random numbers. Equal seeds give equal parameters.

    Raises:
        UserError: the network has no input `data`, or an operator does not take such shapes.

    Source: NNVM, nnvm.testing.utils.create_workload.

    Example::

        >>> net = rc.sym.dense(rc.sym.Variable("data"), units=3, name="fc")
        >>> net, params = rc.graph.testing.create_workload(net, 2, (8,))
        >>> {name: array.shape for name, array in params.items()}
        {'fc_weight': (3, 8), 'fc_bias': (3,)}
    """
    if not isinstance(net, Symbol):
        raise UserError(
            f"a {type(net).__name__} is not a network", remedy="pass a symbol"
        )
    return net, random_parameters(
        net, {"data": (batch_size, *image_shape)}, dtype, initializer, seed
    )


def random_parameters(
    net: Symbol,
    shapes: Mapping[str, Sequence[int]],
    dtype: str = "float32",
    initializer: Initializer | None = None,
    seed: int = 0,
) -> dict[str, NDArray]:
    """Return random parameters: arrays for all variables without a given shape.

    Args:
        net: the network.
        shapes: name of an input -> its shape.
        dtype: the dtype of the inputs and the parameters.
        initializer: fills the parameters; None for `Xavier()`. A variable may name another one.
        seed: of the random numbers.

    Raises:
        UserError: an input is unknown, or an operator does not take such shapes.

    Example::

        >>> net = rc.sym.dense(rc.sym.Variable("x"), units=3, name="fc")
        >>> list(rc.graph.testing.random_parameters(net, {"x": (2, 8)}))
        ['fc_weight', 'fc_bias']
    """
    types = infer_types(net.entries, shapes, dict.fromkeys(shapes, dtype))
    draws = np.random.default_rng(seed)
    usual = Xavier() if initializer is None else initializer
    notes = net.attr_dict()
    params = {}
    for name, (element, shape) in types.variables.items():
        if name in shapes:
            continue
        extents = tuple(dim for dim in shape if isinstance(dim, int))
        chosen = notes.get(name, {}).get(INIT_NOTE)
        if chosen is None:
            values = usual.fill(name, extents, draws)
        else:
            values = initializer_named(chosen).weights(extents, draws)
        params[name] = array(values.astype(to_numpy(element)))
    return params
