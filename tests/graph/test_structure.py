"""Keys of nodes: equal for what one function computes, and for nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from refcomp.foundation.dtype import F32, F64, DType
from refcomp.graph.graph import GraphNode, Value
from refcomp.graph.passes.fuse_operators import fuse_operators
from refcomp.graph.structure import application_key, node_key
from refcomp.topi.operator import find_operator
from tests.strategies.graphs import make_graph


def _value(*shape: Any, dtype: DType = F32) -> Value:
    return Value("x", dtype, shape)


def _add(a: Value | None, b: Value | None) -> GraphNode:
    return GraphNode("add", (a, b), (_value("N", 3),))


def _clip(minimum: Any) -> GraphNode:
    return GraphNode("clip", (_value("N"),), (_value("N"),), {"minimum": minimum})


X = _value("N", 3)
DIFFERENT = {
    "once": _add(_value("N", 3), _value("N", 3)),
    "twice": _add(X, X),
    "another operator": replace(_add(X, X), operator="subtract"),
    "another symbol": _add(_value("M", 3), _value("M", 3)),
    "another extent": _add(_value("N", 3), _value("N", 1)),
    "another dtype": _add(_value("N", 3, dtype=F64), _value("N", 3, dtype=F64)),
    "another rank": _add(_value("N", 3), _value(3)),
    "a tree of extents": _add(_value("N", ("add", "M", 3)), _value("N", ("add", "M", 3))),
    "an input left out": _add(X, None),
    "an attribute": _clip(0.0),
    "another attribute": _clip(1.0),
    "an attribute of another type": _clip(1),
    "True": _clip(True),
}


def test_nodes_that_differ_have_different_keys() -> None:
    assert len({node_key(node) for node in DIFFERENT.values()}) == len(DIFFERENT)


def test_names_do_not_matter() -> None:
    for node in DIFFERENT.values():
        renamed = {v: replace(v, name=f"other {v.name}") for v in node.reads}
        inputs = tuple(None if v is None else renamed[v] for v in node.inputs)
        outputs = tuple(replace(v, name="z") for v in node.outputs)
        assert node_key(replace(node, inputs=inputs, outputs=outputs)) == node_key(node)


@pytest.mark.parametrize("value", [[1], np.int64(1), {}])
def test_what_is_not_plain_data_equals_only_itself(value) -> None:
    node = _clip(value)
    assert node_key(node) is node
    assert application_key(find_operator("clip"), node.inputs, {"minimum": value}) is None


def _fused(order: tuple[int, int], second: str = "tanh") -> GraphNode:
    def build(builder, x):
        y = builder.input("y", "f32", ("N", 4))
        sides = [builder.node("relu", [x], name="r"), y]
        joined = builder.node("subtract", [sides[k] for k in order])
        return builder.node(second, [joined])

    (node,) = fuse_operators(make_graph(build, ("N", 4))).nodes
    return node


def test_fused_nodes_are_compared_by_their_subgraphs() -> None:
    first, again, other, turned = (
        _fused((0, 1)),
        _fused((0, 1)),
        _fused((0, 1), "sigmoid"),
        _fused((1, 0)),
    )
    assert node_key(first) == node_key(again)
    assert len({node_key(node) for node in (first, other, turned)}) == 3
    (subgraph,) = first.subgraphs
    same_value_twice = replace(first, inputs=first.inputs[:1] * 2)
    assert node_key(same_value_twice) != node_key(first)
    constant = replace(subgraph, constants={_value(1): np.zeros(1, "f")})
    kept = replace(first, subgraphs=(constant,))
    assert node_key(kept) is kept


def test_zeros_of_both_signs_differ() -> None:
    clips = [
        GraphNode("clip", (_value("N"),), (_value("N"),), {"minimum": zero}) for zero in (0.0, -0.0)
    ]
    assert node_key(clips[0]) != node_key(clips[1])
