"""Threefry and Philox: the known answers of Random123, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.draws import Draws
from refcomp.topi.random_numbers.counters import (
    philox,
    philox_block,
    philox_numpy,
    require_key,
    sample_key,
    threefry,
    threefry_block,
    threefry_numpy,
    threefry_words_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

# Random123 1.14, tests/kat_vectors: counter, key, answer. The third rows are digits of pi.
THREEFRY = [
    ("00000000 00000000", "00000000 00000000", "6b200159 99ba4efe"),
    ("ffffffff ffffffff", "ffffffff ffffffff", "1cb996fc bb002be7"),
    ("243f6a88 85a308d3", "13198a2e 03707344", "c4923a9c 483df7a0"),
]
PHILOX = [
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def _words(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], np.uint32)


@pytest.mark.parametrize(("counter", "key", "answer"), THREEFRY)
def test_known_answers_of_threefry(counter, key, answer) -> None:
    operands = (_words(counter), _words(key))
    assert_same(run_te(threefry, *operands, is_symbolic=False), _words(answer))
    assert_same(threefry_numpy(*operands), _words(answer))


@pytest.mark.parametrize(("counter", "key", "answer"), PHILOX)
def test_known_answers_of_philox(counter, key, answer) -> None:
    operands = (_words(counter), _words(key))
    assert_same(run_te(philox, *operands, is_symbolic=False), _words(answer))
    assert_same(philox_numpy(*operands), _words(answer))


def test_each_counter_has_its_own_words() -> None:
    counters = np.array([_words(row[0]) for row in THREEFRY])
    key = _words(THREEFRY[0][1])
    found = run_te(threefry, counters, key)
    for counter, words in zip(counters, found, strict=True):
        np.testing.assert_array_equal(words, threefry_numpy(counter, key))


def test_words_of_constants() -> None:
    zeros = tuple(rc.const(0, "uint32") for _ in range(4))
    blocks = (philox_block(zeros, zeros[:2]), threefry_block(zeros[:2], zeros[:2]))
    body = [block.bind(word) for block in blocks for word in block.words]
    made = [rc.compute((1,), lambda i, word=word: word, name="made") for word in body]
    found = [int(word[0]) for word in rc.oracle.evaluate(made, {})]
    answers = (*_words(PHILOX[0][2]), *_words(THREEFRY[0][2]))
    assert found == [int(answer) for answer in answers]
    both = threefry_words_numpy((np.array(0),) * 2, (np.array(0),) * 2)
    assert [int(word) for word in both] == found[4:]


def test_drawn_key_is_a_key() -> None:
    key = sample_key(Draws(1))
    assert key.shape == (2,)
    assert key.dtype == np.uint32


def test_ill_formed_calls_are_refused() -> None:
    key, pair, four, three = tensors((2,), (5, 2), (5, 4), (3,), dtype="uint32")
    (signed,) = tensors((2,), dtype="int32")
    assert len(require_key(key, "it")) == 2
    with pytest.raises(UserError, match="it: the key is i32 of 1 dimensions"):
        require_key(signed, "it")
    with pytest.raises(UserError, match="it: the extent of the key is 3 instead of 2"):
        require_key(three, "it")
    with pytest.raises(UserError, match="threefry: the counter is i32 of 1 dimensions"):
        threefry(signed, key)
    with pytest.raises(UserError, match="the last extent of the counter is 4 instead of 2"):
        threefry(four, key)
    with pytest.raises(UserError, match="philox: the key is u32 of 2 dimensions"):
        philox(four, pair)
