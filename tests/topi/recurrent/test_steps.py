"""One step of a cell: gates by hand."""

import numpy as np

from refcomp.topi.recurrent.activations import read_activations
from refcomp.topi.recurrent.steps import gru_step_numpy, lstm_step_numpy

ONE = np.ones((1, 1))
(GRU,) = read_activations("gru", "sigmoid,tanh", 2)
(LSTM,) = read_activations("lstm", "sigmoid,tanh,tanh", 3)


def test_reset_before_and_after_the_product() -> None:
    weights = np.zeros((3, 1)), np.ones((3, 1))
    bias = np.array([-1e3, 0, 0, 0, 0, 1.0])  # no update; a bias of the candidate's state
    reset = 1 / (1 + np.exp(-1))
    after = gru_step_numpy(GRU, True, ONE, ONE, *weights, bias)
    before = gru_step_numpy(GRU, False, ONE, ONE, *weights, bias)
    np.testing.assert_allclose(after, np.tanh(reset * 2))
    np.testing.assert_allclose(before, np.tanh(reset + 1))


def test_open_and_closed_gates() -> None:
    weights = np.zeros((4, 1)), np.zeros((4, 1))
    # Input and output are open, forget is closed.
    bias = np.array([1e3, 1e3, -1e3, 2, 0, 0, 0, 0])
    hidden, cell = lstm_step_numpy(LSTM, False, ONE, ONE, ONE, *weights, bias)
    np.testing.assert_allclose(cell, np.tanh(2))
    np.testing.assert_allclose(hidden, np.tanh(np.tanh(2)))


def test_what_is_not_admitted_is_kept() -> None:
    weights = np.zeros((4, 1)), np.zeros((4, 1))
    # The input gate is closed. The forget gate is closed, too, but does not count.
    bias = np.array([-1e3, 1e3, -1e3, 2, 0, 0, 0, 0])
    _, cell = lstm_step_numpy(LSTM, True, ONE, ONE, 5 * ONE, *weights, bias)
    np.testing.assert_allclose(cell, [[5]])
