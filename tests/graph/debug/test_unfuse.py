"""Fused nodes are replaced by the nodes that they hold."""

import numpy as np

from refcomp.graph.debug.unfuse import unfuse
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.infer import FUSED
from refcomp.graph.optimize import optimize
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import digits_graph, digits_images, make_graph


def test_no_node_is_fused_and_names_and_results_stay() -> None:
    images, _ = digits_images()
    optimized = optimize(digits_graph())
    flat = unfuse(optimized)
    verify_graph(flat)
    assert any(node.operator == FUSED for node in optimized.nodes)
    assert not any(node.operator == FUSED for node in flat.nodes)
    assert {node.name for node in optimized.nodes} <= {node.name for node in flat.nodes}
    (kept,) = evaluate_graph(optimized, {"image": images[:4]})
    (made,) = evaluate_graph(flat, {"image": images[:4]})
    assert np.array_equal(kept, made)


def test_a_graph_without_fused_nodes_is_the_same_object() -> None:
    graph = make_graph(lambda builder, x: builder.node("relu", [x]), ("N", 2))
    assert unfuse(graph) is graph


def test_two_inner_values_of_one_name_get_different_names() -> None:
    def build(builder, x):
        first = builder.node("relu", [builder.node("exp", [x])])
        second = builder.node("relu", [builder.node("exp", [builder.node("softmax", [first])])])
        return builder.node("add", [first, second])

    flat = unfuse(optimize(make_graph(build, ("N", 2))))
    names = [value.name for value in flat.values()]
    assert len(names) == len(set(names))
    x = np.array([[0.5, -1]], np.float32)
    graph = make_graph(build, ("N", 2))
    assert np.array_equal(*evaluate_graph(graph, {"x": x}), *evaluate_graph(flat, {"x": x}))
