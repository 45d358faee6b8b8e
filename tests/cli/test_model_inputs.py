"""Inputs and outputs of models: sequences, optionals, and tensors without a shape."""

from typing import Any

import numpy as np
import pytest

from refcomp.cli.arrays import Filling
from refcomp.cli.model_inputs import arrays_of, feeds_of, inputs_of
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Graph
from refcomp.graph.parser import parse_graph
from refcomp.graph.tracing import trace_graph
from refcomp.runtime.arrays.ndarray import array

FILLING = Filling("ones", 0, {"N": 2})


def graph_of(inputs: str) -> Graph:
    return parse_graph(f"graph g({inputs}) -> (w) {{ const w: f32[1] = [1] }}")


def test_tensors_are_filled_and_others_taken() -> None:
    graph = graph_of("x: f32[N], u: f32[*], s: seq(f32), o: optional(f32), p: optional(seq(f32))")
    one = np.ones(1, "float32")
    feeds = feeds_of(graph, {"u": one, "s.0": one, "s.1": one}, FILLING)
    assert feeds["x"].tolist() == [1, 1]
    assert feeds["u"] is one
    assert len(feeds["s"]) == 2
    assert feeds["o"] is None
    assert feeds["p"] is None
    assert len(feeds_of(graph, {"u": one, "p.0": one}, FILLING)["p"]) == 1


def test_a_tensor_without_a_shape_must_be_given() -> None:
    with pytest.raises(UserError, match="(?s)input u: f32.*shape is not known.*-i FILE.npz"):
        feeds_of(graph_of("u: f32[*]"), {}, FILLING)


def test_a_map_cannot_be_read_from_a_file() -> None:
    with pytest.raises(UserError, match="(?s)input m: map.i64, f32. cannot be read from a file"):
        feeds_of(graph_of("m: map(i64, f32)"), {}, FILLING)


def test_an_unknown_array_is_refused() -> None:
    with pytest.raises(UserError, match="unknown input 's.2'"):
        feeds_of(graph_of("s: seq(f32)"), {"s.2": np.ones(1, "float32")}, FILLING)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (None, []),
        (array(np.ones(1, "float32")), ["y"]),
        ((array(np.ones(1, "float32")), array(np.ones(2, "float32"))), ["y.0", "y.1"]),
        (np.array(["a"], object), ["y"]),
        ({"a": 1.5, "b": 2.0}, ["y.a", "y.b"]),
        (({7: 1.5}, {8: 2.0}), ["y.0.7", "y.1.8"]),
    ],
)
def test_outputs_are_arrays_by_name(value: Any, names: list[str]) -> None:
    assert list(arrays_of("y", value)) == names


def test_a_trace_takes_elements_of_sequences() -> None:
    text = """
graph g(s: seq(f32), k: i64[]) -> (y) {
  e: f32[*] = sequence_at(s, k)
  y: f32[*] = relu(e)
}"""
    feeds = {"s": [np.ones(1, "float32")], "k": np.array(0)}
    trace = trace_graph(parse_graph(text), feeds)
    assert list(inputs_of(trace, feeds)) == ["s.0", "k"]
