"""Traces of runs: no control, no macros, no symbols."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.control.operators import find_control
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Graph, is_macro
from refcomp.graph.parser import parse_graph
from refcomp.graph.stages.stages import has_stages
from refcomp.graph.tracing import trace_graph
from tests.graph.control.runs import f32, i64
from tests.graph.stages.test_segments import RESHAPE


def traced(text: str, **feeds: object) -> Graph:
    """The trace of a run. It computes what the graph does."""
    graph = parse_graph(text)
    made = trace_graph(graph, feeds)
    assert not has_stages(made)
    given = {value.name: feeds[value.name] for value in made.inputs}
    for one, other in zip(evaluate_graph(graph, feeds), evaluate_graph(made, given), strict=True):
        np.testing.assert_array_equal(one, other)
    return made


LOOP = """
graph g(n: i64[], x: f32[2]) -> (y, all) {
  y: f32[2], all: f32[*] = loop(n, _, x) {carried=1}
    graph body(i: i64[], c: bool[], x: f32[2]) -> (c, z, z) { z: f32[2] = add(x, x) }
}"""


def test_loops_are_repeated() -> None:
    made = traced(LOOP, n=i64(3), x=f32(1, 2))
    assert [node.operator for node in made.nodes].count("add") == 3


def test_macros_and_late_attributes_are_settled() -> None:
    made = traced(RESHAPE, x=f32(1, 2, 3, 4), s=np.array([2, 2]))
    assert [str(node) for node in made.nodes] == [
        "y: f32[2, 2] = reshape(x) {shape=[2, 2]}",
        "z: f32[2, 2] = softmax(y) {axis=1}",
    ]
    late = "graph g(x: f32[*], k: i64[]) -> (y) { y: f32[*] = expand_dims(x) {axis=@k} }"
    (node,) = traced(late, x=f32(1), k=i64(1)).nodes
    assert str(node) == "y: f32[1, 1] = expand_dims(x) {axis=1}"


def test_counts_become_extents() -> None:
    text = """
graph g(x: f32[*]) -> (k) {
  i: i64[*], c: i64[*] = nonzero(x)
  k: i64[*] = narrow(i, c) {axis=1, symbol="kept"}
}"""
    made = traced(text, x=f32(0, 5, 0, 7))
    assert str(made.outputs[0]) == "k: i64[1, 2]"


def test_sequences_are_taken_apart() -> None:
    text = """
graph g(s: seq(f32), k: i64[]) -> (y) {
  e: f32[*] = sequence_at(s, k)
  y: f32[*] = relu(e)
}"""
    made = trace_graph(parse_graph(text), {"s": [f32(1), f32(-2, 3)], "k": i64(1)})
    assert [str(value) for value in made.inputs] == ["s.0: f32[1]", "s.1: f32[2]", "k: i64[]"]
    assert str(made.nodes[0]) == "y: f32[2] = relu(s.1)"


def test_a_graph_without_decisions_is_its_own_trace() -> None:
    graph = parse_graph("graph g(x: f32[N]) -> (y) { y: f32[N] = relu(x) }")
    assert trace_graph(graph, {"x": f32(1)}) is graph
    assert not any(is_macro(n.operator) or find_control(n.operator) for n in graph.nodes)


def test_wrong_inputs_are_refused() -> None:
    with pytest.raises(UserError, match="cannot be"):
        trace_graph(parse_graph(LOOP), {"n": i64(1), "x": [f32(1)]})
