"""simplify_inference: which batch normalizations become elementwise operators."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Graph
from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.simplify_inference import simplify_inference
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds, assert_same_meaning
from tests.strategies.graphs import operators_of
from tests.strategies.operands import floats

passing = import_module("refcomp.graph.passes.simplify_inference")


def normalized(axis: int, variance: float = 1.0, dtype: str = "float32") -> Graph:
    builder = GraphBuilder("g")
    x = builder.input("x", dtype, ("N", 3, 4))
    channels = x.shape[axis]
    statistics = [builder.constant("s", floats(k, channels).astype(dtype)) for k in range(3)]
    spread = np.abs(floats(9, channels)) + np.float32(variance)
    statistics.append(builder.constant("v", spread.astype(dtype)))
    return builder.finish([builder.node("batch_norm", [x, *statistics], {"axis": axis})])


def test_the_docstring_holds() -> None:
    assert_docstring_holds(passing, simplify_inference, tolerance=1e-6)


@pytest.mark.parametrize("axis", [1, 2, -1, -2])
def test_channels_lie_along_any_axis(axis: int) -> None:
    graph = normalized(axis)
    changed = simplify_inference(graph)
    verify_graph(changed)
    assert operators_of(changed) == ["subtract", "multiply", "add"]
    assert changed.nodes[2].name == graph.nodes[0].name
    # The scale is rounded once, and so is each of three operations; the original rounds five times.
    assert_same_meaning(graph, changed, tolerance=8 * 2.0**-24)


def test_the_dtype_of_the_statistics_stays() -> None:
    graph = normalized(1, dtype="float16")
    changed = simplify_inference(graph)
    verify_graph(changed)
    assert_same_meaning(graph, changed, tolerance=8 * 2.0**-11)


def test_a_scale_that_is_not_finite_stays() -> None:
    graph = normalized(1, variance=-4.0)
    assert simplify_inference(graph) is graph


def test_statistics_that_are_inputs_stay() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", ("N", 3))
    values = [builder.input(name, "f32", (3,)) for name in "abcd"]
    graph = builder.finish([builder.node("batch_norm", [x, *values])])
    assert simplify_inference(graph) is graph


DROPPING = """
graph net(key: u32[2], x: f32[4]) -> ({outputs}) {{
  a: f32[4] = tanh(x)
  d: f32[4], mask: bool[4] = dropout(key, a) {{rate={rate}}}
  y: f32[4] = relu(d)
}}"""


def test_an_idle_dropout_goes() -> None:
    graph = parse_graph(DROPPING.format(outputs="y", rate=0.0))
    changed = simplify_inference(graph)
    verify_graph(changed)
    assert operators_of(changed) == ["tanh", "relu"]
    assert_same_meaning(graph, changed)


@pytest.mark.parametrize(("outputs", "rate"), [("y", 0.5), ("y, mask", 0.0), ("d", 0.0)])
def test_a_dropout_that_matters_stays(outputs: str, rate: float) -> None:
    graph = parse_graph(DROPPING.format(outputs=outputs, rate=rate))
    assert simplify_inference(graph) is graph
