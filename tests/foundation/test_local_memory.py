"""Local memory of a launch: sizes, and where pieces lie."""

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.foundation.local_memory import LocalMemory, place_local


def test_pieces_follow_each_other_at_their_alignments():
    pieces = [(LocalMemory(4), 1), (LocalMemory(9), 8), (LocalMemory(1), 2)]
    assert place_local(5, pieces) == ([5, 16, 26], 27)
    assert place_local(7, []) == ([], 7)


@pytest.mark.parametrize("size", [0, -4, 2.5, "64", True])
def test_what_is_not_a_size_is_refused(size):
    with pytest.raises(UserError, match="is not a size") as told:
        refcomp.LocalMemory(size)
    assert "LocalMemory(64 * 4)" in told.value.remedy
