"""Layers: directions, layouts and lengths of sequences, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.draws import Draws
from refcomp.topi.recurrent.rnn import rnn, rnn_numpy
from refcomp.topi.recurrent.sequences import sample_layer
from tests.strategies.operands import assert_same, run_te, tensors


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float32).reshape(-1, 1, 1)


def run(data: np.ndarray, lengths=None, initial=None, **how):
    """The outputs and last states of a cell that adds its input to its state."""
    count = 2 if how.get("direction") == "bidirectional" else 1
    one = np.ones((count, 1, 1), np.float32)
    given = (data, one, one, None, lengths, initial)
    results = run_te(rnn, *given, activation="relu", is_symbolic=False, **how)
    meanings = rnn_numpy(*given, activation="relu", **how)
    for result, meaning in zip(results, meanings, strict=True):
        assert_same(result, meaning)
    return [result.ravel().tolist() for result in results]


@pytest.mark.parametrize(
    ("direction", "outputs", "last"),
    [
        ("forward", [1, 3, 7], [7]),
        ("reverse", [7, 6, 4], [7]),
        ("bidirectional", [1, 7, 3, 6, 7, 4], [7, 7]),
    ],
)
def test_directions(direction, outputs, last):
    assert run(column(1, 2, 4), direction=direction) == [outputs, last]


def test_layouts_differ_in_their_axes() -> None:
    data = np.array([[[1], [2], [4]], [[8], [8], [8]]], np.float32)
    assert run(data, layout=1) == [[1, 3, 7, 8, 16, 24], [7, 24]]
    assert run(data, layout=0) == [[1, 2, 4, 9, 10, 12], [9, 10, 12]]


@pytest.mark.parametrize(
    ("length", "direction", "outputs", "last"),
    [
        (2, "forward", [11, 13, 0], [13]),
        (2, "reverse", [13, 12, 0], [13]),
        (0, "forward", [0, 0, 0], [10]),
        (-1, "reverse", [0, 0, 0], [10]),
        (9, "forward", [11, 13, 17], [17]),
    ],
)
def test_sequences_may_end_earlier(length, direction, outputs, last):
    lengths = np.array([length], np.int32)
    assert run(column(1, 2, 4), lengths, column(10), direction=direction) == [outputs, last]


def test_no_steps_keep_the_state() -> None:
    assert run(column(), None, column(5)) == [[], [5]]


SHAPES = {
    "data": (3, 2, 1),
    "weight": (1, 4, 1),
    "recurrence": (1, 4, 4),
    "bias": (1, 8),
    "lengths": (2,),
    "initial": (1, 2, 4),
}


@pytest.mark.parametrize(
    ("changed", "how", "message"),
    [
        ({}, {"direction": "up"}, "rnn does not know the direction 'up'"),
        ({}, {"layout": 2}, "rnn does not know the layout 2"),
        ({}, {"direction": "bidirectional"}, "rnn: extent 0 of weight is 1 instead of 2"),
        ({}, {"layout": 1}, "rnn: extent 0 of initial_h is 1 instead of 3"),
        ({"data": (3, 2)}, {}, "rnn: the data has 2 dimensions instead of 3"),
        ({"weight": (1, 4, 2)}, {}, "rnn: extent 2 of weight is 2 instead of 1"),
        ({"recurrence": (1, 3, 4)}, {}, "rnn: extent 1 of recurrence is 3 instead of 4"),
        ({"bias": (1, 4)}, {}, "rnn: extent 1 of bias is 4 instead of 8"),
        ({"data": (var("t"), 2, 1)}, {}, "rnn: the number of steps must be a constant"),
        ({}, {"activation": "selu"}, "rnn does not know the activation 'selu'"),
    ],
)
def test_ill_formed_layers_are_refused(changed, how, message):
    shapes = {**SHAPES, **changed}
    given = {name: tensors(shape)[0] for name, shape in shapes.items()}
    given["lengths"] = tensors(shapes["lengths"], dtype="int32")[0]
    with pytest.raises(UserError, match=message):
        rnn(*given.values(), **how)


def test_lengths_are_integers_of_the_batch() -> None:
    data, weight = tensors((3, 2, 1), (1, 1, 1))
    (lengths,) = tensors((2,))
    with pytest.raises(UserError, match="rnn takes lengths of sequences as integers, not f32"):
        rnn(data, weight, weight, None, lengths)
    (short,) = tensors((1,), dtype="int32")
    with pytest.raises(UserError, match="rnn: extent 0 of sequence_lens is 1 instead of 2"):
        rnn(data, weight, weight, None, short)


def test_samples_have_weights_for_each_direction() -> None:
    drawn = sample_layer(Draws(1), 3)
    assert drawn.operands[1].shape[:2] == (drawn.directions, 3 * drawn.hidden)
