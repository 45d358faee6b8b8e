"""Quantized convolutions in blocks: the same bits, few changes of layout, and those that stay."""

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph
from refcomp.graph.passes.block_channels import block_channels
from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.passes.quantized_blocks import QUANTIZED_CONVOLUTIONS
from refcomp.graph.verify import verify_graph
from tests.strategies.graphs import operators_of

_HOST = "llvm -mcpu=x86-64-v3"


def _add(builder, x, outs=16, kernel=3, groups=1, operator="qlinear_conv2d", **given):
    """A quantized convolution of x; `given` replaces the operands of these names."""
    rng = np.random.default_rng(2)
    shape = (outs, x.shape[1] // groups, kernel, kernel)
    operands = {
        "data_scale": np.float32(0.3),
        "data_zero": np.array([3], np.uint8),
        "weight": rng.integers(-127, 128, shape).astype(np.int8),
        "weight_scale": rng.uniform(0.01, 0.02, outs).astype(np.float32),
        "weight_zero": rng.integers(-3, 4, outs).astype(np.int8),
        "scale": np.float32(0.7),
        "zero": np.array(100, np.uint8),
        "bias": rng.integers(-999, 999, outs).astype(np.int32),
    } | given
    names = list(operands)
    if operator == "conv2d_integer":
        names = ["weight", "data_zero", "weight_zero"]
    inputs = [
        None if operands[name] is None else _value(builder, name, operands[name]) for name in names
    ]
    attributes = {"padding": (kernel // 2,) * 4, "groups": groups}
    return builder.node(operator, [x, *inputs], attributes)


def _value(builder, name, operand):
    if isinstance(operand, tuple):  # an input of this dtype and shape
        return builder.input(name, *operand)
    return builder.constant(name, operand)


def _net(build, channels=16, size=7) -> Graph:
    builder = GraphBuilder("net")
    x = builder.input("x", "uint8", (1, channels, size, size))
    return builder.finish([build(builder, x)])


def _feeds(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        value.name: rng.integers(0, 256, value.shape).astype(np.uint8)
        if value.dtype.bits == 8
        else np.full(value.shape, 0.5, np.float32)
        for value in graph.inputs
    }


def _blocked(graph: Graph) -> Graph:
    """The graph after the pass, which is legal and means the same to the last bit."""
    changed = fold_constants(block_channels(graph, _HOST))
    verify_graph(changed)
    feeds = _feeds(graph)
    (expected,), (found,) = (list(evaluate_graph(g, feeds)) for g in (graph, changed))
    np.testing.assert_array_equal(found, expected)
    return changed


_CASES = [
    {},
    {"kernel": 1, "outs": 8, "weight_zero": None, "operator": "conv2d_integer"},
    {"operator": "conv2d_integer"},
    {"groups": 2, "outs": 32},
    {"groups": 16},
    {"groups": 16, "operator": "conv2d_integer"},
    {"weight_scale": np.float32(0.01), "weight_zero": np.array(5, np.int8), "bias": None},
    {"weight_scale": np.array([0.01], np.float32)},
    {"data_scale": ("float32", (1,)), "data_zero": ("uint8", ())},
]


@pytest.mark.parametrize("case", _CASES, ids=range(len(_CASES)))
def test_bits_are_kept(case) -> None:
    groups = case.get("groups", 1)
    channels = 16 * groups if groups == 2 else 16
    changed = _blocked(_net(lambda builder, x: _add(builder, x, **case), channels))
    wanted = "quantized_depthwise_conv2d_nchwc" if groups == 16 else "quantized_conv2d_nchwc"
    assert wanted in operators_of(changed)
    assert not set(operators_of(changed)) & set(QUANTIZED_CONVOLUTIONS)


def test_between_convolutions_no_layout_changes() -> None:
    def build(builder, x):
        value = _add(builder, x, outs=32)
        value = builder.node("max_pool2d", [value], {"kernel": (2, 2)})
        scale = builder.constant("s", np.array([0.5], np.float32))
        floats = builder.node("dequantize", [value, scale])
        both = builder.node("add", [floats, floats])
        value = builder.node("quantize", [both, scale], {"dtype": "uint8"})
        return _add(builder, value, kernel=1)

    changed = _blocked(_net(build, channels=3))
    assert operators_of(changed) == [
        "layout_transform",
        "quantized_conv2d_nchwc",
        "max_pool2d",
        "dequantize",
        "add",
        "quantize",
        "quantized_conv2d_nchwc",
        "layout_transform",
    ]
    assert changed.nodes[0].attributes["dst_layout"] == "NCHW3c"


def test_scales_per_axis_have_no_blocks() -> None:
    def build(builder, x):
        scales = builder.constant("s", np.linspace(0.5, 1, 16).astype(np.float32))
        return builder.node("dequantize", [_add(builder, x), scales])

    assert operators_of(_blocked(_net(build)))[-2:] == ["layout_transform", "dequantize"]


def test_scales_per_block_of_the_data_have_no_blocks_of_channels() -> None:
    def build(builder, x):
        scales = builder.constant("s", np.full((1, 1, 1, 1), 0.5, np.float32))
        attributes = {"axis": 1, "block_size": 16}
        return builder.node("dequantize", [_add(builder, x), scales], attributes)

    changed = _blocked(_net(build, size=1))
    assert operators_of(changed)[-2:] == ["layout_transform", "dequantize"]


@pytest.mark.parametrize(
    "case",
    [
        {"outs": 12},
        {"groups": 4},
        {"weight": ("int8", (16, 16, 3, 3))},
        {"weight_zero": ("int8", (16,))},
    ],
    ids=["channels", "groups", "weight", "zero"],
)
def test_others_stay(case) -> None:
    graph = _net(lambda builder, x: _add(builder, x, **case))
    assert block_channels(graph, _HOST) is graph


@pytest.mark.llvm
@pytest.mark.parametrize("case", [{}, {"kernel": 1}, {"groups": 16}], ids=["3x3", "1x1", "alone"])
def test_compiled_results_have_the_same_bits(case) -> None:
    graph = _net(lambda builder, x: _add(builder, x, **case))
    feeds = _feeds(graph)
    results = []
    for passes in ([], None):
        executor = GraphExecutor(compile_graph(graph, "llvm", passes=passes))
        for name, array in feeds.items():
            executor.set_input(name, array)
        executor.run()
        results.append(executor.get_output(0).numpy())
    np.testing.assert_array_equal(*results)
    assert len(np.unique(results[0])) > 20
