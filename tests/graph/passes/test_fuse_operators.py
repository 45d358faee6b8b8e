"""fuse_operators: which nodes share a kernel, and that their meaning is kept."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given

from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.fuse_operators import fuse_operators
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import (
    assert_docstring_holds,
    assert_same_meaning,
)
from tests.strategies.graphs import assert_equivalent, make_graph, networks, operators_of
from tests.strategies.operands import floats

fusing = import_module("refcomp.graph.passes.fuse_operators")


def conv(builder, value):
    return builder.node("conv2d", [value, builder.constant("w", floats(7, 3, 3, 1, 1))])


def relu(builder, value):
    return builder.node("relu", [value])


def fused_operators(graph) -> list[list[str]]:
    return [
        operators_of(node.subgraphs[0]) if node.subgraphs else [node.operator]
        for node in graph.nodes
    ]


def residual(builder, x):
    value = conv(builder, x)
    return relu(builder, builder.node("add", [conv(builder, relu(builder, value)), value]))


def gelu(builder, x):
    half = builder.constant("half", np.array([0.5], "float32"))
    y = conv(builder, x)
    halved = builder.node("multiply", [y, half])
    shifted = builder.node("add", [builder.node("erf", [y]), half])
    return builder.node("multiply", [halved, shifted])


def expanded(builder, x):
    row = builder.input("row", "f32", (6,))
    return builder.node("add", [x, builder.node("exp", [row])])


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda b, x: relu(b, conv(b, x)), [["conv2d", "relu"]]),
        (lambda b, x: conv(b, relu(b, x)), [["relu"], ["conv2d"]]),
        (lambda b, x: conv(b, conv(b, x)), [["conv2d"], ["conv2d"]]),
        (
            lambda b, x: conv(b, b.node("transpose", [x], {"axes": (0, 1, 3, 2)})),
            [["transpose", "conv2d"]],
        ),
        (lambda b, x: [(y := conv(b, x)), relu(b, y)], [["conv2d"], ["relu"]]),
        (residual, [["conv2d"], ["relu"], ["conv2d", "add", "relu"]]),
        (
            lambda b, x: b.node("softmax", [b.node("flatten", [relu(b, x)])]),
            [["relu", "flatten"], ["softmax"]],
        ),
        (
            lambda b, x: b.node("multiply", [(y := conv(b, x)), b.node("sigmoid", [y])]),
            [["conv2d", "sigmoid", "multiply"]],
        ),
        (gelu, [["conv2d", "multiply", "erf", "add", "multiply"]]),
        (
            lambda b, x: b.node("add", [relu(b, x), b.node("tanh", [x])]),
            [["relu", "tanh", "add"]],
        ),
        (
            lambda b, x: relu(b, b.node("sum", [b.node("exp", [x])], {"axis": (1,)})),
            [["exp", "sum", "relu"]],
        ),
        (lambda b, x: b.node("mean", [conv(b, x)], {"axis": (1,)}), [["conv2d"], ["mean"]]),
        (lambda b, x: b.node("add", [conv(b, x), conv(b, x)]), [["conv2d"], ["conv2d", "add"]]),
        (expanded, [["exp"], ["add"]]),
        (
            lambda b, x: relu(b, b.nodes("topk", [relu(b, x)], {"k": 1})[0]),
            [["relu"], ["topk"], ["relu"]],
        ),
    ],
    ids=[
        *("after", "costly before", "two anchors", "movement before", "output", "residual"),
        *("mixed", "gate", "gelu", "two chains", "reduction", "reduction of an anchor"),
        *("two anchors joined", "expanded", "opaque"),
    ],
)
def test_groups(build, expected) -> None:
    graph = make_graph(build)
    changed = fuse_operators(graph)
    verify_graph(changed)
    assert fused_operators(changed) == expected
    assert_same_meaning(graph, changed)


def test_vectors_do_not_read_through_a_change_of_layout() -> None:
    def changed(builder, x):
        layouts = {"src_layout": "NCHW", "dst_layout": "NCHW3c"}
        return builder.node("layout_transform", [x], layouts)

    def pooled(builder, x):
        how = {"kernel": (2, 2), "layout": "NCHWc"}
        return builder.node("max_pool2d", [changed(builder, x)], how)

    def convolved(builder, x):
        weight = builder.constant("w", floats(0, 1, 1, 3, 3, 3, 8))
        return builder.node("conv2d_nchwc", [changed(builder, x), weight])

    graph = fuse_operators(make_graph(pooled))
    assert operators_of(graph) == ["layout_transform", "max_pool2d"]
    # Here each vector is one element, repeated.
    assert fused_operators(fuse_operators(make_graph(convolved))) == [
        ["layout_transform", "conv2d_nchwc"]
    ]


@pytest.mark.parametrize(
    ("place", "shape", "expected"),
    [
        (1, (2, 3, 9), [["reshape"], ["matmul", "relu"]]),
        (1, (1, 2, 3, 9), [["reshape"], ["matmul", "relu"]]),
        (1, (2, 9, 3), [["reshape", "matmul", "relu"]]),
        (1, (1, 6, 3, 3), [["reshape", "matmul", "relu"]]),
        (0, (2, 9, 3), [["reshape", "matmul", "relu"]]),
    ],
)
def test_vectors_do_not_read_through_divided_rows(place, shape, expected) -> None:
    def product(builder, x):
        columns = builder.node("reshape", [x], {"shape": shape})
        rows, depth = shape[-2:]
        other = floats(0, 4, rows) if place else floats(0, depth, 4)
        pair = [columns, builder.constant("w", other)]
        return relu(builder, builder.node("matmul", pair[::-1] if place else pair))

    graph = make_graph(product, (2, 3, 3, 3))
    changed = fuse_operators(graph)
    assert fused_operators(changed) == expected
    assert_same_meaning(graph, changed)


def test_the_docstring_holds() -> None:
    assert_docstring_holds(fusing, fuse_operators)


def test_single_nodes_stay_as_they_are() -> None:
    graph = make_graph(conv)
    assert fuse_operators(graph) is graph
    fused = fuse_operators(make_graph(lambda b, x: relu(b, conv(b, x))))
    assert fuse_operators(fused) is fused


def test_an_input_read_twice_is_given_once() -> None:
    graph = make_graph(lambda b, x: relu(b, b.node("add", [x, x])))
    (node,) = fuse_operators(graph).nodes
    assert len(node.inputs) == 1
    assert_equivalent(graph, fuse_operators(graph))


@pytest.mark.search
def test_expressions_do_not_explode() -> None:
    def build(builder, x):
        for _ in range(40):
            x = builder.node("add", [x, x])
        return x

    graph = make_graph(build, ("N",))
    groups = fused_operators(fuse_operators(graph))
    # Doubling each time: 1, 3, 7, 15 and 31 expressions are the most that one kernel gets.
    assert [len(group) for group in groups] == [5] * 8
    assert_equivalent(graph, fuse_operators(graph))


@pytest.mark.search
@given(networks())
def test_meaning_is_kept(graph):
    changed = fuse_operators(graph)
    verify_graph(changed)
    assert_equivalent(graph, changed)
    count = sum(len(group) for group in fused_operators(changed))
    assert count == len(graph.nodes)


def test_an_opaque_node_stays_alone_if_only_its_last_results_are_read() -> None:
    graph = parse_graph("""
graph g(x: f32[4]) -> (z, y) {
  q: u8[4], s: f32[], z: u8[] = dynamic_quantize_linear(x)
  r: f32[1] = reshape(s) {shape=[1]}
  y: f32[1] = relu(r)
}""")
    changed = fuse_operators(graph)
    verify_graph(changed)
    assert fused_operators(changed) == [["dynamic_quantize_linear"], ["reshape", "relu"]]
    assert_same_meaning(graph, changed)
