"""quantized_layers: scales that are taken, layers that are found, and the error that is allowed."""

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Graph, GraphNode
from refcomp.graph.passes.quantized_layers import Scale, find_layer, scale_of
from tests.strategies.operands import floats


def dequantized(scale, zero=None, shape=(2, 3), dtype="int8", **attributes) -> Scale | None:
    builder = GraphBuilder("g")
    inputs = [builder.input("x", dtype, shape), builder.constant("s", np.asarray(scale))]
    if zero is not None:
        inputs.append(builder.constant("z", np.asarray(zero, dtype)))
    graph = builder.finish([builder.node("dequantize", inputs, attributes)])
    return scale_of(graph, graph.nodes[0])


def test_parameters_are_read() -> None:
    one = dequantized(np.float32([0.5]), [3])
    assert one is not None and not one.is_per_axis
    assert (float(one.floats), int(one.zero), str(one.dtype)) == (0.5, 3, "i8")
    rows = dequantized(np.float32([0.5, 0.25]), axis=-2)
    assert rows is not None and rows.is_per_axis
    assert (rows.axis, rows.zero.tolist(), rows.zero.dtype) == (0, [0, 0], np.int8)


@pytest.mark.parametrize(
    "scale",
    [
        np.float16(0.5), np.float32(0), np.float32(-1), np.float32(np.nan), np.float32(np.inf),
        np.float32(1e-40), np.float32(3e38),
    ],
)  # fmt: skip
def test_scales_without_exact_integers_are_not_taken(scale) -> None:
    assert dequantized(scale) is None


def test_blocks_and_few_bits_are_not_taken() -> None:
    assert dequantized(np.ones((2, 2), "f4"), axis=1, block_size=2) is None
    builder = GraphBuilder("g")
    x = builder.input("x", "f32", (2,))
    narrow = builder.node("quantize", [x, builder.constant("s", np.float32(1))], {"bits": 4})
    graph = builder.finish([narrow])
    assert scale_of(graph, graph.nodes[0]) is None


def test_equal_scales_are_the_same() -> None:
    half, again = dequantized(np.float32(0.5)), dequantized(np.float32([0.5]), [0])
    assert half is not None and again is not None
    assert half.is_same(again)
    for other in (dequantized(np.float32(0.25)), dequantized(np.float32(0.5), 1)):
        assert other is not None and not half.is_same(other)
    unsigned = dequantized(np.float32(0.5), dtype="uint8")
    assert unsigned is not None and not half.is_same(unsigned)
    rows = dequantized(np.float32([0.5, 0.5]), axis=0)
    assert rows is not None and not rows.is_same(rows)


def test_a_far_greater_scale_is_not_near() -> None:
    fine, coarse = dequantized(np.float32(1e-6)), dequantized(np.float32(1))
    assert fine is not None and coarse is not None
    assert coarse.is_near(fine)
    # 255 * 10^6 * 12 * 2^-24 is greater than 1.
    assert not fine.is_near(coarse)


def product(result=1.0, bias=None, weight=None, data=0.5) -> tuple[Graph, GraphNode]:
    builder = GraphBuilder("g")
    x = builder.input("x", "int8", (2, 3))
    elements = np.ones((4, 3), np.int8) if weight is None else weight
    scales = [builder.constant("s", np.float32(s)) for s in (data, 0.25, result)]
    inputs = [
        builder.node("dequantize", [x, scales[0]]),
        builder.node("dequantize", [builder.constant("w", elements), scales[1]]),
    ]
    if bias is not None:
        inputs.append(builder.constant("b", bias))
    dense = builder.node("dense", inputs)
    made = builder.node("quantize", [dense, scales[2]], {"dtype": "int8"})
    graph = builder.finish([made])
    return graph, graph.nodes[-1]


def found(graph: Graph, node: GraphNode):
    makers = {value: one for one in graph.nodes for value in one.outputs}
    result = scale_of(graph, node)
    assert result is not None
    return find_layer(graph, makers, lambda value: True, node, result)


def test_a_layer_is_described() -> None:
    layer = found(*product(bias=np.float32([0.125, 1, 0, -0.5])))
    assert layer is not None
    assert layer.anchor.operator == "dense"
    assert layer.integers.name == "x"
    assert layer.matrix is not None and layer.matrix.shape == (4, 3)
    # In units of 0.5 * 0.25.
    assert layer.bias is not None and layer.bias.tolist() == [1, 8, 0, -4]
    assert (layer.has_relu, float(layer.result.floats)) == (False, 1.0)


def test_a_bias_of_zeros_is_none() -> None:
    layer = found(*product(bias=np.zeros(4, np.float32)))
    assert layer is not None and layer.bias is None


@pytest.mark.parametrize(
    ("result", "data", "bias"),
    [
        # 384 products of up to 2^7, each 2^20 quanta.
        (2.0**-23, 0.5, None),
        # Off by half a unit of the bias, which is two quanta.
        (0.5, 4.0, 0.5),
        # More than 2^31 units.
        (1e9, 0.5, 4e8),
        # The product of scales is subnormal.
        (1.0, 2.0**-125, None),
    ],
    ids=["quanta are too small", "the bias is too coarse", "sums wrap", "tiny scales"],
)
def test_layers_that_could_be_off_by_two_quanta_are_not_found(result, data, bias) -> None:
    vector = None if bias is None else np.full(4, bias, np.float32)
    assert found(*product(result=result, data=data, bias=vector)) is None


def test_a_column_is_not_a_bias() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", "int8", (4, 3))
    scale = builder.constant("s", np.float32(1))
    weight = builder.node("dequantize", [builder.constant("w", np.ones((3, 4), np.int8)), scale])
    column = builder.constant("c", floats(1, 4, 1))
    inputs = [builder.node("dequantize", [x, scale]), weight, column]
    made = builder.node("quantize", [builder.node("gemm", inputs), scale])
    graph = builder.finish([made])
    assert found(graph, graph.nodes[-1]) is None
