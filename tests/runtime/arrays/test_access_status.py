"""The status of checked accesses, and the error that is made of it."""

from dataclasses import replace

import numpy as np
import pytest

import refcomp
from refcomp.foundation.artifacts import CheckedAccess, Signature
from refcomp.foundation.errors import OutOfBounds, UserError
from refcomp.runtime.arrays.access_status import fresh_status, require_in_bounds

_READ = CheckedAccess("reads", "A", 1, "n", "I[i]", "B[i] = A[0, I[i]]", "stage B, at f.py:3")
_WRITE = CheckedAccess("writes", "B", 0, "64", "k", "B[k] = 0")
_SIGNATURE = Signature("f", (), checks=(_READ, _WRITE))


def _error(*rows, signature=_SIGNATURE):
    status = fresh_status(signature)
    for number, row in rows:
        status[number] = row
    with pytest.raises(OutOfBounds) as caught:
        require_in_bounds(signature, status)
    return caught.value


def test_nothing_is_wrong_at_first():
    require_in_bounds(_SIGNATURE, fresh_status(_SIGNATURE))
    require_in_bounds(Signature("f", ()), fresh_status(Signature("f", ())))


def test_an_error_says_what_where_why_and_what_to_do():
    error = _error((0, (70, 70, 64)))
    assert isinstance(error, UserError) and refcomp.OutOfBounds is OutOfBounds
    assert str(error).splitlines() == [
        "f reads from A out of bounds: index 70 in dimension 1, which has 64 elements (n)",
        "  where: B[i] = A[0, I[i]] (stage B, at f.py:3)",
        "  why: the index is I[i]",
        "  what to do: correct the data, the index or the loops, so that the index is from 0 to "
        "63, or guard the access by if_then_else; the outputs of this call are undefined",
    ]


def test_the_first_access_is_named_and_the_others_are_counted():
    error = _error((1, (64, 64, 64)), (0, (-3, 70, 64)))
    assert error.what.startswith("f reads from A out of bounds: index -3 in dimension 1")
    assert error.why == (
        "the index is I[i]; wrong indices are from -3 to 70; 1 other access was out of bounds, too"
    )
    assert _error((1, (64, 64, 64))).what == (
        "f writes to B out of bounds: index 64 in dimension 0, which has 64 elements"
    )


@pytest.mark.parametrize("index", [np.iinfo(np.int64).max, np.iinfo(np.int64).min])
def test_the_ends_of_i64_are_wrong_indices_like_others(index):
    assert f"index {index} in" in _error((1, (index, index, 64))).what


def test_words_that_threads_raced_for_are_still_wrong_indices():
    error = _error((1, (90, 70, 64)))
    assert "index 90" in error.what and "wrong indices are from 70 to 90" in error.why


def test_an_empty_dimension_has_a_remedy_of_its_own():
    error = _error((0, (0, 0, 0)))
    assert "which has 0 elements (n)" in error.what
    assert error.remedy.startswith("pass an array with elements, or guard the access")
    assert "which has 1 element (n)" in _error((0, (1, 1, 1))).what


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("updates", "f updates A out of bounds"),
        ("passes", "f passes the address of an element of A out of bounds"),
    ],
)
def test_each_action_has_its_words(action, text):
    signature = replace(_SIGNATURE, checks=(replace(_READ, action=action),))
    assert _error((0, (9, 9, 4)), signature=signature).what.startswith(text)
