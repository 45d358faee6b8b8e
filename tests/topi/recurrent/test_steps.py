"""One step of a cell: activations, and gates by hand."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.recurrent.steps import (
    ACTIVATIONS,
    ACTIVATIONS_NUMPY,
    find_activation,
    gru_step_numpy,
    lstm_step_numpy,
)

ONE = np.ones((1, 1))


def test_each_activation_has_a_meaning() -> None:
    assert set(ACTIVATIONS) == set(ACTIVATIONS_NUMPY)
    assert find_activation("tanh", "rnn") is ACTIVATIONS["tanh"]


def test_unknown_activations_are_refused() -> None:
    with pytest.raises(UserError, match="rnn does not know the activation 'elu'"):
        find_activation("elu", "rnn")


def test_reset_before_and_after_the_product() -> None:
    weights = np.zeros((3, 1)), np.ones((3, 1))
    bias = np.array([-1e3, 0, 0, 0, 0, 1.0])  # no update; a bias of the candidate's state
    reset = 1 / (1 + np.exp(-1))
    after = gru_step_numpy(True, ONE, ONE, *weights, bias)
    before = gru_step_numpy(False, ONE, ONE, *weights, bias)
    np.testing.assert_allclose(after, np.tanh(reset * 2))
    np.testing.assert_allclose(before, np.tanh(reset + 1))


def test_open_and_closed_gates() -> None:
    weights = np.zeros((4, 1)), np.zeros((4, 1))
    # Input and output are open, forget is closed.
    bias = np.array([1e3, 1e3, -1e3, 2, 0, 0, 0, 0])
    hidden, cell = lstm_step_numpy(ONE, ONE, ONE, *weights, bias)
    np.testing.assert_allclose(cell, np.tanh(2))
    np.testing.assert_allclose(hidden, np.tanh(np.tanh(2)))
