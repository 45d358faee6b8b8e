"""Rules of operators of one tensor: differences, PyTorch, and the slopes at kinks."""

import numpy as np
import pytest

from refcomp.graph.gradients.rules.elementwise import RULES
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
    check_torch_cases(RULES, least=20)


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_are_written_in_other_operators(name):
    attributes = {"scale": {"factor": 3.0}}.get(name, {})
    slopes, _ = slopes_of(name, {"x": np.ones(3, "float32")}, attributes)
    assert "vjp" not in operators_behind(slopes)


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("relu", {}, 0.0),
        ("relu6", {}, 0.0),
        ("abs", {}, 0.0),
        ("leaky_relu", {"alpha": 0.5}, 1.0),
        ("clip", {"minimum": 0.0, "maximum": 1.0}, 1.0),
        ("elu", {"alpha": 2.0}, 2.0),
    ],
)
def test_slope_at_a_kink_is_one_of_both(name, attributes, expected):
    _, (slope,) = slopes_of(name, {"x": np.zeros(1, "float32")}, attributes)
    assert slope.tolist() == [expected]


def test_scale_by_one_adds_no_product() -> None:
    slopes, _ = slopes_of("scale", {"x": np.ones(3, "float32")}, {"factor": 1.0})
    assert operators_behind(slopes) == ["scale", "identity"]


def test_infinite_head_stays_where_the_slope_is_not_zero() -> None:
    x = np.array([1.0, -1.0], "float32")
    _, (slope,) = slopes_of("relu", {"x": x}, head=np.array([np.inf, np.inf], "float32"))
    assert slope.tolist() == [np.inf, 0.0]
