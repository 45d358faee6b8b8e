"""Rules of reductions: differences, PyTorch, ties, extents that are symbols."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.graph.gradients.rules.reductions import RULES
from tests.graph.gradients.family_checks import (
    check_differences,
    check_torch_cases,
    check_types,
    slopes_of,
)


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_agree_with_differences(name):
    check_differences(name)


@pytest.mark.parametrize("name", sorted(RULES))
def test_gradients_have_the_types_of_inputs(name):
    check_types(name)


def test_gradients_agree_with_torch() -> None:
    check_torch_cases(RULES, least=6)


@pytest.mark.parametrize("name", ["max", "min"])
def test_places_of_an_extremum_share_its_adjoint(name):
    x = np.array([[2, 2, 1], [2, 2, 3]], "float32")
    _, (slope,) = slopes_of(name, {"x": x}, {"axis": 1})
    expected = {"max": [[0.5, 0.5, 0], [0, 0, 1]], "min": [[0, 0, 1], [0.5, 0.5, 0]]}
    assert slope.tolist() == expected[name]


@pytest.mark.parametrize(("name", "is_rule"), [("sum", True), ("mean", False)])
def test_symbolic_extents_are_left_to_vjp_if_they_are_counted(name, is_rule):
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float32", ("N", 2))
    graph = builder.finish([builder.node(name, [x], name="y")])
    slopes = rc.graph.gradient(graph)
    assert ("vjp" not in str(slopes)) == is_rule
    _, slope = rc.graph.evaluate_graph(slopes, {"x": np.ones((4, 2), "float32")})
    assert slope.tolist() == np.full((4, 2), 1 if is_rule else 0.125).tolist()


def test_mean_of_no_elements_has_an_empty_gradient() -> None:
    _, (slope,) = slopes_of("mean", {"x": np.ones((0, 2), "float32")})
    assert slope.shape == (0, 2)
