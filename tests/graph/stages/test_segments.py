"""Stages with constant extents and attributes."""

import numpy as np
import pytest
from refcomp.graph.stages.specialize import specialize

from refcomp.foundation.errors import UserError
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.optimize import optimize
from refcomp.graph.parser import parse_graph
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import digits_graph


def test_extents_and_attributes_become_constant() -> None:
    graph = parse_graph("""
graph g(x: f32[*], n: i64[]) -> (z) {
  const w: f32[1] = [2]
  y: f32[*] = expand_dims(x) {axis=@n}
  z: f32[*] = add(y, w)
}""")
    n = graph.inputs[1]
    made = specialize(graph, [(3,), ()], {n: 1})
    verify_graph(made)
    assert str(made.nodes[0]) == "y: f32[3, 1] = expand_dims(x) {axis=1}"
    assert str(made.nodes[1]) == "z: f32[3, 1] = add(y, w)"


def test_fused_nodes_and_narrow_are_repeated() -> None:
    graph = optimize(digits_graph())
    made = specialize(graph, [(2, 1, 8, 8)], {})
    verify_graph(made)
    image = np.ones((2, 1, 8, 8), "float32")
    (expected,) = evaluate_graph(graph, {"image": image})
    np.testing.assert_array_equal(evaluate_graph(made, {"image": image})[0], expected)
    found = parse_graph("""
graph g(x: f32[N]) -> (k) {
  i: i64[1, N], n: i64[1] = nonzero(x)
  k: i64[1, kept] = narrow(i, n) {axis=1, symbol="kept"}
}""")
    text = str(specialize(found, [(4,)], {}))
    assert 'k: i64[1, kept] = narrow(i, n) {axis=1, symbol="kept"}' in text


def test_a_node_that_does_not_take_the_shape_is_named() -> None:
    graph = parse_graph("graph g(x: f32[*]) -> (y) { y: f32[*] = softmax(x) {axis=1} }")
    with pytest.raises(UserError) as caught:
        specialize(graph, [(3,)], {})
    assert caught.value.where == "node 'y'"
