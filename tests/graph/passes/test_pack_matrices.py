"""pack_matrices: constant matrices are transposed once."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.passes.pack_matrices import pack_matrices
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import assert_equivalent, digits_graph, make_graph, operators_of
from tests.strategies.operands import floats

_HOST = "llvm -mcpu=x86-64-v3"


@pytest.mark.search
@pytest.mark.parametrize("target", [_HOST, "llvm -mcpu=x86-64-v4", "opencl", "interp"])
def test_a_transposed_constant_is_packed(target) -> None:
    graph = digits_graph()
    packed = pack_matrices(graph, target)
    verify_graph(packed)
    assert_equivalent(graph, packed)
    folded = fold_constants(packed)
    assert "transpose" not in operators_of(folded)
    if target.startswith("llvm"):
        (dense,) = [node for node in folded.nodes if node.operator == "dense_pack"]
        assert dense.attributes["units"] == 10
        assert dense.inputs[1].shape == (1, 32, 10)
    else:
        (gemm,) = [node for node in folded.nodes if node.operator == "gemm"]
        assert gemm.inputs[1].shape == (32, 10)
        assert "trans_b" not in gemm.attributes


@pytest.mark.parametrize(
    ("operator", "shape", "attributes"),
    [
        ("matmul", (5, 30), {}),
        ("matmul", (30, 5), {"trans_b": True}),
        ("dense", (30, 5), {}),
        ("gemm", (5, 30), {}),
    ],
)
def test_each_product_reads_panels(operator, shape, attributes) -> None:
    def build(builder, x):
        return builder.node(operator, [x, builder.constant("w", floats(0, *shape))], attributes)

    graph = make_graph(build, (7, 5))
    packed = pack_matrices(graph, _HOST)
    assert "dense_pack" in operators_of(packed) and operator not in operators_of(packed)
    (node,) = fold_constants(packed).nodes
    assert node.inputs[1].shape == (2, 5, 18)
    assert_equivalent(graph, packed)


@pytest.mark.parametrize("shape", [(30,), (1, 30), (7, 1), (7, 30), ()])
def test_what_a_gemm_adds_is_a_bias_or_a_node(shape) -> None:
    def build(builder, x):
        weight = builder.constant("w", floats(0, 5, 30))
        return builder.node("gemm", [x, weight, builder.constant("c", floats(1, *shape))], {}, "y")

    graph = make_graph(build, (7, 5))
    packed = pack_matrices(graph, _HOST)
    assert ("add" in operators_of(packed)) == (shape != (30,))
    assert [value.name for value in packed.outputs] == [value.name for value in graph.outputs]
    # By its meaning, a gemm rounds once, and dense_pack rounds before the addition.
    assert_equivalent(graph, packed, tolerance=2.0**-23)


def test_two_products_share_panels() -> None:
    def build(builder, x):
        weight = builder.constant("w", floats(0, 5, 5))
        return builder.node("matmul", [builder.node("matmul", [x, weight]), weight])

    packed = pack_matrices(make_graph(build, (7, 5)), _HOST)
    assert operators_of(packed).count("dense_pack") == 2
    assert operators_of(packed).count("reshape") == 1


@pytest.mark.parametrize(
    ("operator", "shape", "attributes"),
    [
        ("gemm", (5, 30), {"alpha": 2.0}),
        ("gemm", (7, 30), {"trans_a": True}),
        ("matmul", (5, 1), {}),
        ("matmul", (5,), {}),
        ("matmul", (2, 5, 30), {}),
    ],
)
def test_products_that_dense_pack_lacks_stay(operator, shape, attributes) -> None:
    def build(builder, x):
        return builder.node(operator, [x, builder.constant("w", floats(0, *shape))], attributes)

    graph = make_graph(build, (7, 5))
    assert pack_matrices(graph, _HOST) is graph


def test_other_products_stay() -> None:
    by_rows = floats(0, 4, 3)
    plain = make_graph(lambda b, x: b.node("gemm", [x, b.constant("w", by_rows)]), ("N", 4))
    assert pack_matrices(plain, "opencl") is plain

    def build(builder, x):
        return builder.node("gemm", [x, builder.input("w", "f32", (3, 4))], {"trans_b": True})

    computed = make_graph(build, ("N", 4))
    assert pack_matrices(computed) is computed


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.pack_matrices")
    assert_docstring_holds(passing, pack_matrices)


def test_weights_of_a_quantized_product_are_packed_in_pairs() -> None:
    def build(builder, x):
        integers, *_ = builder.nodes("dynamic_quantize_linear", [x])
        weight = builder.constant("w", np.arange(-75, 75, dtype=np.int8).reshape(5, 30))
        sums = [builder.node("matmul_integer", [integers, weight]) for _ in range(2)]
        return builder.node("add", sums)

    graph = make_graph(build, (7, 5))
    packed = pack_matrices(graph, _HOST)
    verify_graph(packed)
    assert operators_of(packed).count("quantized_dense_pack") == 2
    assert len(packed.constants) == len(graph.constants)  # both share the panels
    assert_equivalent(graph, packed)
    assert pack_matrices(graph, "opencl") is graph
