"""Every rule of a graph, broken one at a time."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp.foundation.dtype import F32, F64
from refcomp.foundation.errors import CompilerBug
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.passes.fuse_operators import fuse_operators
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import make_graph

X = Value("x", F32, ("N", 3))
Y = Value("y", F32, ("N", 3))
RELU = GraphNode("relu", (X,), (Y,))


def graph(*nodes: GraphNode, outputs=(Y,), constants=None) -> Graph:
    return Graph("g", (X,), outputs, nodes, constants or {})


def test_a_good_graph_passes() -> None:
    verify_graph(graph(RELU))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (graph(), "output y: f32.N, 3. is never made"),
        (graph(RELU, RELU), "y: f32.N, 3. is made twice"),
        (
            graph(RELU, GraphNode("relu", (X,), (Value("y", F32, ("N", 3)),))),
            "two values are named 'y'",
        ),
        (graph(GraphNode("relu", (Y,), (Y,))), "node 'y' reads y: f32.N, 3. before it is made"),
        (graph(GraphNode("relu", (X,), (Value("y", F64, ("N", 3)),))), "node 'y' should make"),
        (graph(GraphNode("relu", (X,), (Value("y", F32, ("M", 3)),))), "node 'y' should make"),
        (graph(GraphNode("rely", (X,), (Y,))), "node 'y': unknown operator 'rely'"),
        (graph(GraphNode("relu", (X,), (Y,), {"a": 1})), "node 'y': relu has no attribute 'a'"),
        (graph(GraphNode("relu", (X,), (Y,), {}, (graph(RELU),))), "node 'y' has 1 subgraphs"),
        (graph(GraphNode("fused", (X,), (Y,))), "node 'y' has 0 subgraphs"),
        (
            graph(RELU, constants={Value("c", F32, (2,)): np.zeros(3, np.float32)}),
            "constant c: f32.2. holds float32 of shape",
        ),
    ],
)
def test_a_broken_rule_is_told(bad, message) -> None:
    with pytest.raises(CompilerBug, match=message) as info:
        verify_graph(bad)
    assert str(bad) in str(info.value)


def test_types_of_verified_nodes_are_not_checked_again() -> None:
    wrong = GraphNode("relu", (X,), (Value("y", F64, ("N", 3)),))
    given = graph(wrong, outputs=wrong.outputs)
    verify_graph(given, [wrong])
    with pytest.raises(CompilerBug, match="node 'y' should make"):
        verify_graph(given, [RELU])
    unmade = GraphNode("relu", (Y,), (Value("z", F32, ("N", 3)),))
    with pytest.raises(CompilerBug, match="node 'z' reads y: f32.N, 3. before it is made"):
        verify_graph(graph(unmade, outputs=unmade.outputs), [unmade])


def test_subgraphs_are_held_against_the_node() -> None:
    fused = fuse_operators(make_graph(lambda b, x: b.node("relu", [b.node("tanh", [x])])))
    verify_graph(fused)
    (node,) = fused.nodes
    other = Value("x", F32, ("N", 3, 6, 7))
    (subgraph,) = node.subgraphs
    bad = replace(fused, nodes=(replace(node, subgraphs=(replace(subgraph, inputs=(other,)),)),))
    with pytest.raises(CompilerBug, match="is ill-formed"):
        verify_graph(bad)


def test_a_condition_on_an_unknown_symbol_is_a_bug() -> None:
    wrong = Graph("g", (X,), (X,), (), {}, (("eq", "M", 1),))
    with pytest.raises(CompilerBug, match="no input has the symbol M of the condition M == 1"):
        verify_graph(wrong)
