"""Rules of operators of several tensors: differences, PyTorch, broadcasting, ties."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.graph.gradients.rules.broadcast import RULES
from tests.graph.gradients.family_checks import (
    check_differences,
    check_torch_cases,
    check_types,
    operators_behind,
    slopes_of,
)


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_agree_with_differences(name):
    check_differences(name)


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_have_the_types_of_inputs(name):
    check_types(name)


def test_gradients_agree_with_torch() -> None:
    check_torch_cases(RULES, least=7)


def test_a_repeated_operand_receives_the_sum() -> None:
    feeds = {"a": np.ones((2, 3), "float32"), "b": np.ones((3,), "float32")}
    slopes, (a, b) = slopes_of("add", feeds)
    assert a.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert b.tolist() == [2, 2, 2]
    assert operators_behind(slopes) == ["add", "sum", "identity"]


def test_an_axis_of_extent_one_keeps_its_place() -> None:
    feeds = {"a": np.ones((2, 1), "float32"), "b": np.ones((1, 3), "float32")}
    _, (a, b) = slopes_of("multiply", feeds)
    assert a.tolist() == [[3], [3]]
    assert b.tolist() == [[2, 2, 2]]


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_of_equal_elements_the_first_one_counts(name):
    feeds = {"a": np.ones(1, "float32"), "b": np.ones(1, "float32")}
    _, (a, b) = slopes_of(name, feeds)
    assert (a.tolist(), b.tolist()) == ([1.0], [0.0])


def test_symbolic_extents_need_no_vjp() -> None:
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float32", ("N", 3))
    w = builder.input("w", "float32", (3,))
    graph = builder.finish([builder.node("multiply", [x, w], name="y")])
    slopes = rc.graph.gradient(graph, head="y")
    assert "vjp" not in str(slopes)
    feeds = {"x": np.full((2, 3), 5, "float32"), "w": np.ones(3, "float32")}
    results = rc.graph.evaluate_graph(slopes, {**feeds, "y_head": np.ones((2, 3), "float32")})
    assert results[2].tolist() == [10, 10, 10]
