"""Keys: seeds, splitting, counters of elements, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.random_numbers.counters import threefry_numpy
from refcomp.topi.random_numbers.keys import (
    check_shape,
    random_block,
    random_words_numpy,
    threefry_generate,
    threefry_generate_numpy,
    threefry_key,
    threefry_key_numpy,
    threefry_split,
    threefry_split_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

KEY = np.array([3, 2**32 - 1], np.uint32)


@pytest.mark.parametrize(
    ("seed", "expected"), [(0, [0, 0]), (2**32 + 7, [7, 1]), (2**64 - 1, [2**32 - 1] * 2)]
)
def test_seed_is_the_key(seed, expected) -> None:
    wanted = np.array(expected, np.uint32)
    assert_same(run_te(threefry_key, seed=seed), wanted)
    assert_same(threefry_key_numpy(seed=seed), wanted)


def test_keys_and_words_differ() -> None:
    left, right = run_te(threefry_split, KEY, is_symbolic=False)
    next_key, words = run_te(threefry_generate, KEY, is_symbolic=False, shape=(4, 5))
    for one, other in zip((left, right), threefry_split_numpy(KEY), strict=True):
        assert_same(one, other)
    for one, other in zip(
        (next_key, words), threefry_generate_numpy(KEY, shape=(4, 5)), strict=True
    ):
        assert_same(one, other)
    seen = [*left, *right, *next_key, *(words % 2**32).ravel(), *(words >> 32).ravel()]
    assert len({int(word) for word in seen}) == len(seen)


def test_counter_of_an_element_is_its_position() -> None:
    low, high = random_words_numpy(KEY, (2, 3))
    expected = threefry_numpy(np.array([5, 0], np.uint32), KEY)
    assert [low[1, 2], high[1, 2]] == list(expected)


def test_many_elements_have_counters_of_64_bits() -> None:
    key = rc.placeholder((2,), "uint32", name="key")
    shape = (2**20, 2**20)
    made = []
    for word in range(2):
        index = (rc.const(2**13), rc.const(9))
        block = random_block((key[0], key[1]), index, shape)
        value = block.bind(block.words[word])
        made.append(rc.compute((1,), lambda i, value=value: value, name="made"))
    low, high = rc.oracle.evaluate(made, {key: KEY})
    # The position is 2**33 + 9.
    expected = threefry_numpy(np.array([9, 2], np.uint32), KEY)
    assert [low[0], high[0]] == list(expected)


def test_ill_formed_calls_are_refused() -> None:
    (key, wrong) = tensors((2,), (2, 2), dtype="uint32")
    with pytest.raises(UserError, match="it cannot make the shape \\(2, -1\\)"):
        check_shape((2, -1), "it")
    with pytest.raises(UserError, match="threefry_generate cannot make the shape"):
        threefry_generate(key, shape=(-1,))
    with pytest.raises(UserError, match="threefry_generate: the key is u32 of 2 dimensions"):
        threefry_generate(wrong, shape=(1,))
    with pytest.raises(UserError, match="threefry_split: the key is u32 of 2 dimensions"):
        threefry_split(wrong)
    for seed in (-1, 2**64):
        with pytest.raises(UserError, match="threefry_key cannot take the seed"):
            threefry_key(seed=seed)
