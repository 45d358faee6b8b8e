"""Networks of symbols: counts of parameters, and runs compared with the numpy meaning."""

import math
from collections.abc import Mapping

import numpy as np

import refcomp as rc
from refcomp.graph.evaluate import evaluate_graph

_STATISTICS = ("moving_mean", "moving_var")


def count_parameters(net: rc.sym.Symbol, *data: int) -> int:
    """Return how many numbers training finds, for an input of shape `data`."""
    names = net.list_input_names()
    shapes = net.infer_shape(data=data)[0]
    return sum(
        math.prod(shape)
        for name, shape in zip(names, shapes, strict=True)
        if name != "data" and not name.endswith(_STATISTICS)
    )


def assert_build_keeps_meaning(
    net: rc.sym.Symbol, params: Mapping[str, object], data: tuple[int, ...], target: str
) -> None:
    """Build and run `net` on random data; compare with the numpy meaning of its graph.

    Layers add up f32 in another order and fold scales. Each of the L layers may lose some units in
    the last place, relative to the greatest result: L * 2**-20 is allowed.
    """
    shape = {"data": data}
    x = np.random.default_rng(7).uniform(-1, 1, data).astype("float32")
    feeds = {name: array.asnumpy() for name, array in params.items()}
    expected = evaluate_graph(net.to_graph(shape), {"data": x, **feeds})
    graph, lib, weights = rc.graph.build(net, target, shape, params=params)
    executor = rc.graph.executor.create(graph.json(), lib)
    executor.set_input(**weights)
    made = executor.run(data=x)
    layers = len(net.get_internals())
    for actual, wanted in zip(made, expected, strict=True):
        greatest = np.abs(wanted).max()
        assert greatest > 0
        error = np.abs(actual.asnumpy() - wanted).max()
        assert error <= layers * 2**-20 * greatest
