"""Plain recurrent cells: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.recurrent.rnn import rnn_cell, rnn_cell_numpy
from tests.strategies.operands import assert_same, run_te, tensors


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("relu", [[0, 2]]), ("tanh", np.tanh([[-3, 2]])), ("sigmoid", 1 / (1 + np.exp([[3, -2]])))],
)
def test_values_by_hand(activation, expected):
    data = np.array([[1]], np.float32)
    hidden = np.array([[2, 3]], np.float32)
    weight = np.array([[1], [-1]], np.float32)
    recurrence = np.array([[-2, 0], [0, 1]], np.float32)
    wanted = np.asarray(expected, np.float32)
    operands = (data, hidden, weight, recurrence)
    assert_same(run_te(rnn_cell, *operands, is_symbolic=False, activation=activation), wanted, 1e-6)
    assert_same(rnn_cell_numpy(*operands, activation=activation), wanted, 1e-6)


def test_both_biases_are_added() -> None:
    zero = np.zeros((1, 1), np.float32)
    bias = np.array([1, 2], np.float32)
    how = {"activation": "relu", "is_symbolic": False}
    result = run_te(rnn_cell, zero, zero, zero, zero, bias, **how)
    assert_same(result, zero + np.float32(3))


def test_ill_formed_cells_are_refused() -> None:
    data, hidden = tensors((2, 1), (2, 1))
    (square,) = tensors((1, 1))
    with pytest.raises(UserError, match="rnn_cell does not know the activation 'selu'"):
        rnn_cell(data, hidden, square, square, activation="selu")
    with pytest.raises(UserError, match="rnn_cell: extent 0 of weight is 2 instead of 1"):
        rnn_cell(data, hidden, data, square)
    (whole,) = tensors((2, 1), dtype="int32")
    with pytest.raises(UserError, match="rnn_cell takes float tensors"):
        rnn_cell(whole, hidden, square, square)
