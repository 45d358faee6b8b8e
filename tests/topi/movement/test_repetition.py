"""tile, repeat, roll: known answers, symbolic extents, refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents
from refcomp.te.tensor import var
from refcomp.topi.movement.repetition import repeat, roll, tile
from tests.strategies.operands import run_te, tensors

MATRIX = np.arange(6, dtype=np.int32).reshape(2, 3)


def test_shapes_and_copies_are_extended_at_the_front():
    assert run_te(tile, MATRIX, reps=[2]).tolist() == np.tile(MATRIX, 2).tolist()
    assert run_te(tile, MATRIX[0], reps=[2, 2]).shape == (2, 6)
    assert run_te(tile, np.array(3.0), reps=[]).tolist() == 3.0
    assert run_te(tile, MATRIX, reps=[0, 1]).shape == (0, 3)
    (symbolic,) = tensors((var("n"), 3))
    assert extents(tile(symbolic, reps=[1, 2])) == (symbolic.shape[0], 6)


def test_each_element_is_repeated():
    found = run_te(repeat, MATRIX, is_symbolic=False, repeats=2, axis=-1)
    assert found.tolist() == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]
    assert run_te(repeat, MATRIX, repeats=2).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert run_te(repeat, MATRIX, repeats=0, axis=0).shape == (0, 3)


@pytest.mark.parametrize("is_symbolic", [True, False])
@pytest.mark.parametrize(
    ("shift", "axis"),
    [(1, None), (-1, 0), (5, 1), ((1, 1), (1, 1)), (1, (0, 1)), ((1, -2), -1), (7, None)],
)
def test_elements_move_around_their_axes(is_symbolic, shift, axis):
    found = run_te(roll, MATRIX, is_symbolic=is_symbolic, shift=shift, axis=axis)
    assert found.tolist() == np.roll(MATRIX, shift, axis).tolist()


def test_ill_formed_calls_are_refused():
    (data,) = tensors((2, 3))
    with pytest.raises(UserError, match=r"tile cannot make \(2, -1\) copies"):
        tile(data, reps=(2, -1))
    with pytest.raises(UserError, match="repeat cannot make -1 copies"):
        repeat(data, repeats=-1)
    with pytest.raises(UserError, match="repeat: axis 2 is out of range"):
        repeat(data, repeats=1, axis=2)
    with pytest.raises(UserError, match="roll has 3 shifts for 2 axes"):
        roll(data, shift=(1, 2, 3), axis=(0, 1))
    with pytest.raises(UserError, match="roll: axis 2 is out of range"):
        roll(data, shift=1, axis=2)
    calls = ((tile, {"reps": (1,)}), (repeat, {"repeats": 1}), (roll, {"shift": 1}))
    for operator, attributes in calls:
        with pytest.raises(UserError, match=f"{operator.__name__} is applied to a list"):
            operator([1], **attributes)
