"""Random choices: probabilities, limits, permutations, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.random_numbers.selections import (
    multinomial,
    multinomial_numpy,
    random_gumbel,
    random_gumbel_numpy,
    random_permutation,
    random_permutation_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

KEY = np.array([7, 8], np.uint32)


def test_gumbel_numbers_have_their_moments() -> None:
    shape = (100, 50)
    found = run_te(random_gumbel, KEY, is_symbolic=False, shape=shape)
    np.testing.assert_allclose(random_gumbel_numpy(KEY, shape=shape), found, rtol=1e-4, atol=1e-5)
    assert abs(found.mean() - np.euler_gamma) < 0.1
    assert abs(found.std() - np.pi / np.sqrt(6)) < 0.1
    assert np.isfinite(found).all()


def test_classes_have_their_probabilities() -> None:
    probabilities = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0]], np.float64)
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities).astype(np.float32) + np.float32(3)
    attributes = {"sample_size": 2000, "dtype": "int64"}
    found = run_te(multinomial, KEY, logits, is_symbolic=False, **attributes)
    assert_same(multinomial_numpy(KEY, logits, **attributes), found)
    for row, expected in zip(found, probabilities, strict=True):
        shares = np.bincount(row, minlength=3) / row.size
        np.testing.assert_allclose(shares, expected, atol=0.05)
        assert shares[expected == 0].sum() == 0


@pytest.mark.parametrize("certain", [np.nan, np.inf])
def test_what_is_chosen_always(certain) -> None:
    logits = np.array([[0, certain, -np.inf, certain]], np.float32)
    found = run_te(multinomial, KEY, logits, is_symbolic=False, sample_size=20)
    assert_same(multinomial_numpy(KEY, logits, sample_size=20), found)
    assert (found == 1).all()


@pytest.mark.parametrize("size", [0, 1, 2, 50])
def test_permutation_holds_each_integer_once(size) -> None:
    found = run_te(random_permutation, KEY, is_symbolic=False, size=size)
    assert_same(random_permutation_numpy(KEY, size=size), found)
    assert sorted(found) == list(range(size))


def test_places_of_a_permutation_are_even() -> None:
    counts = np.zeros((4, 4))
    for number in range(400):
        key = np.array([number, 0], np.uint32)
        counts[random_permutation_numpy(key, size=4), range(4)] += 1
    assert (abs(counts - 100) < 50).all()


def test_ill_formed_calls_are_refused() -> None:
    key, other = tensors((2,), (3,), dtype="uint32")
    logits, none, row = tensors((2, 3), (2, 0), (3,))
    (words,) = tensors((2, 3), dtype="int32")
    symbolic = rc.placeholder((2, rc.var("n")), name="symbolic")
    for call in (
        lambda: random_gumbel(other, shape=(1,)),
        lambda: multinomial(other, logits),
        lambda: random_permutation(other, size=1),
    ):
        with pytest.raises(UserError, match="the extent of the key is 3 instead of 2"):
            call()
    with pytest.raises(UserError, match="random_gumbel cannot make the shape"):
        random_gumbel(key, shape=(-2,))
    with pytest.raises(UserError, match="multinomial: the tensor of logits has 1 dimensions"):
        multinomial(key, row)
    with pytest.raises(UserError, match="multinomial takes float tensors, not i32"):
        multinomial(key, words)
    with pytest.raises(UserError, match="multinomial cannot return i8"):
        multinomial(key, logits, dtype="int8")
    with pytest.raises(UserError, match="multinomial cannot draw 1 of 0 classes"):
        multinomial(key, none)
    with pytest.raises(UserError, match="multinomial cannot draw -1 of 3 classes"):
        multinomial(key, logits, sample_size=-1)
    with pytest.raises(UserError, match="the number of classes must be a constant"):
        multinomial(key, symbolic)
    with pytest.raises(UserError, match="random_permutation cannot make the shape"):
        random_permutation(key, size=-1)
    with pytest.raises(UserError, match="random_permutation cannot return 129 integers as i8"):
        random_permutation(key, size=129, dtype="int8")
    with pytest.raises(UserError, match="random_permutation cannot return 3 integers as f32"):
        random_permutation(key, size=3, dtype="float32")
