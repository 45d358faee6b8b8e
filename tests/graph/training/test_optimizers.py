"""Optimizers: steps of PyTorch, first values of states, and numbers that are refused."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.training.optimizers import Adam, Sgd
from tests.graph.gradients.torch_cases import PATH
from tests.graph.training.models import weighted_sum

_OPTIMIZERS = {
    "sgd": Sgd(momentum=0.9, weight_decay=0.01),
    "adam": Adam(beta1=0.8, beta2=0.95, weight_decay=0.01),
}


@pytest.mark.parametrize("name", sorted(_OPTIMIZERS))
def test_steps_are_those_of_torch(name):
    with np.load(PATH, allow_pickle=False) as file:
        slopes, expected = file[f"{name}/slopes"], file[f"{name}/parameters"]
    step = rc.graph.training_step(weighted_sum(), _OPTIMIZERS[name], ["w"])
    values = {"w": expected[0]}
    values |= {slot: np.zeros(3) for slot in step.slots}
    values |= {counter: np.float64(first) for counter, first in step.counters.items()}
    for slope, wanted in zip(slopes, expected[1:], strict=True):
        feeds = {**values, "slope": slope, "rate": np.float64(0.1)}
        results = rc.graph.evaluate_graph(step.graph, feeds)
        values = {key: results[number] for key, number in step.next_outputs.items()}
        # Both add and multiply about ten numbers near 1 in another order.
        np.testing.assert_allclose(values["w"], wanted, rtol=0, atol=64 * np.finfo(float).eps)


def test_plain_descent_has_no_state() -> None:
    step = rc.graph.training_step(weighted_sum(), Sgd(), ["w"])
    assert (step.slots, step.counters) == ({}, {})
    assert list(step.next_outputs) == ["w"]


def test_states_of_adam_have_names_and_first_values() -> None:
    step = rc.graph.training_step(weighted_sum(), Adam(), ["w"])
    assert step.slots == {"w_mean": "w", "w_square": "w"}
    assert step.counters == {"beta1_power": 1.0, "beta2_power": 1.0}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sgd(momentum=1.0), "Sgd cannot have the momentum 1.0"),
        (lambda: Sgd(weight_decay=-0.1), "Sgd cannot have the weight_decay -0.1"),
        (lambda: Adam(beta1=-1.0), "Adam cannot have the beta1 -1.0"),
        (lambda: Adam(beta2=1), "Adam cannot have the beta2 1"),
        (lambda: Adam(epsilon=float("nan")), "Adam cannot have the epsilon nan"),
        (lambda: Adam(weight_decay=float("inf")), "Adam cannot have the weight_decay inf"),
        (lambda: Sgd(momentum="0.9"), "Sgd cannot have the momentum '0.9'"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with pytest.raises(UserError, match=message) as info:
        make()
    assert "at least 0" in info.value.remedy
