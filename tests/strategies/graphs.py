"""Small graphs for tests of passes and of the executor.

Never made here: NaN among the constants, and symbolic extents other than the first.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from refcomp.frontend.onnx import from_onnx
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Graph, Value
from tests.strategies.operands import floats, integers

DIGITS = Path(__file__).resolve().parents[2] / "scripts" / "data" / "digits"


def digits_graph() -> Graph:
    """The trained digit network, as its file says."""
    return from_onnx(DIGITS / "digits.onnx")


def digits_images() -> tuple[np.ndarray, np.ndarray]:
    """The test split: images and labels."""
    with np.load(DIGITS / "digits_test.npz") as data:
        return data["image"], data["label"]


def make_graph(
    build: Callable[[GraphBuilder, Value], Value | Sequence[Value]],
    shape: Sequence[Any] = ("N", 3, 6, 6),
) -> Graph:
    """The graph whose input `x` has `shape` and whose outputs `build` makes of it."""
    builder = GraphBuilder("test")
    made = build(builder, builder.input("x", "f32", shape))
    return builder.finish([made] if isinstance(made, Value) else made)


def assert_equivalent(graph: Graph, changed: Graph, batch: int = 2, tolerance: float = 0.0) -> None:
    """Both graphs give the same for one random input, by their numpy meaning.

    `tolerance` is relative to the greatest element that should come out.
    """
    (value,) = graph.inputs
    shape = [batch if isinstance(dim, str) else dim for dim in value.shape]
    x = integers(3, *shape)
    expected, actual = (evaluate_graph(g, {value.name: x}) for g in (graph, changed))
    for one, other in zip(expected, actual, strict=True):
        assert one.dtype == other.dtype
        greatest = float(np.abs(one).max(initial=0))
        np.testing.assert_allclose(other, one, rtol=0, atol=tolerance * greatest)


def operators_of(graph: Graph) -> list[str]:
    """The operators of the graph's nodes, in order."""
    return [node.operator for node in graph.nodes]


@st.composite
def networks(draw: Any) -> Graph:
    """Chains of convolutions, poolings, normalizations, activations and residual additions."""
    builder = GraphBuilder("network")
    value = builder.input("x", "f32", ("N", draw(st.integers(1, 4)), 6, 6))
    steps = draw(st.lists(st.sampled_from(sorted(_STEPS)), min_size=1, max_size=6))
    for k, step in enumerate(steps):
        value = _STEPS[step](builder, value, draw, k)
    return builder.finish([value])


def _constant(builder: GraphBuilder, seed: int, *shape: Any) -> Value:
    return builder.constant(f"c{seed}", floats(seed, *shape))


def _conv(builder: GraphBuilder, value: Value, draw: Any, k: int) -> Value:
    out, kernel = draw(st.integers(1, 18)), draw(st.sampled_from([1, 3]))
    weight = _constant(builder, k, out, value.shape[1], kernel, kernel)
    bias = _constant(builder, k + 100, out) if draw(st.booleans()) else None
    padding = (kernel // 2,) * 4
    return builder.node("conv2d", [value, weight, bias], {"padding": padding})


def _norm(builder: GraphBuilder, value: Value, draw: Any, k: int) -> Value:
    channels = value.shape[1]
    statistics = [_constant(builder, k + 200 * j, channels) for j in (1, 2, 3)]
    variance = builder.constant(f"v{k}", np.abs(floats(k, channels)) + np.float32(0.5))
    return builder.node("batch_norm", [value, *statistics, variance])


def _pool(builder: GraphBuilder, value: Value, draw: Any, k: int) -> Value:
    operator = draw(st.sampled_from(["max_pool2d", "avg_pool2d"]))
    return builder.node(operator, [value], {"kernel": (3, 3), "padding": (1, 1, 1, 1)})


def _residual(builder: GraphBuilder, value: Value, draw: Any, k: int) -> Value:
    return builder.node("add", [builder.node("tanh", [value]), value])


def _unary(operator: str) -> Callable[..., Value]:
    return lambda builder, value, draw, k: builder.node(operator, [value])


_STEPS: dict[str, Callable[..., Value]] = {
    "conv": _conv,
    "norm": _norm,
    "pool": _pool,
    "residual": _residual,
    "relu": _unary("relu"),
    "identity": _unary("identity"),
}
