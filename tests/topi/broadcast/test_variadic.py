"""Sums, means and extrema of any number of tensors: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.broadcast import variadic
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf


def both(name, *arrays, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(variadic, name), *arrays, is_symbolic=False, **attributes)
    with np.errstate(all="ignore"):
        assert_same(getattr(variadic, f"{name}_numpy")(*arrays, **attributes), found, 1e-6)
    return found


NAMES = ["add_n", "mean_n", "max_n", "min_n"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add_n", [6, NAN, NAN]),
        ("mean_n", [2, NAN, NAN]),
        ("max_n", [3, NAN, INF]),
        ("min_n", [1, NAN, -INF]),
    ],
)
def test_special_values(name, expected):
    arrays = [np.float32(row) for row in ([1, NAN, INF], [2, 0, -INF], [3, 1, 0])]
    np.testing.assert_array_equal(both(name, *arrays), np.float32(expected))


@pytest.mark.parametrize("name", NAMES)
def test_one_tensor_and_broadcasting(name):
    data = np.float32([[1, -2], [NAN, 3]])
    np.testing.assert_array_equal(both(name, data), data)
    assert both(name, np.float32([[1], [2]]), np.float32(3), np.float32([1, 2, 3])).shape == (2, 3)


def test_integers_wrap_and_half_floats_do_not_overflow_between():
    assert both("add_n", np.int8([100]), np.int8([100]), np.int8([100])).tolist() == [44]
    parts = [np.float16([value]) for value in (60000, 60000, -60000)]
    assert both("add_n", *parts) == np.float16(60000)
    assert both("mean_n", *parts) == np.float16(20000)


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(variadic, name)
    with pytest.raises(UserError, match=f"{name} is given no tensor"):
        operator()
    with pytest.raises(UserError, match=f"{name} takes (numbers|float tensors), not bool"):
        operator(*tensors((3,), dtype="bool"))
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with f64"):
        operator(*tensors((3,)), *tensors((3,), dtype="float64"))
    with pytest.raises(UserError, match=f"{name}: an extent of the second operand is 2"):
        operator(*tensors((3,), (2,)))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(3)


def test_mean_of_integers_is_refused():
    with pytest.raises(UserError, match="mean_n takes float tensors, not i32"):
        variadic.mean_n(*tensors((3,), dtype="int32"))
