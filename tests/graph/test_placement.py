"""Places: what shares memory, what needs a kernel, and that results are the same."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from refcomp.graph.builder import GraphBuilder
from refcomp.graph.compile import compile_graph
from refcomp.graph.debug.memory import MemoryMap, map_memory
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.graph import Graph, Value
from refcomp.graph.kernels import schedule_graph
from tests.strategies.graphs import make_graph
from tests.strategies.operands import floats

Build = Callable[[GraphBuilder, Value], Value | Sequence[Value]]


def _softmax(builder: GraphBuilder, value: Value) -> Value:
    return builder.node("softmax", [value], {"axis": -1})


def _launches(build: Build, shape: Sequence[int], target: str = "interp", **symbols: int) -> int:
    """Run a graph twice on new inputs, compare with its meaning, and count launches of a run."""
    declared: Sequence[Any] = [*symbols, *shape]
    graph = make_graph(build, declared)
    # Without passes, no other node fuses with those that move elements.
    executor = GraphExecutor(compile_graph(graph, target, []))
    for seed in range(2):
        x = floats(seed, *symbols.values(), *shape)
        actual = executor.run(x=x)
        expected = evaluate_graph(graph, {"x": x})
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-5)
    return executor.launches // 2


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("identity", {}),
        ("reshape", {"shape": (-1,)}),
        ("flatten", {"axis": 1}),
        ("squeeze", {"axis": 1}),
        ("expand_dims", {"axis": 0}),
    ],
)
def test_another_shape_needs_no_kernel(operator: str, attributes: dict[str, Any]) -> None:
    def build(builder: GraphBuilder, x: Value) -> Value:
        return _softmax(builder, builder.node(operator, [_softmax(builder, x)], attributes))

    assert _launches(build, (4, 1, 6)) == 2
    assert _launches(lambda builder, x: builder.node(operator, [x], attributes), (4, 1, 6)) == 0


def test_a_fused_chain_of_shapes_needs_no_kernel() -> None:
    def build(builder: GraphBuilder, x: Value) -> Value:
        return builder.node("expand_dims", [builder.node("flatten", [x])], {"axis": 0})

    module = compile_graph(make_graph(build, (4, 2, 3)), "interp")
    executor = GraphExecutor(module)
    x = floats(1, 4, 2, 3)
    (y,) = executor.run(x=x)
    np.testing.assert_array_equal(y.asnumpy(), x.reshape(1, 4, 6))
    assert executor.launches == 0


def test_a_caller_does_not_see_its_own_array_or_the_next_run() -> None:
    """Results are copies, though they have the place of the input."""
    graph = make_graph(lambda builder, x: builder.node("flatten", [x]), (2, 3))
    executor = GraphExecutor(compile_graph(graph, "interp", []))
    x = floats(1, 2, 3)
    (first,) = executor.run(x=x)
    before = x.copy()
    first.numpy()[...] = 7
    (second,) = executor.run(x=x)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(second.asnumpy(), before)
    assert (first.asnumpy() == 7).all()


def _joined(builder: GraphBuilder, x: Value, axis: int) -> Value:
    parts = [_softmax(builder, x), builder.node("relu", [x]), x]
    return builder.node("concatenate", parts, {"axis": axis})


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_a_concatenation_along_the_outermost_axis_needs_no_kernel(axis: int) -> None:
    def build(builder: GraphBuilder, x: Value) -> Value:
        return _softmax(builder, _joined(builder, x, axis))

    shape = (2, 16) if axis == 0 else (1, 2, 16)
    assert _launches(build, shape) == 3


def test_the_sizes_of_a_run_decide() -> None:
    def build(builder: GraphBuilder, x: Value) -> Value:
        return _joined(builder, x, 1)

    assert _launches(build, (2, 16), N=1) == 2
    assert _launches(build, (2, 16), N=2) == 3


def test_concatenations_of_concatenations() -> None:
    """Each output holds the one before it, as in DenseNet."""

    def build(builder: GraphBuilder, x: Value) -> Value:
        for _ in range(3):
            made = builder.node("relu", [_softmax(builder, x)])
            made = builder.node("expand_dims", [made], {"axis": 0})
            made = builder.node("squeeze", [made], {"axis": 0})
            x = builder.node("concatenate", [x, made], {"axis": 0})
        return _softmax(builder, x)

    assert _launches(build, (1, 16)) == 3 * 2 + 1


def _twice(builder: GraphBuilder, x: Value) -> Value:
    return builder.node("concatenate", [x, x], {"axis": 0})


def _of_a_constant(builder: GraphBuilder, x: Value) -> Value:
    constant = builder.constant("c", floats(1, 1, 16))
    return builder.node("concatenate", [x, constant], {"axis": 0})


def _in_two(builder: GraphBuilder, x: Value) -> list[Value]:
    y = builder.node("relu", [x])
    one = builder.node("concatenate", [x, y], {"axis": 0})
    return [one, builder.node("concatenate", [y, x], {"axis": 0})]


def _inner_axis(builder: GraphBuilder, x: Value) -> Value:
    return builder.node("concatenate", [x, builder.node("relu", [x])], {"axis": 1})


@pytest.mark.parametrize(
    ("build", "launches"),
    [(_twice, 1), (_of_a_constant, 1), (_in_two, 2), (_inner_axis, 2)],
)
def test_a_value_has_one_place(build: Build, launches: int) -> None:
    assert _launches(build, (3, 16)) == launches


def test_parts_that_are_not_aligned_are_copied() -> None:
    def build(builder: GraphBuilder, x: Value) -> Value:
        parts = [builder.node("tanh", [x]), builder.node("relu", [x]), x]
        return builder.node("concatenate", parts, {"axis": 0})

    assert _launches(build, (1, 15)) == 3
    assert _launches(build, (16, 1)) == 2


def test_empty_values_have_places_of_their_own() -> None:
    assert _launches(lambda builder, x: builder.node("flatten", [x]), (0, 4)) == 1


def _memory(graph: Graph) -> MemoryMap:
    _, kernels = schedule_graph(graph, "interp")
    return map_memory(graph, kernels, {})


def test_a_concatenation_that_would_raise_the_peak_is_copied() -> None:
    """Its first part is small and made early; the other part needs two large values."""

    def build(builder: GraphBuilder, x: Value) -> Value:
        small = _softmax(builder, x)
        large = builder.node("broadcast_to", [small], {"shape": (1, 256, 64)})
        for _ in range(4):
            large = _softmax(builder, large)
        return builder.node("concatenate", [small, large], {"axis": 1})

    size = 256 * 64 * 4
    assert _memory(make_graph(build, (1, 1, 64))).peak < 2.1 * size
    assert _launches(build, (1, 1, 64)) == 7


def test_sharing_lowers_the_peak() -> None:
    def build(builder: GraphBuilder, x: Value) -> Value:
        for _ in range(3):
            x = builder.node("concatenate", [x, _softmax(builder, x)], {"axis": 0})
        return builder.node("flatten", [x])

    found = _memory(make_graph(build, (1, 16)))
    # Alone, the last concatenation would need its inputs and its output.
    assert found.peak < 2 * 8 * 16 * 4


@pytest.mark.llvm
def test_machine_code_writes_into_parts() -> None:
    def build(builder: GraphBuilder, x: Value) -> Value:
        return _softmax(builder, _joined(builder, x, 1))

    assert _launches(build, (1, 5, 16), "llvm") == 3
