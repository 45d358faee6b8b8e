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


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "clip"])
def test_integers_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(activations, name)(*tensors((3,), dtype="int32"))
