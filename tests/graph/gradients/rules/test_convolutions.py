"""Rules of convolutions: differences, PyTorch, and the operators that they use."""

import numpy as np
import pytest

from refcomp.graph.gradients.rules.convolutions import RULES
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
    check_torch_cases(RULES, least=4)


def test_conv2d_uses_the_backward_operators() -> None:
    feeds = {
        "data": np.ones((1, 1, 3, 3), "float32"),
        "weight": np.ones((1, 1, 2, 2), "float32"),
        "bias": np.ones(1, "float32"),
    }
    slopes, (data, weight, bias) = slopes_of("conv2d", feeds)
    expected = ["conv2d", "conv2d_backward_data", "conv2d_backward_weight", "sum"]
    assert operators_behind(slopes) == expected
    assert data[0, 0].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    assert weight[0, 0].tolist() == [[4, 4], [4, 4]]
    assert bias.tolist() == [4]


def test_other_layouts_are_left_to_vjp() -> None:
    feeds = {
        "data": np.ones((1, 2, 2, 1), "float32"),
        "weight": np.ones((2, 2, 1, 1), "float32"),
    }
    slopes, (data, _) = slopes_of("conv2d_transpose", feeds, {"layout": "NHWC"})
    assert "vjp" in operators_behind(slopes)
    assert data.ravel().tolist() == [4, 4, 4, 4]
