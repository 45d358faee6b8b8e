"""Rules of losses: differences, PyTorch, targets that do not count."""

import numpy as np
import pytest

from refcomp.graph.gradients.rules.losses import RULES
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


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int8"])
def test_targets_that_do_not_count_have_no_gradient(name, dtype):
    ignored = 2
    feeds = {
        "data": np.zeros((3, 4), "float64"),
        "target": np.array([1, ignored, 100], dtype),  # class 100 does not exist
    }
    slopes, (slope,) = slopes_of(name, feeds, {"ignore_index": ignored})
    assert "vjp" not in operators_behind(slopes)
    assert slope[1:].tolist() == [[0] * 4, [0] * 4]
    expected = [0.25, -0.75, 0.25, 0.25] if name == "cross_entropy" else [0, -1, 0, 0]
    np.testing.assert_allclose(slope[0], expected, rtol=1e-15)


def test_weights_and_smoothing_are_left_to_vjp() -> None:
    feeds = {"data": np.zeros((2, 3), "float64"), "target": np.array([0, 1])}
    slopes, _ = slopes_of("cross_entropy", feeds, {"label_smoothing": 0.5})
    assert "vjp" in operators_behind(slopes)


def test_more_classes_than_a_target_can_name() -> None:
    feeds = {"data": np.zeros((1, 300), "float32"), "target": np.array([5], "int8")}
    _, (slope,) = slopes_of("nll_loss", feeds)
    assert slope[0, 5] == -1
    assert np.abs(slope).sum() == 1


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_mean_divides_by_the_number_of_elements(reduction):
    feeds = {"data": np.array([3.0, 1.0]), "target": np.array([1.0, 1.0])}
    _, (data, target) = slopes_of("mse_loss", feeds, {"reduction": reduction})
    expected = [2.0, 0.0] if reduction == "mean" else [4.0, 0.0]
    assert data.tolist() == expected
    assert target.tolist() == [-one for one in expected]
