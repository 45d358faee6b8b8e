"""remove_dead_nodes: what goes, and that inputs and needed nodes stay."""

from importlib import import_module

from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.remove_dead_nodes import remove_dead_nodes
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import digits_graph

passing = import_module("refcomp.graph.passes.remove_dead_nodes")


def test_the_docstring_holds() -> None:
    assert_docstring_holds(passing, remove_dead_nodes)


def test_a_graph_without_dead_nodes_stays() -> None:
    graph = digits_graph()
    assert remove_dead_nodes(graph) is graph


def test_one_needed_result_keeps_the_node_and_conditions_stay() -> None:
    graph = parse_graph("""
graph g(x: f32[4], unread: f32[N]) -> (a) {
  require N < 3
  a: f32[1], b: f32[3] = split(x) {axis=0, sizes=[1, 3]}
  c: f32[3] = relu(b)
}""")
    changed = remove_dead_nodes(graph)
    assert [node.name for node in changed.nodes] == ["a"]
    assert changed.inputs == graph.inputs
    assert changed.requires == graph.requires
