"""Axes are named by the parameters of a function, whatever kind of function it is."""

import functools

import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.axis_names import axis_names


class _Callable:
    def __call__(self, row, column):
        return row + column


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda i, j: i + j, ["i", "j"]),
        (lambda i, j, k=3: i + j + k, ["i", "j"]),
        (lambda *index: index[0], ["i0", "i1"]),
        (_Callable(), ["row", "column"]),
        (functools.partial(lambda a, i, j: a, 1), ["i", "j"]),
    ],
)
def test_the_names_of_parameters(function, names):
    assert axis_names(function, 2, "C") == names


def test_a_function_of_other_indices():
    with pytest.raises(UserError, match="compute C has 2 dimensions, but its function takes 1"):
        axis_names(lambda i: i, 2, "C")
    with pytest.raises(UserError, match="compute C is given 3, not a function of its indices"):
        axis_names(3, 2, "C")
