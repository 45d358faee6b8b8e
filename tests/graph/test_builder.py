"""Building graphs: unique names, nothing needless, constants that nobody can change."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder, GraphRewriter
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import assert_equivalent, digits_graph, operators_of
from tests.strategies.operands import floats


def test_names_are_made_unique() -> None:
    builder = GraphBuilder("g")
    x = builder.input("relu", "f32", (2,))
    first = builder.node("relu", [x])
    second = builder.node("relu", [first], name="relu")
    assert [v.name for v in (x, first, second)] == ["relu", "relu.1", "relu.2"]
    verify_graph(builder.finish([second]))


def test_inputs_are_not_renamed() -> None:
    builder = GraphBuilder("g")
    builder.input("x", "f32", (2,))
    with pytest.raises(UserError, match="two inputs named 'x'"):
        builder.input("x", "f32", (2,))


def test_what_no_output_needs_is_dropped() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", (2,))
    builder.node("add", [x, builder.constant("c", floats(0, 2))])
    graph = builder.finish([builder.node("relu", [x])])
    assert operators_of(graph) == ["relu"]
    assert not graph.constants


def test_constants_are_read_only_copies() -> None:
    builder = GraphBuilder("g")
    array = floats(0, 3)[::2]
    value = builder.constant("c", array)
    x = builder.input("x", "f32", (2,))
    graph = builder.finish([builder.node("add", [x, value])])
    kept = graph.constants[value]
    assert kept is not array and kept.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1


def test_attributes_that_say_nothing_are_left_out() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", ("N", 2))
    graph = builder.finish([builder.node("softmax", [x], {"axis": -1})])
    assert graph.nodes[0].attributes == {}


def test_a_node_of_other_types_is_refused_where_it_is_made() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", ("N", 2))
    with pytest.raises(UserError, match="axis 7 is out of range") as info:
        builder.node("softmax", [x], {"axis": 7}, name="s")
    assert info.value.where == "node 's'"


@pytest.mark.search
def test_rewriter_copies_a_graph() -> None:
    graph = digits_graph()
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        rewriter.copy(node)
    copied = rewriter.finish_copy()
    assert str(copied) == str(graph)
    assert not set(copied.values()) & set(graph.values())
    assert_equivalent(graph, copied)
    assert np.all([a is not b for a, b in zip(copied.nodes, graph.nodes, strict=True)])
