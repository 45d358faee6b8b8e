"""Products of narrow floats on hosts: the same bits by kernels of f32, and those that stay."""

from importlib import import_module

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph
from refcomp.graph.passes.pack_matrices import pack_matrices
from refcomp.graph.passes.widen_products import widen_products
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import operators_of

_HOST = "llvm -mcpu=x86-64-v3"
_KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def _halves(dtype: str, *shape: int) -> np.ndarray:
    """Small multiples of 1/4, of which sums of products are exact in f32."""
    rng = np.random.default_rng(3)
    return (rng.integers(-8, 9, shape) / 4).astype(_KINDS[dtype])


def _product(dtype="float16", rows=8, operator="matmul", out="float32", *, is_constant=True):
    builder = GraphBuilder("net")
    x = builder.input("x", dtype, (rows, 6))
    weight = _halves(dtype, *((24, 6) if operator == "dense" else (6, 24)))
    w = builder.constant("w", weight) if is_constant else builder.input("w", dtype, weight.shape)
    attributes = {} if out is None else {"out_dtype": out}
    inputs = [x, w]
    if operator == "dense":
        inputs.append(builder.constant("b", np.arange(24, dtype=np.float32)))
    return builder.finish([builder.node(operator, inputs, attributes, name="y")])


def _convolution(dtype: str) -> Graph:
    builder = GraphBuilder("net")
    x = builder.input("x", dtype, (1, 8, 5, 5))
    w = builder.constant("w", _halves(dtype, 16, 8, 3, 3))
    sums = builder.node("conv2d", [x, w], {"padding": (1,) * 4, "out_dtype": "float32"})
    narrow = builder.node("cast", [sums], {"dtype": dtype})
    return builder.finish([builder.node("relu", [narrow], name="y")])


def _assert_bits_are_kept(graph: Graph, changed: Graph, dtype: str) -> None:
    verify_graph(changed)
    feeds = {value.name: _halves(dtype, *value.shape) for value in graph.inputs}
    (expected,), (found,) = (list(evaluate_graph(g, feeds)) for g in (graph, changed))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", _KINDS)
def test_operands_become_f32(dtype: str) -> None:
    graph = _product(dtype)
    changed = widen_products(graph, _HOST)
    _assert_bits_are_kept(graph, changed, dtype)
    assert operators_of(changed) == ["cast", "matmul"]
    assert changed.nodes[-1].attributes.get("out_dtype") is None
    convolution = _convolution(dtype)
    changed = widen_products(convolution, _HOST)
    _assert_bits_are_kept(convolution, changed, dtype)
    assert operators_of(changed) == ["cast", "conv2d", "cast", "relu"]


def test_operands_that_run_are_converted_once() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float16", (8, 8))
    attributes = {"out_dtype": "float32"}
    nodes = [builder.node("matmul", [x, x], attributes) for _ in range(2)]
    graph = builder.finish(nodes)
    assert operators_of(widen_products(graph, _HOST)) == ["cast", "matmul", "matmul"]


@pytest.mark.parametrize(
    "graph",
    [
        _product(out=None),
        _product(rows=4),
        _product(rows=1, operator="dense"),
        _product(rows=1, is_constant=False),
    ],
    ids=["narrow sums", "few rows", "dense", "no constant"],
)
def test_others_stay(graph: Graph) -> None:
    assert widen_products(graph, _HOST) is graph


@pytest.mark.parametrize("target", ["cuda", "rocm -mcpu=gfx942"])
def test_other_targets_keep_narrow_operands(target: str) -> None:
    graph = _product()
    assert widen_products(graph, target) is graph


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(UserError, match="llvmm"):
        widen_products(_product(), "llvmm")


@pytest.mark.parametrize("operator", ["matmul", "dense"])
@pytest.mark.parametrize("dtype", _KINDS)
def test_few_rows_read_narrow_panels(dtype: str, operator: str) -> None:
    graph = _product(dtype, rows=2, operator=operator)
    changed = pack_matrices(graph, _HOST)
    _assert_bits_are_kept(graph, changed, dtype)
    assert operators_of(changed)[-2:] == ["cast", "dense_pack"]
    data, panels, *_ = changed.nodes[-1].inputs
    assert data.dtype.bits == 32
    assert panels.dtype.bits == 16


@pytest.mark.llvm
@pytest.mark.parametrize("dtype", _KINDS)
def test_compiled_results_are_the_same(dtype: str) -> None:
    for graph in (_product(dtype), _product(dtype, rows=1), _convolution(dtype)):
        feeds = {value.name: _halves(dtype, *value.shape) for value in graph.inputs}
        executor = GraphExecutor(compile_graph(graph, "llvm"))
        (found,) = executor.run(feeds)
        (expected,) = evaluate_graph(graph, feeds)
        np.testing.assert_array_equal(found.asnumpy(), expected)


def test_the_docstring_holds() -> None:
    module = import_module("refcomp.graph.passes.widen_products")
    assert_docstring_holds(module, widen_products)
