"""Macros in graphs: their text, their types, and what expands them (see also test_segments.py)."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import is_macro
from refcomp.graph.parser import parse_graph
from refcomp.graph.verify import verify_graph


def test_a_macro_makes_tensors_of_declared_dtypes() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "float32", ("N",))
    y = builder.node("family.Name", [x, None], {"k": 3}, "y", dtype="int64")
    graph = builder.finish([y])
    verify_graph(graph)
    assert str(graph.nodes[0]) == "y: i64[*] = family.Name(x, _) {k=3}"
    assert str(parse_graph(str(graph))) == str(graph)


def test_the_dtypes_must_be_declared() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "float32", ("N",))
    with pytest.raises(UserError, match="only a run determines the results of family.Name"):
        builder.node("family.Name", [x])


def test_a_name_with_a_dot_is_a_macro() -> None:
    assert is_macro("onnx.Reshape")
    assert not is_macro("reshape")
