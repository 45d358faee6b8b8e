"""Bounds of nodes: as tight as they claim, for products and for all other operators."""

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.debug.bounds import bound_values
from refcomp.graph.debug.executor import DebugExecutor
from refcomp.graph.dims import Symbols
from refcomp.graph.evaluate import evaluate_node
from refcomp.graph.graph import Graph
from refcomp.graph.infer import node_to_te, value_to_placeholder
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from tests.strategies.operands import floats


def one_node(operator, arrays, **attributes) -> tuple[Graph, dict]:
    builder = GraphBuilder("net")
    values = [builder.input(f"x{k}", a.dtype, a.shape) for k, a in enumerate(arrays)]
    graph = builder.finish([builder.node(operator, values, attributes, name="y")])
    return graph, dict(zip(values, arrays, strict=True))


def bound_of(graph, known) -> Bounded:
    (bounded,) = bound_values(graph.nodes, known, graph.outputs)
    return bounded


CASES = [
    ("matmul", [(3, 40), (40, 5)], {}),
    ("matmul", [(2, 3, 40), (2, 40, 5)], {}),
    (
        "gemm",
        [(40, 3), (5, 40), (5,)],
        {"trans_a": True, "trans_b": True, "alpha": -0.5, "beta": -2.0},
    ),
    ("dense", [(3, 40), (5, 40), (5,)], {}),
    ("conv1d", [(1, 4, 9), (5, 4, 3)], {}),
    ("conv2d", [(1, 4, 6, 6), (5, 4, 3, 3), (5,)], {"padding": (1, 1, 1, 1)}),
    ("conv2d", [(1, 4, 6, 6), (4, 1, 3, 3)], {"groups": 4}),
    ("conv2d_nhwc", [(1, 6, 6, 4), (3, 3, 4, 5), (5,)], {"strides": (2, 2)}),
    ("conv2d_nchwc", [(1, 2, 6, 6, 2), (2, 2, 3, 3, 2, 4), (2, 4)], {"padding": (1, 1, 1, 1)}),
    ("conv2d_nchwc", [(1, 2, 6, 6, 2), (2, 1, 3, 3, 2, 4)], {"groups": 2}),
    ("depthwise_conv2d_nchwc", [(1, 2, 6, 6, 2), (2, 3, 3, 2), (2, 2)], {"strides": (2, 2)}),
    ("conv3d", [(1, 2, 4, 4, 4), (3, 2, 2, 2, 2)], {}),
]


@pytest.mark.parametrize(("operator", "shapes", "attributes"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_products_lie_in_their_bound_and_wrong_ones_do_not(
    operator, shapes, attributes, dtype
) -> None:
    arrays = [floats(k, *shape).astype(dtype) for k, shape in enumerate(shapes)]
    graph, known = one_node(operator, arrays, **attributes)
    bounded = bound_of(graph, known)
    (meant,) = evaluate_node(graph.nodes[0], known)
    assert judge_bounded(meant, bounded).agrees
    # 44 roundings at most; the reference of f64 is computed in f64, too.
    unit = float(np.finfo(dtype).eps) / 2
    terms = bounded.condition * np.abs(bounded.value.astype(np.float64))
    least = 100 * float(np.finfo(dtype).smallest_subnormal)
    assert (bounded.error <= 3.2 * 44 * unit * terms + least).all()
    assert not judge_bounded(-meant, bounded).agrees


@pytest.mark.parametrize(("operator", "shapes", "attributes"), CASES)
def test_the_analysis_of_products_agrees_with_the_oracle(operator, shapes, attributes) -> None:
    """Both bound the same sums. The oracle also counts by ulps, and so is a bit tighter."""
    arrays = [floats(k, *shape) for k, shape in enumerate(shapes)]
    graph, known = one_node(operator, arrays, **attributes)
    ours = bound_of(graph, known)
    tensors = {value: value_to_placeholder(value, Symbols()) for value in known}
    made = node_to_te(graph.nodes[0], tensors)
    feeds = {tensors[value]: array for value, array in known.items()}
    (oracle,) = bound_errors([made[graph.outputs[0]]], feeds)
    assert (np.abs(ours.value - oracle.value) <= 1e-12 * ours.condition * np.abs(ours.value)).all()
    assert (ours.error >= oracle.error).all()
    assert (ours.error <= 12 * oracle.error).all()


@pytest.mark.llvm
def test_a_fused_kernel_is_bounded_as_a_whole() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", ("N", 20))
    w = builder.constant("w", floats(1, 20, 6))
    b = builder.constant("b", floats(2, 6))
    y = builder.node("sigmoid", [builder.node("add", [builder.node("matmul", [x, w]), b])])
    module = compile_graph(builder.finish([y]))
    (node,) = module.graph.nodes
    executor = DebugExecutor(module)
    (found,) = executor.run(x=floats(0, 7, 20))
    known = {
        v: floats(0, 7, 20) if v.name == "x" else module.graph.constants[v] for v in node.reads
    }
    (bounded,) = bound_values([node], known, node.outputs)
    assert judge_bounded(found.asnumpy(), bounded).agrees
    assert bounded.error.max() < 1e-5
    assert not judge_bounded(found.asnumpy() + np.float32(1e-4), bounded).agrees


def test_integers_are_exact() -> None:
    graph, known = one_node("matmul", [np.arange(12).reshape(3, 4), np.arange(8).reshape(4, 2)])
    bounded = bound_of(graph, known)
    (meant,) = evaluate_node(graph.nodes[0], known)
    assert judge_bounded(meant, bounded).verdict == "exact"
    assert not judge_bounded(meant + 1, bounded).agrees


def test_what_is_not_finite_is_legal_only_where_it_may_arise() -> None:
    a = np.ones((2, 3), np.float32)
    a[0, 0] = np.nan
    graph, known = one_node("matmul", [a, np.ones((3, 2), np.float32)])
    bounded = bound_of(graph, known)
    found = np.array([[np.nan, np.nan], [3, 3]], np.float32)
    assert judge_bounded(found, bounded).agrees
    assert not judge_bounded(np.full((2, 2), 3, np.float32), bounded).agrees
    assert not judge_bounded(np.full((2, 2), np.nan, np.float32), bounded).agrees


def test_a_sum_that_may_overflow_may_be_infinite() -> None:
    a = np.full((1, 2), 3e38, np.float32)
    b = np.array([[1], [-1]], np.float32)
    graph, known = one_node("matmul", [a, b])
    bounded = bound_of(graph, known)
    assert judge_bounded(np.array([[np.inf]], np.float32), bounded).verdict == "undecidable"
    assert judge_bounded(np.zeros((1, 1), np.float32), bounded).agrees


def test_symbols_that_no_array_determines_are_given() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", "float32", (4,))
    indices, count = builder.nodes("nonzero", [x])
    graph = builder.finish([builder.narrow(indices, count, axis=1)])
    node = graph.nodes[-1]
    known = {node.inputs[0]: np.array([[3, 1, 0, 0]]), node.inputs[1]: np.array([2])}
    (bounded,) = bound_values([node], known, node.outputs, {"kept": 2})
    assert bounded.value.tolist() == [[3, 1]]
