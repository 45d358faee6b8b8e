"""Parts of a graph: which nodes compute a value from others."""

import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.parts import needed_nodes

NODES = [
    helper.make_node("Neg", ["x"], ["a"]),
    helper.make_node("Split", ["a"], ["b", ""]),
    helper.make_node("Exp", ["z"], ["unused"]),
    helper.make_node("Add", ["a", "b"], ["c"]),
]


def made(given, output):
    return [node.op_type for node in needed_nodes(NODES, given, output)]


def test_nodes_stay_in_order():
    assert made(["x"], "c") == ["Neg", "Split", "Add"]


def test_given_values_are_not_computed():
    assert made(["a"], "c") == ["Split", "Add"]
    assert made(["a", "b"], "c") == ["Add"]


def test_values_that_nothing_makes_need_no_node():
    assert made(["x"], "w") == []


def test_value_among_the_given_ones():
    with pytest.raises(UserError, match="the value 'a' is to be computed from itself"):
        needed_nodes(NODES, ["a"], "a")


def test_nodes_with_subgraphs():
    graph = helper.make_graph(
        [], "g", [], [helper.make_tensor_value_info("v", TensorProto.FLOAT, ())]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
    with pytest.raises(Unsupported, match="the node that makes 'y' has a subgraph"):
        needed_nodes([node], ["x"], "y")
