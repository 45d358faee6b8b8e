"""Single cells: what is refused."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.draws import Draws
from refcomp.topi.recurrent.activations import read_activations
from refcomp.topi.recurrent.cells import make_cell, sample_cell
from tests.strategies.operands import tensors

SHAPES = {"data": (2, 3), "weight": (8, 3), "recurrence": (8, 4), "bias": (16,), "h": (2, 4)}


def make(**changed):
    shapes = {**SHAPES, **changed}
    data, weight, recurrence, bias, h = (tensors(shape)[0] for shape in shapes.values())
    (activations,) = read_activations("cell", "tanh", 1)
    states = {"hidden": h}
    return make_cell(
        "cell", 2, data, weight, recurrence, bias, states=states, activations=activations
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": (2, 3, 1)}, "cell: the data has 3 dimensions instead of 2"),
        ({"weight": (8, 2)}, "cell: extent 1 of weight is 2 instead of 3"),
        ({"weight": (4, 3)}, "cell: extent 0 of weight is 4 instead of 8"),
        ({"recurrence": (4, 4)}, "cell: extent 0 of recurrence is 4 instead of 8"),
        ({"recurrence": (8,)}, "cell: recurrence has 1 dimensions instead of 2"),
        ({"bias": (8,)}, "cell: extent 0 of bias is 8 instead of 16"),
        ({"h": (3, 4)}, "cell: extent 0 of hidden is 3 instead of 2"),
    ],
)
def test_operands_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(UserError, match=message):
        make(**changed)


def test_symbolic_hidden_units_are_refused() -> None:
    with pytest.raises(UserError, match="the number of hidden units must be a constant"):
        make(recurrence=(8, var("h")))


def test_step_has_the_extents_of_the_operands() -> None:
    step = make()
    assert (step.batch, step.hidden) == (2, 4)
    assert step.is_active is None


def test_samples_have_operands_for_all_gates() -> None:
    operands, hidden, dtype = sample_cell(Draws(3), 4, 2)
    assert operands[3].shape[0] == 4 * hidden
    assert operands[4].dtype == dtype
