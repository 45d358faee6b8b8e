"""Long short-term memories: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.recurrent.lstm import lstm, lstm_cell, lstm_cell_numpy, lstm_numpy
from tests.strategies.operands import assert_same, run_te, tensors

ONE = np.ones((1, 1), np.float32)
ZERO = np.zeros((4, 1), np.float32)
HALF = 0.5


def test_gates_are_half_open_without_weights() -> None:
    operands = (ONE, ONE, 8 * ONE, ZERO, ZERO)
    wanted = (np.float32(HALF * np.tanh(4)) * ONE, 4 * ONE)
    results = run_te(lstm_cell, *operands, is_symbolic=False)
    meanings = lstm_cell_numpy(*operands)
    for result, meaning, expected in zip(results, meanings, wanted, strict=True):
        assert_same(result, expected, 1e-6)
        assert_same(meaning, expected, 1e-6)


def test_peepholes_see_the_cell() -> None:
    # The forget gate is opened by the old cell, the output gate by the new one.
    peephole = np.array([0, 1e4, 1e4], np.float32)
    operands = (ONE, ONE, 2 * ONE, ZERO, ZERO, None, peephole)
    hidden, cell = run_te(lstm_cell, *operands, is_symbolic=False)
    assert_same(cell, 2 * ONE, 1e-6)
    assert_same(hidden, np.tanh(2 * ONE), 1e-6)


def test_missing_peepholes_are_not_products_with_0() -> None:
    operands = (ONE, ONE, np.inf * ONE, ZERO, ZERO)
    for hidden, cell in (
        run_te(lstm_cell, *operands, is_symbolic=False),
        lstm_cell_numpy(*operands),
    ):
        assert hidden.tolist() == [[0.5]]
        assert cell.tolist() == [[np.inf]]


def test_layer_halves_its_cell_in_each_step() -> None:
    data = np.ones((2, 1, 1), np.float32)
    operands = (data, ZERO[None], ZERO[None], None, None, None, 8 * ONE[None])
    wanted = [
        np.float32(np.tanh([[[[4]]], [[[2]]]]) / 2),
        np.tanh(2 * ONE[None]) / 2,
        2 * ONE[None],
    ]
    results = run_te(lstm, *operands, is_symbolic=False)
    meanings = lstm_numpy(*operands)
    for result, meaning, expected in zip(results, meanings, wanted, strict=True):
        assert_same(result, expected.astype(np.float32), 1e-6)
        assert_same(meaning, expected.astype(np.float32), 1e-6)


def test_ill_formed_calls_are_refused() -> None:
    data, weight, state = tensors((2, 1, 1), (1, 4, 1), (1, 1, 1))
    (short,) = tensors((1, 2))
    with pytest.raises(UserError, match="lstm: extent 1 of peephole is 2 instead of 3"):
        lstm(data, weight, weight, peephole=short)
    with pytest.raises(UserError, match="lstm: initial_c has 2 dimensions instead of 3"):
        lstm(data, weight, weight, initial_h=state, initial_c=short)
    flat, gates = tensors((1, 1), (4, 1))
    with pytest.raises(UserError, match="lstm_cell: extent 1 of cell is 2 instead of 1"):
        lstm_cell(flat, flat, short, gates, gates)
