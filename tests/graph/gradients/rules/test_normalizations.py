"""Rules of normalizations: differences, PyTorch, and statistics that have adjoints."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.graph.gradients.rules.normalizations import RULES
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
    check_torch_cases(RULES, least=5)


def _batch() -> tuple[rc.graph.GraphBuilder, list[rc.graph.Value]]:
    builder = rc.graph.GraphBuilder("net")
    data = builder.input("x", "float64", (4, 2))
    names = ("gamma", "beta", "mean", "variance")
    return builder, [data, *(builder.input(name, "float64", (2,)) for name in names)]


def test_batch_norm_train_has_a_rule_for_its_result_only() -> None:
    builder, inputs = _batch()
    outputs = builder.nodes("batch_norm_train", inputs, {}, ["y", "running", "spread"])
    graph = builder.finish(outputs)
    assert "vjp" not in str(rc.graph.gradient(graph, head="y"))
    # The running mean moves with the data: no rule, but a gradient.
    slopes = rc.graph.gradient(graph, wrt=["x", "mean"], head="running")
    assert "vjp" in str(slopes)
    feeds = {value.name: np.ones(value.shape) for value in inputs}
    results = rc.graph.evaluate_graph(slopes, {**feeds, "running_head": np.ones(2)})
    np.testing.assert_allclose(results[-2], 0.1 / 4, rtol=1e-14)
    np.testing.assert_allclose(results[-1], 0.9, rtol=1e-14)


def test_softmax_gradient_of_equal_weights_is_zero() -> None:
    x = np.array([[1, 2, 3]], "float64")
    slopes, (slope,) = slopes_of("softmax", {"x": x})
    assert "vjp" not in operators_behind(slopes)
    assert np.abs(slope).max() < 1e-16


def test_layer_norm_without_beta_has_two_gradients() -> None:
    feeds = {"x": np.array([[1.0, 3.0]]), "gamma": np.ones(2)}
    slopes, found = slopes_of("layer_norm", feeds, head=np.array([[1.0, 0.0]]))
    assert "vjp" not in operators_behind(slopes)
    assert len(found) == 2
    np.testing.assert_allclose(found[1], [-1.0, 0.0], atol=1e-5)
