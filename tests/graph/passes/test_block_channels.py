"""block_channels: blocks around convolutions, few changes of layout, and no other meaning."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given

from refcomp.foundation.errors import UserError
from refcomp.graph.passes.block_channels import block_channels
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import assert_equivalent, make_graph, networks, operators_of
from tests.strategies.operands import floats

_V3 = "llvm -mcpu=x86-64-v3"
# In another layout the oracle adds in another order, in f64 before one rounding.
_ROUNDING = 2.0**-22


def conv(builder, value, out=16, kernel=3, **attributes):
    depth = value.shape[1] // attributes.get("groups", 1)
    weight = builder.constant("w", floats(7, out, depth, kernel, kernel))
    padding = (kernel // 2,) * 4
    return builder.node("conv2d", [value, weight], {"padding": padding, **attributes})


def blocked(build, shape=("N", 3, 6, 6), target=_V3):
    """The graph after the pass, which is legal and means the same."""
    graph = make_graph(build, shape)
    changed = block_channels(graph, target)
    verify_graph(changed)
    assert_equivalent(graph, changed, tolerance=_ROUNDING)
    return changed


def changes_of_images(graph):
    """The values whose layout changes while the graph runs."""
    return [
        node.inputs[0].name
        for node in graph.nodes
        if node.operator == "layout_transform" and node.inputs[0] not in graph.constants
    ]


def test_between_convolutions_no_layout_changes() -> None:
    def build(builder, x):
        value = builder.node("relu", [conv(builder, x)])
        value = builder.node("max_pool2d", [value], {"kernel": (2, 2)})
        return builder.node("add", [conv(builder, value), conv(builder, value)])

    changed = blocked(build)
    assert changes_of_images(changed) == ["x", "add.nchw16c"]
    assert operators_of(changed).count("conv2d_nchwc") == 3
    (pool,) = [n for n in changed.nodes if n.operator == "max_pool2d"]
    assert pool.attributes["layout"] == "NCHWc"


@pytest.mark.parametrize(
    ("level", "out", "block"), [("v2", 16, 8), ("v2", 12, 4), ("v3", 48, 16), ("v4", 24, 8)]
)
def test_blocks_fit_the_registers_of_the_target(level, out, block) -> None:
    changed = blocked(lambda b, x: conv(b, x, out), target=f"llvm -mcpu=x86-64-{level}")
    (made,) = [n for n in changed.nodes if n.operator == "conv2d_nchwc"]
    assert made.outputs[0].shape[-1] == block
    # The three channels of a picture are one block.
    assert made.inputs[0].shape[-1] == 3


POOLS = {
    "max_pool2d": {"kernel": (2, 2)},
    "avg_pool2d": {"kernel": (2, 2), "padding": (1, 0, 1, 0)},
    "lp_pool2d": {"kernel": (2, 2)},
    "global_avg_pool2d": {},
    "global_max_pool2d": {},
    "global_lp_pool2d": {},
}


@pytest.mark.parametrize("pool", POOLS)
def test_poolings_follow(pool: str) -> None:
    changed = blocked(lambda b, x: b.node(pool, [conv(b, x)], POOLS[pool]))
    (made,) = [node for node in changed.nodes if node.operator == pool]
    assert made.attributes["layout"] == "NCHWc"


def test_a_pooling_with_a_layout_of_its_own_stays() -> None:
    how = {"kernel": (2, 2), "layout": "NHWC"}
    changed = blocked(lambda b, x: b.node("max_pool2d", [conv(b, x)], how))
    assert operators_of(changed)[-2:] == ["layout_transform", "max_pool2d"]


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
def test_concatenations_follow(axis: int) -> None:
    def build(builder, x):
        first, second = conv(builder, x), conv(builder, x)
        joined = builder.node("concatenate", [first, second], {"axis": axis})
        return builder.node("relu", [joined])

    assert operators_of(blocked(build, (2, 3, 6, 6)))[-3:] == [
        "concatenate",
        "relu",
        "layout_transform",
    ]


def test_parts_of_a_concatenation_get_equal_blocks() -> None:
    def build(builder, x):
        plain = builder.node("softmax", [x], {"axis": 1})
        parts = [conv(builder, x), conv(builder, x, out=8), plain]
        return builder.node("concatenate", parts, {"axis": 1})

    changed = blocked(build, (2, 8, 6, 6))
    (joined,) = [node for node in changed.nodes if node.operator == "concatenate"]
    assert [value.shape[-1] for value in joined.reads] == [8, 8, 8]


def test_parts_without_blocks_are_joined_plainly() -> None:
    def build(builder, x):
        return builder.node("concatenate", [conv(builder, x), x], {"axis": 1})

    assert operators_of(blocked(build))[-1] == "concatenate"


@pytest.mark.parametrize("operator", ["pad", "mirror_pad"])
@pytest.mark.parametrize("after", [(0, 0, 1, 0), None])
def test_pads_of_images_follow(operator: str, after) -> None:
    amounts = {"pad_before": (0, 0, 2, 3)}
    if after is not None:
        amounts["pad_after"] = after
    changed = blocked(lambda b, x: b.node(operator, [conv(b, x)], amounts))
    (made,) = [node for node in changed.nodes if node.operator == operator]
    assert made.attributes["pad_before"] == (0, 0, 2, 3, 0)


def test_pads_of_channels_stay() -> None:
    amounts = {"pad_before": (0, 1, 0, 0)}
    changed = blocked(lambda b, x: b.node("pad", [conv(b, x)], amounts))
    assert operators_of(changed)[-2:] == ["layout_transform", "pad"]


SHAPES = [(), (1,), (6,), (6, 1), (16, 1, 1), (1, 6, 6), (16, 6, 1), (1, 1, 1, 6), (1, 16, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_constant", [True, False])
def test_operands_that_broadcast_follow(shape, is_constant) -> None:
    def build(builder, x):
        operand = builder.constant("c", floats(0, *shape))
        if not is_constant:
            operand = builder.node("tanh", [operand])
        return builder.node("add", [operand, conv(builder, x)])

    changed = blocked(build)
    assert operators_of(changed)[-1] == "layout_transform"


def test_squeeze_and_excitation_stays_in_blocks() -> None:
    def build(builder, x):
        value = conv(builder, x)
        pooled = builder.node("global_avg_pool2d", [value])
        gate = builder.node("sigmoid", [conv(builder, pooled, kernel=1)])
        return builder.node("multiply", [value, gate])

    assert changes_of_images(blocked(build)) == ["x", "multiply.nchw16c"]


def test_a_result_of_more_elements_is_computed_plainly() -> None:
    def build(builder, x):
        pooled = builder.node("global_avg_pool2d", [conv(builder, x)])
        return builder.node("add", [pooled, builder.constant("c", floats(0, 16, 6, 6))])

    assert operators_of(blocked(build))[-1] == "add"


def test_others_read_channels_second() -> None:
    def build(builder, x):
        value = conv(builder, x)
        return [builder.node("softmax", [value], {"axis": 1}), builder.node("flatten", [value])]

    assert changes_of_images(blocked(build)) == ["x", "conv2d.nchw16c"]


def test_groups_of_whole_blocks_are_convolved_in_blocks() -> None:
    changed = blocked(lambda b, x: conv(b, x, out=48, groups=2), (1, 16, 5, 5))
    (made,) = [node for node in changed.nodes if node.operator == "conv2d_nchwc"]
    assert made.attributes["groups"] == 2
    assert (made.inputs[0].shape[-1], made.outputs[0].shape[-1]) == (8, 8)


def grouped(builder, value, out=12, kernel=1, **attributes):
    """Add a convolution in two groups, which blocks do not divide."""
    weight = builder.constant("w", floats(7, out, value.shape[1] // 2, kernel, kernel))
    bias = builder.constant("b", floats(1, out))
    return builder.node("conv2d", [value, weight, bias], {"groups": 2, **attributes})


@pytest.mark.parametrize("shape", [(1, 6, 5, 3), (3, 6, 2, 7), (1, 6, 1, 1)], ids=str)
def test_other_groups_of_single_pixels_become_products(shape) -> None:
    changed = blocked(lambda b, x: grouped(b, b.node("relu", [x])), shape)
    operators = operators_of(changed)
    assert "conv2d" not in operators
    assert operators.count("matmul") == 1
    assert not changes_of_images(changed)


def test_products_of_groups_read_blocks_and_are_read_in_blocks() -> None:
    def build(builder, x):
        value = conv(builder, grouped(builder, conv(builder, x)))
        weight = builder.constant("w", floats(2, 8, 8, 1, 1))
        how = {"groups": 2, "dilation": (2, 3)}
        return builder.node("conv2d", [value, weight], how)

    changed = blocked(build, (2, 3, 6, 6))
    operators = operators_of(changed)
    assert (operators.count("conv2d_nchwc"), operators.count("matmul")) == (2, 2)
    assert changes_of_images(changed) == ["x", "conv2d.nchw16c", "conv2d.1", "conv2d.2.nchw16c"]


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ((1, 6, 5, 5), {"strides": (1, 2)}),
        ((1, 6, 5, 5), {"padding": (0, 0, 1, 0)}),
        ((1, 6, 5, 5), {"kernel": 3}),
        (("N", 6, 5, 5), {}),
        ((1, 6, 5, "W"), {}),
        ((0, 6, 5, 5), {}),
    ],
)
def test_other_groups_stay(shape, how) -> None:
    graph = make_graph(lambda b, x: grouped(b, x, **how), shape)
    assert block_channels(graph, _V3) is graph


def test_a_group_for_each_channel_is_depthwise() -> None:
    def build(builder, x):
        bias = builder.constant("b", floats(1, 16))
        weight = builder.constant("w", floats(7, 16, 1, 3, 3))
        how = {"padding": (1, 1, 1, 1), "groups": 16, "strides": (2, 1)}
        return builder.node("conv2d", [conv(builder, x), weight, bias], how)

    changed = blocked(build)
    (made,) = [node for node in changed.nodes if node.operator == "depthwise_conv2d_nchwc"]
    assert made.attributes == {"padding": (1, 1, 1, 1), "strides": (2, 1)}
    assert changes_of_images(changed) == ["x", "conv2d.1.nchw16c"]


def test_graphs_that_do_not_profit_stay() -> None:
    for build in (
        lambda b, x: conv(b, x, out=4),
        lambda b, x: b.node("conv2d", [x, b.input("w", "f32", (16, 3, 3, 3))]),
        lambda b, x: b.node("relu", [x]),
    ):
        graph = make_graph(build)
        assert block_channels(graph, _V3) is graph
    doubles = make_graph(
        lambda b, x: b.node(
            "conv2d",
            [b.node("cast", [x], {"dtype": "float64"}), b.constant("w", np.ones((16, 3, 1, 1)))],
        )
    )
    assert block_channels(doubles, _V3) is doubles


@pytest.mark.parametrize("target", ["opencl", "interp", "rocm -mcpu=gfx942"])
def test_other_targets_keep_their_layout(target) -> None:
    graph = make_graph(conv)
    assert block_channels(graph, target) is graph


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(UserError, match="'lvm'"):
        block_channels(make_graph(conv), "lvm")


@pytest.mark.search
@given(networks())
def test_meaning_is_kept(graph):
    # Blocks of four channels, which these small networks have.
    changed = block_channels(graph, "llvm -mcpu=x86-64-v2")
    verify_graph(changed)
    assert_equivalent(graph, changed, tolerance=1e-5)


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.block_channels")
    assert_docstring_holds(passing, lambda graph: block_channels(graph, _V3))
