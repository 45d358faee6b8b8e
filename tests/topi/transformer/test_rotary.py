"""Rotary embedding: values by hand, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.transformer.rotary import rotary_embedding, rotary_embedding_numpy
from tests.strategies.operands import assert_same, run_te, tensors

DATA = np.array([1, 2, 3, 4], np.float32).reshape(1, 1, 1, 4)
# The first pair stays, the second one is turned by a right angle.
COS = np.array([[1, 0]], np.float32)
SIN = np.array([[0, 1]], np.float32)


@pytest.mark.parametrize(
    ("interleaved", "expected"),
    [(False, [1, -4, 3, 2]), (True, [1, 2, -4, 3])],
)
def test_pairs_are_turned(interleaved, expected):
    how = {"interleaved": interleaved}
    wanted = np.array(expected, np.float32).reshape(DATA.shape)
    operands = (DATA, COS[None], SIN[None])
    assert_same(run_te(rotary_embedding, *operands, is_symbolic=False, **how), wanted)
    assert_same(rotary_embedding_numpy(*operands, **how), wanted)


def test_other_channels_stay() -> None:
    operands = (DATA, COS[None, :, :1] * 0, SIN[None, :, :1] + 1)
    wanted = np.array([-2, 1, 3, 4], np.float32).reshape(DATA.shape)
    result = run_te(rotary_embedding, *operands, rotary_dim=2, is_symbolic=False)
    assert_same(result, wanted)


def test_positions_are_clamped_to_the_table() -> None:
    data = np.array([1, 0], np.float32).reshape(1, 1, 1, 2)
    cos = np.array([[5], [7]], np.float32)
    for position, expected in ((-3, 5), (0, 5), (1, 7), (9, 7)):
        operands = (data, cos, cos * 0, np.array([[position]], np.int64))
        for result in (
            run_te(rotary_embedding, *operands, is_symbolic=False),
            rotary_embedding_numpy(*operands),
        ):
            assert result.ravel().tolist() == [expected, 0]


def test_ill_formed_calls_are_refused() -> None:
    data, table = tensors((1, 1, 3, 4), (1, 3, 2))
    with pytest.raises(UserError, match="rotary_embedding cannot rotate 3 of 4 channels"):
        rotary_embedding(data, table, table, rotary_dim=3)
    with pytest.raises(UserError, match="rotary_embedding cannot rotate 6 of 4 channels"):
        rotary_embedding(data, table, table, rotary_dim=6)
    with pytest.raises(UserError, match="rotary_embedding: sin has 4 dimensions instead of 3"):
        rotary_embedding(data, table, data)
    with pytest.raises(UserError, match="rotary_embedding: cos is 2 instead of 1"):
        rotary_embedding(data, table, table, rotary_dim=2)
    floats, whole = tensors((1, 3))[0], tensors((1, 3), dtype="int64")[0]
    with pytest.raises(UserError, match="rotary_embedding takes positions as integers, not f32"):
        rotary_embedding(data, table, table, floats)
    with pytest.raises(UserError, match="rotary_embedding: cos has 3 dimensions instead of 2"):
        rotary_embedding(data, table, table, whole)
    (empty,) = tensors((0, 2))
    with pytest.raises(UserError, match="rotary_embedding cannot choose among 0 rows of cos"):
        rotary_embedding(data, empty, empty, whole)
