"""Quotients and remainders: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.broadcast import division
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf


def both(name, *arrays, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(division, name), *arrays, is_symbolic=False, **attributes)
    with np.errstate(all="ignore"):
        assert_same(getattr(division, f"{name}_numpy")(*arrays, **attributes), found, 1e-6)
    return found


NAMES = ["floor_divide", "trunc_divide", "mod", "floor_mod"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("floor_divide", [3, -4, -4, 3, 0, -128]),
        ("trunc_divide", [3, -3, -3, 3, 0, -128]),
        ("mod", [1, -1, 1, -1, 0, 0]),
        ("floor_mod", [1, 1, -1, -1, 0, 0]),
    ],
)
def test_signs_of_integers_and_zero(name, expected):
    found = both(name, np.int8([7, -7, 7, -7, 5, -128]), np.int8([2, 2, -2, -2, 0, -1]))
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("floor_divide", [2, -3, INF, NAN, INF, 0, -0.0, NAN]),
        ("trunc_divide", [2, -2, INF, NAN, INF, 0, -0.0, NAN]),
        ("mod", [1.5, -1.5, NAN, NAN, NAN, 3, -3, NAN]),
        ("floor_mod", [1.5, 0.5, NAN, NAN, NAN, 3, INF, NAN]),
    ],
)
def test_special_floats(name, expected):
    a = np.float32([5.5, -5.5, 1, 0, INF, 3, -3, NAN])
    b = np.float32([2, 2, 0, 0, 2, INF, INF, 1])
    np.testing.assert_array_equal(both(name, a, b), np.float32(expected))


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(division, name)
    with pytest.raises(UserError, match=f"{name} takes numbers, not bool"):
        operator(*tensors((3,), (3,), dtype="bool"))
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with i32"):
        operator(*tensors((3,), dtype="float32"), *tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: an extent of the second operand is 2"):
        operator(*tensors((3,), (2,), dtype="float32"))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(*tensors((3,), dtype="float32"), 3)
