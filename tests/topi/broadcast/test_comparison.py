"""Comparisons: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.broadcast import comparison
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf


def both(name, *arrays, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(comparison, name), *arrays, is_symbolic=False, **attributes)
    with np.errstate(all="ignore"):
        assert_same(getattr(comparison, f"{name}_numpy")(*arrays, **attributes), found, 1e-6)
    return found


NAMES = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("equal", [0, 1, 0, 1, 0, 0, 1]),
        ("not_equal", [1, 0, 1, 0, 1, 1, 0]),
        ("less", [1, 0, 0, 0, 0, 0, 0]),
        ("less_equal", [1, 1, 0, 1, 0, 0, 1]),
        ("greater", [0, 0, 1, 0, 0, 0, 0]),
        ("greater_equal", [0, 1, 1, 1, 0, 0, 1]),
    ],
)
def test_special_values(name, expected):
    a = np.float32([1, 2, 3, -0.0, NAN, NAN, -INF])
    b = np.float32([2, 2, 2, 0.0, NAN, 1, -INF])
    assert both(name, a, b).tolist() == [value == 1 for value in expected]


@pytest.mark.parametrize("name", NAMES)
def test_unsigned_integers_are_not_signed(name):
    both(name, np.uint8([[255], [0]]), np.uint8([1, 255, 0]))


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(comparison, name)
    with pytest.raises(UserError, match=f"{name} takes numbers, not bool"):
        operator(*tensors((3,), (3,), dtype="bool"))
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with i32"):
        operator(*tensors((3,), dtype="float32"), *tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: an extent of the second operand is 2"):
        operator(*tensors((3,), (2,), dtype="float32"))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(*tensors((3,), dtype="float32"), 3)
