"""Elementwise operators of one tensor: te against their numpy meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import activations
from tests.strategies.operands import assert_same, batches, extents, floats, run_te, seeds, tensors

# The te intrinsics are within 4 ulp; the meaning rounds once.
TOLERANCES = {"relu": 0.0, "identity": 0.0, "clip": 0.0, "sigmoid": 4e-7, "tanh": 4e-7}


@pytest.mark.search
@pytest.mark.parametrize("name", TOLERANCES)
@given(batches, st.lists(extents, max_size=3), seeds)
def test_operator_is_its_meaning(name, n, rest, seed):
    data = floats(seed, n, *rest) * np.float32(3)
    te, meaning = getattr(activations, name), getattr(activations, f"{name}_numpy")
    bounds = {"minimum": -0.5, "maximum": 1.25} if name == "clip" else {}
    assert_same(run_te(te, data, **bounds), meaning(data, **bounds), TOLERANCES[name])


@pytest.mark.parametrize("name", ["relu", "clip"])
def test_nan_stays_nan(name):
    data = np.array([np.nan, -np.inf, np.inf], np.float32)
    te, meaning = getattr(activations, name), getattr(activations, f"{name}_numpy")
    assert np.isnan(run_te(te, data)[0])
    assert_same(run_te(te, data), meaning(data))


def test_relu_of_integers() -> None:
    data = np.array([-128, -1, 0, 5], np.int8)
    assert_same(run_te(activations.relu, data), np.array([0, 0, 0, 5], np.int8))
    assert_same(activations.relu_numpy(data), np.array([0, 0, 0, 5], np.int8))


def test_sigmoid_does_not_overflow() -> None:
    data = np.array([-200, 200], np.float32)
    np.testing.assert_array_equal(activations.sigmoid_numpy(data), np.array([0, 1], np.float32))


@pytest.mark.parametrize(
    ("dtype", "bounds", "expected"),
    [
        ("int8", (-3, 3.0), [-3, -3, 0, 3, 3]),
        ("int8", (-1000, 1000), [-128, -5, 0, 5, 127]),
        ("int8", (-np.inf, 0), [-128, -5, 0, 0, 0]),
        ("int8", (5, 1), [1, 1, 1, 1, 1]),
        ("int8", (300, 1), [1, 1, 1, 1, 1]),
        ("int64", (2**53 + 1, np.inf), [2**53 + 1] * 5),
    ],
)
def test_clip_of_integers_is_exact(dtype, bounds, expected):
    data = np.array([-128, -5, 0, 5, 127], dtype)
    low, high = bounds
    expected = np.array(expected, dtype)
    assert_same(run_te(activations.clip, data, minimum=low, maximum=high), expected)
    assert_same(activations.clip_numpy(data, minimum=low, maximum=high), expected)


def test_clip_of_unsigned_integers():
    data = np.array([0, 3, 255], np.uint8)
    assert_same(run_te(activations.clip, data, minimum=-1, maximum=4), np.uint8([0, 3, 4]))
    assert_same(activations.clip_numpy(data, minimum=-1, maximum=4), np.uint8([0, 3, 4]))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"minimum": 0.5}, r"clip cannot have the minimum 0.5(.|\n)*the elements are i8"),
        ({"maximum": np.nan}, "clip cannot have the maximum nan"),
        ({"minimum": 200}, r"the minimum 200, which is not a value of i8(.|\n)*wider dtype first"),
        ({"maximum": -129}, "the maximum -129, which is not a value of i8"),
        ({"maximum": -np.inf}, "the maximum -inf, which is not a value of i8"),
        ({"minimum": None}, r"given None as its minimum(.|\n)*-math.inf for no bound"),
        ({"maximum": "4"}, "given .4. as its maximum"),
    ],
)
def test_bounds_that_no_integer_can_have(bounds, message):
    (a,) = tensors((3,), dtype="int8")
    with pytest.raises(UserError, match=message):
        activations.clip(a, **bounds)


def test_clip_of_bools_is_refused():
    (a,) = tensors((3,), dtype="bool")
    with pytest.raises(UserError, match="clip takes numbers, not bool"):
        activations.clip(a, minimum=0)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_integers_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(activations, name)(*tensors((3,), dtype="int32"))
