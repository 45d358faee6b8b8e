"""Gated recurrent units: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.recurrent.gru import gru, gru_cell, gru_cell_numpy
from tests.strategies.operands import assert_same, run_te, tensors

ONE = np.ones((1, 1), np.float32)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("update", "expected"),
    [(1e4, 1), (-1e4, np.tanh(2))],
)
def test_update_gate_chooses_the_old_state_or_the_candidate(update, expected, after):
    weight = np.array([[0], [0], [2]], np.float32)
    recurrence = np.zeros((3, 1), np.float32)
    bias = np.array([update, 0, 0, 0, 0, 0], np.float32)
    operands = (ONE, ONE, weight, recurrence, bias)
    wanted = np.full((1, 1), expected, np.float32)
    how = {"linear_before_reset": after}
    assert_same(run_te(gru_cell, *operands, is_symbolic=False, **how), wanted, 1e-6)
    assert_same(gru_cell_numpy(*operands, **how), wanted, 1e-6)


def test_ill_formed_calls_are_refused() -> None:
    data, hidden, weight = tensors((2, 1), (2, 1), (3, 1))
    with pytest.raises(UserError, match="gru_cell: extent 1 of hidden is 1 instead of 2"):
        gru_cell(data, hidden, tensors((6, 1))[0], tensors((6, 2))[0])
    with pytest.raises(UserError, match="gru_cell cannot combine f32 with f64"):
        gru_cell(data, hidden, weight, tensors((3, 1), dtype="float64")[0])
    with pytest.raises(UserError, match="gru does not know the direction 'both'"):
        gru(data, weight, weight, direction="both")
