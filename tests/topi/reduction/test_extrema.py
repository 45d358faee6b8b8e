"""Extrema along axes and their indices: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.reduction import extrema
from tests.strategies.operands import assert_same, run_te, tensors


def both(name, data, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(extrema, name), data, **attributes)
    assert_same(found, getattr(extrema, f"{name}_numpy")(data, **attributes))
    return found


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("max", [], -np.inf),
        ("max", [1, np.nan, 2], np.nan),
        ("max", [-np.inf, -3], -3),
        ("min", [], np.inf),
        ("min", [np.nan, 1], np.nan),
        ("min", [np.inf, 3], 3),
    ],
)
def test_extrema_of_special_values(name, values, expected):
    np.testing.assert_array_equal(both(name, np.float32(values)), np.float32(expected))


@pytest.mark.parametrize(("name", "expected"), [("max", 0), ("min", 255)])
def test_extrema_of_no_integers(name, expected):
    found = both(name, np.zeros((2, 0), np.uint8), axis=1, keepdims=True)
    assert found.tolist() == [[expected], [expected]]


@pytest.mark.parametrize(
    ("name", "values", "first", "last"),
    [
        ("argmax", [1, 5, 5, 2], 1, 2),
        ("argmax", [-np.inf, -np.inf], 0, 1),
        ("argmax", [np.inf, np.nan, 1, np.nan], 1, 3),
        ("argmax", [0.0, -0.0], 0, 1),
        ("argmin", [3, 1, 1], 1, 2),
        ("argmin", [np.inf, np.inf], 0, 1),
        ("argmin", [-np.inf, np.nan], 1, 1),
    ],
)
def test_index_of_equal_and_special_values(name, values, first, last):
    data = np.float32(values)
    assert both(name, data) == first
    assert both(name, data, select_last_index=True) == last


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_without_an_axis_indices_count_all_elements(name):
    data = np.array([[3, 1], [1, 3]], np.int8)
    assert both(name, data, keepdims=True).shape == (1, 1)
    assert both(name, data, select_last_index=True) == (3 if name == "argmax" else 2)
    assert both(name, np.array(7, np.int8)) == 0


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("selects_last", [True, False])
def test_index_among_no_elements_of_a_symbolic_extent(name, selects_last):
    data = np.zeros(0, np.float32)
    assert run_te(getattr(extrema, name), data, select_last_index=selects_last) == -1


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_ill_formed_calls_are_refused(name):
    operator = getattr(extrema, name)
    with pytest.raises(UserError, match=f"{name} cannot choose among no elements"):
        operator(*tensors((2, 0)), axis=1)
    with pytest.raises(UserError, match=f"{name}: axis 2 is out of range for 2 dimensions"):
        operator(*tensors((2, 3)), axis=2)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_bools_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes numbers, not bool"):
        getattr(extrema, name)(*tensors((2,), dtype="bool"))
