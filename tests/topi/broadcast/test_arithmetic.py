"""Elementwise operators of two tensors: te against their numpy meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.broadcast import arithmetic
from tests.strategies.operands import assert_same, batches, integers, run_te, seeds, tensors

OPERATORS = {
    name: (getattr(arithmetic, name), getattr(arithmetic, f"{name}_numpy"))
    for name in ("add", "subtract", "multiply", "divide", "squared_difference")
}


@st.composite
def broadcast_shapes(draw):
    whole = draw(st.lists(st.integers(1, 4), max_size=3))
    kept = draw(st.integers(0, len(whole)))
    other = [1 if draw(st.booleans()) else extent for extent in whole[len(whole) - kept :]]
    return tuple(whole), tuple(other)


@pytest.mark.search
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int32", "float64"])
@given(batches, broadcast_shapes(), st.booleans(), seeds)
def test_operator_is_its_meaning(name, dtype, n, shapes, is_swapped, seed):
    te, meaning = OPERATORS[name]
    a = integers(seed, n, *shapes[0]).astype(dtype)
    b = integers(seed + 1, *shapes[1]).astype(dtype)
    if is_swapped:
        assert_same(run_te(lambda x, y: te(y, x), a, b), meaning(b, a))
    else:
        assert_same(run_te(te, a, b), meaning(a, b))


def test_integer_division_truncates_and_wraps() -> None:
    a, b = np.array([-7, 7, -128, 5], np.int8), np.array([2, -2, -1, 0], np.int8)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(arithmetic.divide_numpy(a, b), [-3, -3, -128, 0])
    np.testing.assert_array_equal(run_te(arithmetic.divide, a[None], b), [[-3, -3, -128, 0]])


def test_scale() -> None:
    data = integers(3, 4, 5)
    assert_same(run_te(arithmetic.scale, data, factor=0.5), data * np.float32(0.5))


def test_shapes_and_dtypes_that_do_not_meet_are_refused() -> None:
    with pytest.raises(UserError, match="add: an extent of the second operand is 4 instead of 3"):
        arithmetic.add(*tensors((2, 3), (4,)))
    with pytest.raises(UserError, match="is m instead of n"):
        arithmetic.add(*tensors((var("n"),), (var("m"),)))
    with pytest.raises(UserError, match="add cannot combine f32 with f64"):
        arithmetic.add(*tensors((2,)), *tensors((2,), dtype="float64"))


def test_squared_difference_of_special_values() -> None:
    a, b = np.float32([1, np.inf, np.nan]), np.float32([4, 1, 0])
    expected = np.float32([9, np.inf, np.nan])
    assert_same(run_te(arithmetic.squared_difference, a, b, is_symbolic=False), expected)
    assert_same(arithmetic.squared_difference_numpy(a, b), expected)
    with pytest.raises(UserError, match="squared_difference takes numbers, not bool"):
        arithmetic.squared_difference(*tensors((2,), (2,), dtype="bool"))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_bools_are_not_numbers(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} takes numbers, not bool"):
        getattr(arithmetic, name)(*tensors((2,), (2,), dtype="bool"))
