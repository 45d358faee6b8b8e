"""Weights of quantized products in panels: the same bits, and products that stay."""

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph
from refcomp.graph.passes.pack_matrices import pack_matrices
from refcomp.graph.passes.quantized_panels import find_quantized_panels
from refcomp.graph.verify import verify_graph
from refcomp.topi.schedules.vector_registers import AVX2
from tests.strategies.graphs import operators_of

_HOST = "llvm -mcpu=x86-64-v3"
_ONE = np.float32(0.01)


def _product(operator: str, shape=(6, 7), data_dtype="uint8", dtype="int8", **given) -> Graph:
    """A product of x with 5 columns; `given` replaces the operands of these names."""
    rng = np.random.default_rng(2)
    builder = GraphBuilder("net")
    x = builder.input("x", data_dtype, shape)
    weight = rng.integers(0, 100, (shape[-1], 5)).astype(dtype)
    operands = {
        "weight": weight.T if operator == "quantized_dense" else weight,
        "data_scale": _ONE,
        "weight_scale": rng.uniform(0.5, 1, 5).astype(np.float32),
        "scale": np.float32(0.5),
        "bias": np.arange(5, dtype=np.int32) * 100,
        "data_zero": np.array([3], data_dtype),
        "weight_zero": np.arange(5).astype(dtype),
        "zero": np.array(4, np.uint8),
    } | given
    orders = {
        "matmul_integer": "weight data_zero weight_zero",
        "qlinear_matmul": "data_scale data_zero weight weight_scale weight_zero scale zero",
        "quantized_dense": ("weight data_scale weight_scale scale bias data_zero weight_zero zero"),
    }
    inputs = [
        None if operands[name] is None else _value(builder, name, operands[name])
        for name in orders[operator].split()
    ]
    return builder.finish([builder.node(operator, [x, *inputs], name="y")])


def _value(builder, name, operand):
    if isinstance(operand, tuple):  # an input of this dtype and shape
        return builder.input(name, *operand)
    return builder.constant(name, operand)


def _panels(graph: Graph):
    return find_quantized_panels(graph, graph.nodes[0], AVX2)


OPERATORS = ["matmul_integer", "qlinear_matmul", "quantized_dense"]


@pytest.mark.llvm
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("int8", "uint8")])
def test_results_are_the_same_to_the_bit(operator, dtypes) -> None:
    data_dtype, dtype = dtypes
    graph = _product(operator, ("N", 7), data_dtype, dtype)
    packed = pack_matrices(graph, _HOST)
    verify_graph(packed)
    assert operators_of(packed) == ["quantized_dense_pack"]
    x = np.random.default_rng(3).integers(0, 128, (6, 7)).astype(data_dtype)
    (before,), (after,) = (GraphExecutor(compile_graph(each)).run(x=x) for each in (graph, packed))
    assert before.dtype == after.dtype
    assert np.array_equal(before, after)
    (expected,) = evaluate_graph(packed, {"x": x})
    assert before.dtype == expected.dtype


@pytest.mark.parametrize("operator", OPERATORS)
def test_parameters_that_are_missing_or_scalars(operator) -> None:
    without = {"data_zero": None, "weight_zero": None, "bias": None}
    if operator == "qlinear_matmul":
        without = {"data_zero": np.uint8(3), "weight_zero": np.int8(3), "weight_scale": _ONE}
    graph = _product(operator, **without)
    packed = pack_matrices(graph, _HOST)
    verify_graph(packed)
    assert operators_of(packed) == ["quantized_dense_pack"]


@pytest.mark.parametrize(
    ("operator", "given"),
    [
        ("matmul_integer", {"weight": ("int8", (7, 5))}),
        ("matmul_integer", {"weight_zero": ("int8", (5,))}),
        ("matmul_integer", {"weight": np.ones((2, 7, 5), np.int8), "shape": (2, 6, 7)}),
        ("matmul_integer", {"data_zero": np.ones(6, np.uint8)}),
        ("qlinear_matmul", {"data_scale": np.ones(6, np.float32)}),
        ("matmul_integer", {"shape": (6, 0)}),
    ],
    ids=str,
)
def test_products_that_stay(operator, given) -> None:
    graph = _product(operator, **given)
    assert _panels(graph) is None
    assert pack_matrices(graph, _HOST) is graph


def test_other_operators_have_no_panels() -> None:
    builder = GraphBuilder("net")
    graph = builder.finish([builder.node("relu", [builder.input("x", "float32", (2,))])])
    assert _panels(graph) is None
