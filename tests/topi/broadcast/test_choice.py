"""Extrema, conditions and fused sums: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.broadcast import choice
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf


def both(name, *arrays, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(choice, name), *arrays, is_symbolic=False, **attributes)
    with np.errstate(all="ignore"):
        assert_same(getattr(choice, f"{name}_numpy")(*arrays, **attributes), found, 1e-6)
    return found


@pytest.mark.parametrize(
    ("name", "expected"), [("maximum", [3, 5, NAN, NAN, INF]), ("minimum", [1, -2, NAN, NAN, -INF])]
)
def test_extrema_of_special_values(name, expected):
    a, b = np.float32([1, 5, NAN, 0, -INF]), np.float32([3, -2, 0, NAN, INF])
    np.testing.assert_array_equal(both(name, a, b), np.float32(expected))
    both(name, np.uint8([0, 255]), np.uint8([[1], [254]]))


def test_where_chooses_without_reading_the_other_value():
    condition = np.array([[True], [False]])
    found = both("where", condition, np.float32([1, NAN]), np.float32([INF, 4]))
    np.testing.assert_array_equal(found, np.float32([[1, NAN], [INF, 4]]))
    assert both("where", np.True_, np.array([True]), np.array([False])).tolist() == [True]


def test_fma_rounds_once():
    tiny = np.float32(2.0**-20)
    one = np.float32(1)
    found = both("fma", np.float32([1 + tiny]), np.float32([1 + tiny]), np.float32([-1]))
    assert found[0] == 2 * tiny + tiny * tiny
    assert np.isnan(both("fma", np.float32([INF]), np.float32([0]), one[np.newaxis]))


def test_fma_of_f64_rounds_once():
    a, b = np.float64([1 + 2.0**-52]), np.float64([1 - 2.0**-52])
    assert both("fma", a, b, np.float64([-1]))[0] == -(2.0**-104)
    assert both("fma", a * 1e200, b * 1e200, a)[0] == INF


def test_ill_formed_choices_are_refused():
    condition = tensors((3,), dtype="bool")
    with pytest.raises(UserError, match="where takes a tensor of bool, not f32"):
        choice.where(*tensors((3,), (3,), (3,)))
    with pytest.raises(UserError, match="where cannot combine f32 with i32"):
        choice.where(*condition, *tensors((3,)), *tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match="where: an extent of the second operand is 2"):
        choice.where(*condition, *tensors((3,), (2,)))
    with pytest.raises(UserError, match="where is applied to a int, not to a tensor"):
        choice.where(*condition, 3, 4)


def test_ill_formed_fused_sums_are_refused():
    with pytest.raises(UserError, match="fma takes float tensors, not i32"):
        choice.fma(*tensors((3,), (3,), (3,), dtype="int32"))
    with pytest.raises(UserError, match="fma cannot combine f32 with f64"):
        choice.fma(*tensors((3,), (3,)), *tensors((3,), dtype="float64"))
    with pytest.raises(UserError, match="fma is not defined on dtype bf16"):
        choice.fma(*tensors((3,), (3,), (3,), dtype="bfloat16"))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_ill_formed_calls_are_refused(name):
    operator = getattr(choice, name)
    with pytest.raises(UserError, match=f"{name} takes numbers, not bool"):
        operator(*tensors((3,), (3,), dtype="bool"))
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with i32"):
        operator(*tensors((3,), dtype="float32"), *tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: an extent of the second operand is 2"):
        operator(*tensors((3,), (2,), dtype="float32"))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(*tensors((3,), dtype="float32"), 3)
