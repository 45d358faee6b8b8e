"""Rules of poolings: differences, PyTorch, ties, and what is left to vjp."""

import numpy as np
import pytest

from refcomp.graph.gradients.rules.pools import RULES
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
    check_torch_cases(RULES, least=3)


def test_first_greatest_element_of_a_window_has_its_adjoint() -> None:
    x = np.ones((1, 1, 2, 2), "float32")
    attributes = {"kernel": (2, 2), "strides": (2, 2)}
    slopes, (slope,) = slopes_of("max_pool2d", {"x": x}, attributes)
    assert operators_behind(slopes) == ["max_pool2d", "max_pool2d_grad"]
    assert slope[0, 0].tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("attributes", [{"dilation": (2, 2)}, {"layout": "NHWC"}])
def test_dilated_windows_and_other_layouts_are_left_to_vjp(attributes):
    x = np.arange(9, dtype="float32").reshape(1, 3, 3, 1)
    if "dilation" in attributes:
        x = x.reshape(1, 1, 3, 3)
    slopes, (slope,) = slopes_of("max_pool2d", {"x": x}, {"kernel": (2, 2), **attributes})
    assert "vjp" in operators_behind(slopes)
    greatest = (
        [0, 0, 0, 0, 0, 0, 0, 0, 1] if "dilation" in attributes else [0] * 4 + [1, 1, 0, 1, 1]
    )
    assert slope.ravel().tolist() == greatest


def test_global_mean_shares_the_adjoint() -> None:
    slopes, (slope,) = slopes_of("global_avg_pool2d", {"x": np.ones((1, 1, 2, 2), "float32")})
    assert "vjp" not in operators_behind(slopes)
    assert slope[0, 0].tolist() == [[0.25, 0.25], [0.25, 0.25]]
