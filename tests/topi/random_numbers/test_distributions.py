"""Distributions: moments, limits, masks, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.random_numbers.distributions import (
    bernoulli,
    bernoulli_numpy,
    dropout,
    dropout_numpy,
    random_integers,
    random_integers_numpy,
    random_normal,
    random_normal_numpy,
    random_uniform,
    random_uniform_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

KEY = np.array([1, 2], np.uint32)
MANY = {"shape": (100, 100)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_numbers_fill_their_interval(dtype) -> None:
    found = run_te(random_uniform, KEY, is_symbolic=False, **MANY, dtype=dtype)
    assert_same(random_uniform_numpy(KEY, **MANY, dtype=dtype), found)
    assert 0 <= found.min() < 0.001 < 0.999 < found.max() < 1
    assert abs(found.mean() - 0.5) < 0.01
    assert abs(found.var() - 1 / 12) < 0.003
    # Neighbours are not correlated.
    flat = found.ravel()
    assert abs(np.corrcoef(flat[1:], flat[:-1])[0, 1]) < 0.03


def test_normal_numbers_have_their_moments() -> None:
    found = run_te(random_normal, KEY, is_symbolic=False, **MANY, mean=2.0, scale=3.0)
    assert abs(found.mean() - 2) < 0.1
    assert abs(found.std() - 3) < 0.1
    standard = (random_normal_numpy(KEY, **MANY, dtype="float64") ** 4).mean()
    assert abs(standard - 3) < 0.3  # the kurtosis
    assert np.isfinite(found).all()


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-3, 4)])
def test_integers_are_even(low, high) -> None:
    attributes = {**MANY, "low": low, "high": high, "dtype": "int8"}
    found = run_te(random_integers, KEY, is_symbolic=False, **attributes)
    assert_same(random_integers_numpy(KEY, **attributes), found)
    values, counts = np.unique(found, return_counts=True)
    assert list(values) == list(range(low, high))
    expected = found.size / (high - low)
    assert (abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_bernoulli_has_its_probability() -> None:
    given = np.full((100, 100), 0.3, np.float32)
    given[0, :4] = [0, 1, np.nan, -1]
    found = run_te(bernoulli, KEY, given, is_symbolic=False, dtype="bool")
    assert_same(bernoulli_numpy(KEY, given, dtype="bool"), found)
    assert abs(found.mean() - 0.3) < 0.02
    assert list(found[0, :4]) == [False, True, False, False]


def test_dropout_keeps_the_expectation() -> None:
    data = np.ones((100, 100), np.float32)
    found, mask = run_te(dropout, KEY, data, is_symbolic=False, rate=0.2)
    for one, other in zip((found, mask), dropout_numpy(KEY, data, rate=0.2), strict=True):
        assert_same(one, other)
    assert abs(mask.mean() - 0.8) < 0.02
    assert abs(found.mean() - 1) < 0.02
    assert set(np.unique(found)) == {0, np.float32(1.25)}


def test_dropout_drops_nan_and_infinities() -> None:
    data = np.full(50, np.nan, np.float32)
    data[::2] = np.inf
    found, mask = run_te(dropout, KEY, data, is_symbolic=False)
    np.testing.assert_array_equal(found, np.where(mask, data, 0))
    whole, all_kept = run_te(dropout, KEY, data, is_symbolic=False, rate=0.0)
    assert_same(whole, data)
    assert all_kept.all()


def test_ill_formed_calls_are_refused() -> None:
    (key,) = tensors((2,), dtype="uint32")
    (data,) = tensors((3,))
    (words,) = tensors((3,), dtype="int32")
    for operator in (random_uniform, random_normal):
        name = operator.__name__
        with pytest.raises(UserError, match=f"{name}: the key is f32 of 1 dimensions"):
            operator(data, shape=(1,))
        with pytest.raises(UserError, match=f"{name} cannot return i32"):
            operator(key, shape=(1,), dtype="int32")
        with pytest.raises(UserError, match=f"{name} cannot make the shape"):
            operator(key, shape=(-1,))
    with pytest.raises(UserError, match="random_uniform cannot have the parameters inf and 1"):
        random_uniform(key, shape=(1,), low=float("inf"))
    with pytest.raises(UserError, match="random_normal cannot have the parameters 0.0 and nan"):
        random_normal(key, shape=(1,), scale=float("nan"))
    with pytest.raises(UserError, match="random_integers cannot return f32"):
        random_integers(key, shape=(1,), low=0, high=1, dtype="float32")
    for low, high, dtype in (
        (0, 0, "int32"),
        (0, 256, "int8"),
        (-1, 3, "uint8"),
        (0, 2**33, "int64"),
    ):
        with pytest.raises(UserError, match="random_integers cannot draw"):
            random_integers(key, shape=(1,), low=low, high=high, dtype=dtype)
    with pytest.raises(UserError, match="bernoulli takes float tensors, not i32"):
        bernoulli(key, words)
    with pytest.raises(UserError, match="bernoulli cannot return f32x2"):
        bernoulli(key, data, dtype="float32x2")
    with pytest.raises(UserError, match="dropout takes float tensors, not i32"):
        dropout(key, words)
    with pytest.raises(UserError, match="dropout cannot have the rate 1.0"):
        dropout(key, data, rate=1.0)
    assert str(rc.topi.dropout(key, data)[1].dtype) == "bool"


def test_numbers_do_not_depend_on_whether_extents_are_symbolic() -> None:
    n = rc.var("n")
    key = rc.topi.threefry_key(seed=5)
    for draw in (
        lambda shape: random_uniform(key, shape=shape, low=-1.0),
        lambda shape: random_normal(key, shape=shape, dtype="float64"),
        lambda shape: random_integers(key, shape=shape, low=-3, high=9),
    ):
        symbolic = draw((n, 3))
        (expected,) = rc.oracle.evaluate([draw((4, 3))], {})
        module = rc.build(rc.create_schedule(symbolic), [symbolic], "interp")
        found = rc.array(np.zeros((4, 3), expected.dtype))
        module(found)
        np.testing.assert_array_equal(found.asnumpy(), expected)
