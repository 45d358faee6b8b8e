"""choose_layout: channels go last around convolutions, with few transposes and no other change."""

from importlib import import_module

import pytest
from hypothesis import given

from refcomp.graph.passes.choose_layout import choose_layout
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import (
    assert_equivalent,
    digits_graph,
    make_graph,
    networks,
    operators_of,
)
from tests.strategies.operands import floats


def conv(builder, value, out=4, **attributes):
    weight = builder.constant(
        "w", floats(7, out, value.shape[1] // attributes.get("groups", 1), 3, 3)
    )
    return builder.node("conv2d", [value, weight], {"padding": (1, 1, 1, 1), **attributes})


def test_between_convolutions_nothing_is_transposed() -> None:
    def build(builder, x):
        value = builder.node("relu", [conv(builder, x)])
        value = builder.node("max_pool2d", [value], {"kernel": (2, 2)})
        return builder.node("add", [conv(builder, value), conv(builder, value)])

    graph = make_graph(build)
    changed = choose_layout(graph)
    of_images = [
        n
        for n in changed.nodes
        if n.operator == "transpose" and n.inputs[0] not in changed.constants
    ]
    assert [node.inputs[0].name for node in of_images] == ["x", "add.nhwc"]
    assert operators_of(changed).count("conv2d_nhwc") == 3
    (pool,) = [n for n in changed.nodes if n.operator == "max_pool2d"]
    assert pool.attributes["layout"] == "NHWC"
    verify_graph(changed)
    assert_equivalent(graph, changed)


POOLS = {
    "max_pool2d": {"kernel": (2, 2)},
    "avg_pool2d": {"kernel": (2, 2)},
    "lp_pool2d": {"kernel": (2, 2)},
    "global_avg_pool2d": {},
    "global_max_pool2d": {},
    "global_lp_pool2d": {},
}


@pytest.mark.parametrize("pool", POOLS)
def test_poolings_follow(pool: str) -> None:
    graph = make_graph(lambda b, x: b.node(pool, [conv(b, x)], POOLS[pool]))
    changed = choose_layout(graph)
    verify_graph(changed)
    (made,) = [node for node in changed.nodes if node.operator == pool]
    assert made.attributes["layout"] == "NHWC"
    # In another layout the oracle adds in another order, in f64 before one rounding.
    assert_equivalent(graph, changed, tolerance=2.0**-23)


def test_a_pooling_with_a_layout_of_its_own_stays() -> None:
    how = {"kernel": (2, 2), "layout": "NHWC"}
    graph = make_graph(lambda b, x: b.node("max_pool2d", [conv(b, x)], how))
    changed = choose_layout(graph)
    assert operators_of(changed)[-2:] == ["transpose", "max_pool2d"]
    assert_equivalent(graph, changed)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
def test_concatenations_follow(axis: int) -> None:
    def build(builder, x):
        first, second = conv(builder, x), conv(builder, x)
        joined = builder.node("concatenate", [first, second], {"axis": axis})
        return builder.node("relu", [joined])

    graph = make_graph(build, (2, 3, 6, 6))
    changed = choose_layout(graph)
    verify_graph(changed)
    assert changed.nodes[-1].operator == "transpose"
    assert_equivalent(graph, changed)


def test_a_concatenation_with_a_value_in_the_old_layout_stays() -> None:
    def build(builder, x):
        plain = builder.node("softmax", [x], {"axis": 1})
        return builder.node("concatenate", [conv(builder, x), plain], {"axis": 1})

    graph = make_graph(build)
    changed = choose_layout(graph)
    verify_graph(changed)
    assert changed.nodes[-1].attributes == {"axis": 1}
    assert_equivalent(graph, changed)


@pytest.mark.parametrize("operator", ["pad", "mirror_pad"])
@pytest.mark.parametrize("after", [(0, 2, 1, 0), None])
def test_pads_follow(operator: str, after) -> None:
    amounts = {"pad_before": (0, 1, 2, 3)}
    if after is not None:
        amounts["pad_after"] = after
    graph = make_graph(lambda b, x: b.node(operator, [conv(b, x)], amounts))
    changed = choose_layout(graph)
    verify_graph(changed)
    (made,) = [node for node in changed.nodes if node.operator == operator]
    assert made.attributes["pad_before"] == (0, 2, 3, 1)
    assert_equivalent(graph, changed)


def test_others_read_channels_second() -> None:
    def build(builder, x):
        value = conv(builder, x)
        return [builder.node("softmax", [value], {"axis": 1}), builder.node("flatten", [value])]

    graph = make_graph(build)
    changed = choose_layout(graph)
    assert operators_of(changed).count("transpose") == 3  # the image, the weight, back once
    assert_equivalent(graph, changed)


OPERANDS = {
    "scalar": (),
    "ones": (1, 1),
    "columns": (6,),
    "rows": (6, 1),
    "channels": (4, 1, 1),
    "images": (1, 4, 1, 6),
    "image": (4, 6, 6),
}


@pytest.mark.parametrize("shape", OPERANDS.values(), ids=OPERANDS)
@pytest.mark.parametrize("is_first", (False, True))
def test_operands_that_broadcast_are_transposed(shape, is_first) -> None:
    def build(builder, x):
        operand = builder.constant("c", floats(3, *shape))
        values = [operand, conv(builder, x)] if is_first else [conv(builder, x), operand]
        return conv(builder, builder.node("relu", [builder.node("subtract", values)]))

    graph = make_graph(build)
    changed = choose_layout(graph)
    of_images = [
        n.inputs[0].name
        for n in changed.nodes
        if n.operator == "transpose" and n.name not in ("c.nhwc", "w.packed", "w.1.packed")
    ]
    assert of_images == ["x", "conv2d.1.nhwc"]
    verify_graph(changed)
    assert_equivalent(graph, changed)


def test_an_operand_of_several_nodes_is_transposed_once() -> None:
    def build(builder, x):
        bias = builder.node("relu", [builder.constant("c", floats(3, 4, 1, 1))])
        value = builder.node("add", [conv(builder, x), bias])
        return conv(builder, builder.node("multiply", [value, bias]))

    graph = make_graph(build)
    changed = choose_layout(graph)
    assert [node.operator for node in changed.nodes].count("expand_dims") == 1
    verify_graph(changed)
    assert_equivalent(graph, changed)


def test_an_operand_is_not_taken_for_an_image() -> None:
    def build(builder, x):
        bias = builder.node("relu", [builder.constant("c", floats(3, 4, 1, 1))])
        value = builder.node("add", [conv(builder, x), bias])
        return [value, builder.node("concatenate", [bias, bias], {"axis": 1})]

    graph = make_graph(build)
    assert_equivalent(graph, choose_layout(graph))


def test_adding_another_image_is_no_reason_to_follow() -> None:
    def build(builder, x):
        return builder.node("add", [conv(builder, x), builder.constant("c", floats(0, 2, 4, 6, 6))])

    graph = make_graph(build, (2, 3, 6, 6))
    changed = choose_layout(graph)
    (add,) = [node for node in changed.nodes if node.operator == "add"]
    assert add.outputs[0].shape == graph.outputs[0].shape
    assert_equivalent(graph, changed)


def test_graphs_that_do_not_profit_stay() -> None:
    grouped = make_graph(lambda b, x: conv(b, x, out=3, groups=3))
    assert choose_layout(grouped) is grouped

    def build(builder, x):
        return builder.node("conv2d", [x, builder.input("w", "f32", (4, 3, 3, 3))])

    computed = make_graph(build)
    assert choose_layout(computed) is computed


@pytest.mark.search
def test_text_of_the_digit_network(golden) -> None:
    changed = choose_layout(digits_graph())
    verify_graph(changed)
    golden("graph/digits_layout.txt", str(changed) + "\n")
    assert_equivalent(digits_graph(), changed)


@pytest.mark.search
@given(networks())
def test_meaning_is_kept(graph):
    changed = choose_layout(graph)
    verify_graph(changed)
    # The oracle adds in another order in another layout, in f64 before one rounding to f32.
    assert_equivalent(graph, changed, tolerance=1e-5)


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.choose_layout")
    assert_docstring_holds(passing, choose_layout)
