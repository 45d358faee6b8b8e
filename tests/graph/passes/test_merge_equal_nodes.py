"""merge_equal_nodes: what is equal, what is not, and what stays for another reason."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.merge_equal_nodes import merge_equal_nodes
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds, assert_same_meaning
from tests.strategies.graphs import digits_graph, make_graph, operators_of

passing = import_module("refcomp.graph.passes.merge_equal_nodes")


def test_the_docstring_holds() -> None:
    assert_docstring_holds(passing, merge_equal_nodes)


def test_equal_chains_become_one() -> None:
    def build(builder, x):
        chains = [builder.node("exp", [builder.node("relu", [x])]) for _ in range(3)]
        return builder.node("add", [builder.node("add", chains[:2]), chains[2]])

    graph = make_graph(build)
    changed = merge_equal_nodes(graph)
    verify_graph(changed)
    assert operators_of(changed) == ["relu", "exp", "add", "add"]
    assert_same_meaning(graph, changed)


def test_a_node_with_several_results_is_merged_whole() -> None:
    def build(builder, x):
        parts = [builder.nodes("split", [x], {"axis": 1, "sizes": (1, 2)}) for _ in range(2)]
        return builder.node("multiply", [parts[0][0], parts[1][1]])

    graph = make_graph(build)
    changed = merge_equal_nodes(graph)
    assert operators_of(changed) == ["split", "multiply"]
    assert_same_meaning(graph, changed)


@pytest.mark.parametrize(
    "body",
    [
        "a: f32[N] = relu(x) b: f32[N] = relu(z)",  # other inputs
        "a: f32[N] = subtract(x, z) b: f32[N] = subtract(z, x)",  # in another order
        "a: f32[N] = clip(x) {minimum=0.0} b: f32[N] = clip(x) {minimum=-0.0}",
        "a: f32[N] = clip(x) {maximum=1.0} b: f32[N] = clip(x) {minimum=1.0}",
        'a: f32[N] = cast(x) {dtype="f32"} b: f32[N] = cast(x) {dtype="float32"}',
    ],
)
def test_other_nodes_stay(body: str) -> None:
    graph = parse_graph(f"graph g(x: f32[N], z: f32[N]) -> (y) {{ {body} y: f32[N] = add(a, b) }}")
    assert merge_equal_nodes(graph) is graph


def test_outputs_keep_their_nodes() -> None:
    graph = make_graph(lambda b, x: [b.node("relu", [x], name="a"), b.node("relu", [x], name="b")])
    assert merge_equal_nodes(graph) is graph


def test_constants_are_compared_by_bits() -> None:
    def build(builder, x):
        zeros = [np.zeros(1, "float32"), -np.zeros(1, "float32"), np.zeros((1, 1), "float32")]
        values = [builder.constant("c", zero) for zero in (*zeros, zeros[0])]
        made = x
        for value in values:
            made = builder.node("add", [made, value])
        return made

    graph = make_graph(build)
    changed = merge_equal_nodes(graph)
    assert len(graph.constants) == 4
    assert len(changed.constants) == 3
    assert_same_meaning(graph, changed)


def test_the_digit_network_has_nothing_to_merge() -> None:
    graph = digits_graph()
    assert merge_equal_nodes(graph) is graph
