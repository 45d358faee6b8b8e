"""fold_scale_axis: which products are folded, which stay, and that only rounding changes."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Graph
from refcomp.graph.passes.fold_scale_axis import fold_scale_axis
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds, assert_same_meaning
from tests.strategies.graphs import make_graph, operators_of
from tests.strategies.operands import floats

passing = import_module("refcomp.graph.passes.fold_scale_axis")


def test_the_docstring_holds() -> None:
    # All factors are powers of two, and so all products are exact.
    assert_docstring_holds(passing, fold_scale_axis, tolerance=4 * 2.0**-24)


def constant(builder, *shape, seed=5):
    return builder.constant("c", floats(seed, *shape))


def scaled(builder, value, *shape):
    return builder.node("multiply", [value, constant(builder, *shape)])


def conv(builder, x, groups=1, bias=True):
    weight = constant(builder, 6, 3 // groups, 3, 3)
    inputs = [x, weight, constant(builder, 6) if bias else None]
    return builder.node("conv2d", inputs, {"groups": groups, "padding": (1, 1, 1, 1)})


def flat(builder, x):
    return builder.node("flatten", [x])


CASES = {
    "conv": lambda b, x: scaled(b, conv(b, x), 6, 1, 1),
    "conv without bias": lambda b, x: scaled(b, conv(b, x, bias=False), 1, 6, 1, 1),
    "conv of groups": lambda b, x: scaled(b, conv(b, x, groups=3), 6, 1, 1),
    "scalar": lambda b, x: scaled(b, conv(b, x)),
    "before conv": lambda b, x: conv(b, scaled(b, x, 3, 1, 1)),
    "constant first": lambda b, x: b.node("multiply", [constant(b, 6, 1, 1), conv(b, x)]),
    "dense": lambda b, x: scaled(
        b, b.node("dense", [flat(b, x), constant(b, 5, 108), constant(b, 5)]), 5
    ),
    "before dense": lambda b, x: b.node(
        "dense", [scaled(b, flat(b, x), 108), constant(b, 5, 108), constant(b, 5)]
    ),
    "matmul": lambda b, x: scaled(b, b.node("matmul", [flat(b, x), constant(b, 108, 4)]), 4),
    "before matmul": lambda b, x: b.node(
        "matmul", [scaled(b, flat(b, x), 1, 108), constant(b, 4, 108)], {"trans_b": True}
    ),
    "gemm": lambda b, x: scaled(
        b,
        b.node(
            "gemm",
            [flat(b, x), constant(b, 4, 108), constant(b, 1)],
            {"trans_b": True, "alpha": 0.5, "beta": 2.0},
        ),
        4,
    ),
    "both sides and twice": lambda b, x: scaled(
        b, scaled(b, conv(b, scaled(b, scaled(b, x), 3, 1, 1)), 6, 1, 1)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_scales_are_folded(name: str) -> None:
    graph = make_graph(CASES[name])
    changed = fold_scale_axis(graph)
    verify_graph(changed)
    assert "multiply" not in operators_of(changed)
    assert [value.name for value in changed.outputs] == [value.name for value in graph.outputs]
    assert_same_meaning(graph, changed, tolerance=1e-5)


def huge(builder, x):
    big = builder.constant("big", np.full((6, 1, 1), 3e38, "float32"))
    return builder.node("multiply", [conv(builder, x), big])


def tiny(builder, x):
    small = builder.constant("small", np.full((6, 1, 1), 1e-38, "float32"))
    return builder.node("multiply", [conv(builder, x), small])


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: scaled(b, conv(b, x), 6),  # along the width
        lambda b, x: scaled(b, conv(b, x), 6, 6, 1),
        lambda b, x: [(y := conv(b, x)), scaled(b, y, 6, 1, 1)],
        lambda b, x: b.node("add", [scaled(b, y := conv(b, x), 6, 1, 1), y]),
        lambda b, x: conv(b, scaled(b, x, 3, 1, 1), groups=3),
        lambda b, x: b.node("multiply", [conv(b, x), conv(b, x)]),
        lambda b, x: scaled(b, b.node("relu", [conv(b, x)]), 6, 1, 1),
        lambda b, x: [z := scaled(b, x, 3, 1, 1), conv(b, z)],
        huge,
        tiny,
    ],
    ids=[
        *("another axis", "two axes", "output", "read twice", "input of groups", "no constant"),
        *("after relu", "product is an output", "overflow", "underflow"),
    ],
)
def test_what_cannot_be_folded_stays(build) -> None:
    graph = make_graph(build)
    assert fold_scale_axis(graph) is graph


# operator -> shapes of data and weight, the axis of channels, attributes
ANCHORS = {
    "conv2d": ((2, 3, 5, 5), (4, 3, 3, 3), 1, {"padding": (1, 1, 1, 1)}),
    "conv2d_nhwc": ((2, 5, 5, 3), (3, 3, 3, 4), 3, {"strides": (2, 2)}),
    "depthwise_conv2d_nchw": ((2, 3, 5, 5), (3, 2, 3, 3), 1, {}),
    "dense": ((2, 3), (4, 3), 1, {}),
    "gemm": ((2, 3), (3, 4), 1, {"alpha": 0.5, "beta": 2.0}),
    "matmul": ((2, 2, 3), (4, 3), 2, {"trans_b": True}),
}


def around(operator: str, factor: int | None, where: str, between: str = "") -> Graph:
    """An anchor with a product before or after it; `factor` None for one factor for all."""
    shape, weight, axis, attributes = ANCHORS[operator]
    builder = GraphBuilder("g")
    value = builder.input("x", "f32", shape)

    def product(value):
        if between and where == "after":
            value = builder.node(between, [value])
        sizes = [1] * len(value.shape)
        if factor is not None:
            sizes[axis] = value.shape[axis]
        elements = np.abs(floats(5, *sizes)) + np.float32(0.5)
        value = builder.node("multiply", [builder.constant("s", elements), value], name="scaled")
        return builder.node(between, [value]) if between and where == "before" else value

    if where == "before":
        value = product(value)
    inputs = [value, builder.constant("w", floats(1, *weight))]
    if operator != "matmul":
        channels = {"depthwise_conv2d_nchw": 6}.get(operator, 4)
        inputs.append(builder.constant("b", floats(2, channels)))
    value = builder.node(operator, inputs, attributes, name="anchor")
    return builder.finish([product(value) if where == "after" else value])


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("factor", [1, None], ids=["per channel", "one"])
@pytest.mark.parametrize("between", ["", "relu"])
@pytest.mark.parametrize("operator", ANCHORS)
def test_a_product_moves(operator: str, between: str, factor: int | None, where: str) -> None:
    graph = around(operator, factor, where, between)
    changed = fold_scale_axis(graph)
    verify_graph(changed)
    assert "multiply" not in operators_of(changed)
    assert [v.name for v in changed.outputs] == [v.name for v in graph.outputs]
    # Sums of up to 27 products, each of two rounded factors; the oracle sums in f64.
    assert_same_meaning(graph, changed, tolerance=64 * 2.0**-24)
    assert fold_scale_axis(changed) is changed


def test_grouped_convolutions_scale_results_only() -> None:
    def grouped(where: str) -> Graph:
        builder = GraphBuilder("g")
        value = builder.input("x", "f32", (1, 4, 3, 3))
        factor = builder.constant("s", np.abs(floats(3, 4, 1, 1)) + 1)
        if where == "before":
            value = builder.node("multiply", [value, factor])
        weight = builder.constant("w", floats(1, 4, 2, 1, 1))
        value = builder.node("conv2d", [value, weight], {"groups": 2})
        if where == "after":
            value = builder.node("multiply", [value, factor])
        return builder.finish([value])

    before = grouped("before")
    assert fold_scale_axis(before) is before
    after = grouped("after")
    changed = fold_scale_axis(after)
    assert operators_of(changed) == ["conv2d"]
    assert_same_meaning(after, changed, tolerance=8 * 2.0**-24)


def dense_with(build, factor=(2.0, -3.0), weight=((1.0, 2.0), (3.0, 4.0))) -> Graph:
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", (3, 2))
    made = builder.node("dense", [x, builder.constant("w", np.float32(weight))], name="d")
    outputs = build(builder, made, builder.constant("s", np.float32(factor)))
    return builder.finish(outputs if isinstance(outputs, list) else [outputs])


def test_an_addend_is_multiplied_too() -> None:
    def build(b, d, s):
        moved = b.node("add", [b.constant("c", np.float32([5, 6])), d])
        return b.node("multiply", [moved, s], name="y")

    changed = fold_scale_axis(graph := dense_with(build))
    assert operators_of(changed) == ["dense", "add"]
    assert [
        a.tolist() for v, a in changed.constants.items() if "y" in v.name or "add" in v.name
    ] == [[10, -18]]
    assert_same_meaning(graph, changed, tolerance=8 * 2.0**-24)


@pytest.mark.parametrize(
    "graph",
    [
        dense_with(lambda b, d, s: [b.node("multiply", [d, s]), d]),
        dense_with(lambda b, d, s: b.node("add", [b.node("multiply", [d, s]), d])),
        dense_with(lambda b, d, s: b.node("multiply", [b.node("relu", [d]), s])),
        dense_with(lambda b, d, s: b.node("multiply", [b.node("tanh", [d]), s])),
        dense_with(lambda b, d, s: b.node("multiply", [d, s]), factor=((2.0,), (3.0,), (4.0,))),
        dense_with(lambda b, d, s: b.node("multiply", [d, s]), factor=(3e38, 1.0)),
        dense_with(lambda b, d, s: b.node("multiply", [d, s]), (1e-30, 1.0), ((1e-9, 1), (1, 1))),
        dense_with(lambda b, d, s: b.node("multiply", [d, b.input("t", "f32", (2,))])),
    ],
    ids=[
        "an output", "read twice", "negative factors and relu", "another function",
        "factors of rows", "overflow", "underflow", "factors are an input",
    ],
)  # fmt: skip
def test_what_cannot_move_past_others_stays(graph: Graph) -> None:
    assert fold_scale_axis(graph) is graph


def test_factors_cannot_move_past_an_accumulator_of_another_dtype() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "f16", (3, 2))
    weight = builder.constant("w", np.ones((2, 2), np.float16))
    wide = builder.node("dense", [x, weight], {"out_dtype": "float32"})
    factor = builder.constant("s", np.float32([2, 3]))
    graph = builder.finish([builder.node("multiply", [wide, factor])])
    assert fold_scale_axis(graph) is graph
