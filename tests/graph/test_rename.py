"""Renaming values: readers and outputs follow, names stay unique."""

import refcomp as rc
from refcomp.graph.rename import renamed


def _graph():
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float32", (2,))
    first = builder.node("relu", [x], name="first")
    second = builder.node("tanh", [first], name="second")
    return builder.finish([second, first])


def test_readers_and_outputs_follow() -> None:
    graph = _graph()
    found = renamed(graph, {graph.outputs[1]: "rectified"})
    assert str(found).replace("rectified", "first") == str(graph)
    assert [value.name for value in found.outputs] == ["second", "rectified"]
    rc.graph.verify_graph(found)


def test_a_name_that_is_taken_gets_a_number() -> None:
    graph = _graph()
    found = renamed(graph, {graph.outputs[1]: "x"})
    assert found.outputs[1].name == "x.1"


def test_inputs_keep_their_names_and_other_nodes_stay() -> None:
    graph = _graph()
    assert renamed(graph, {graph.inputs[0]: "y"}).nodes == graph.nodes
    found = renamed(graph, {graph.outputs[0]: "last"})
    assert found.nodes[0] is graph.nodes[0]
