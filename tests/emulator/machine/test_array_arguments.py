"""Arrays are copied to the GPU, or refused."""

import numpy as np
import pytest

from refcomp.emulator.machine.array_arguments import place_array
from refcomp.emulator.machine.memory import Arena
from refcomp.foundation.errors import UserError


def test_bytes_of_an_array_are_in_memory():
    arena = Arena(1 << 16, is_watched=True)
    given = np.arange(6, dtype=np.int32).reshape(2, 3)
    address = place_array(arena, "x", given)
    assert arena.read(address, given.nbytes).view(np.int32).tolist() == [0, 1, 2, 3, 4, 5]
    assert arena.allocation_at(address).label == "the argument x"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (np.zeros((4, 4)).T[1:], "the array for x is not contiguous"),
        (np.array([None]), "the array for x holds Python objects"),
    ],
)
def test_other_arrays_are_refused(given, what):
    with pytest.raises(UserError, match=what):
        place_array(Arena(1 << 16, is_watched=True), "x", given)


def test_lack_of_memory_is_told():
    with pytest.raises(MemoryError, match="no room for the argument x"):
        place_array(Arena(1 << 12, is_watched=True), "x", np.zeros(1 << 12))
