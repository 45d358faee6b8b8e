"""Where variables and generic addresses lie."""

import numpy as np

from refcomp.emulator.ptx.machine.spaces import (
    LOCAL_WINDOW,
    SHARED_WINDOW,
    lay_out,
    space_of_generic,
)
from refcomp.emulator.ptx.text.module import Variable


def _variable(name, size, alignment):
    return Variable(name, "shared", "b8", size, alignment)


def test_variables_lie_at_multiples_of_their_alignment():
    found = lay_out([_variable("a", 3, 1), _variable("b", 8, 8), _variable("c", 1, 4)], 1)
    assert (found.offsets, found.bytes) == ({"a": 1, "b": 8, "c": 16}, 17)


def test_variables_are_readable_up_to_their_alignment():
    """Compilers load 16 bytes of an array of 12 that is aligned to 64."""
    assert lay_out([_variable("a", 12, 64)]).padded == 16
    assert lay_out([_variable("a", 12, 4)]).padded == 12
    assert lay_out([_variable("a", 3, 64), _variable("b", 3, 2)]).padded == 16


def test_arrays_without_a_length_share_the_place_behind_all_others():
    found = lay_out([_variable("x", 0, 16), _variable("a", 3, 1), _variable("y", 0, 4)])
    assert (found.offsets, found.bytes) == ({"a": 0, "x": 16, "y": 16}, 16)


def test_generic_addresses_tell_their_space():
    addresses = np.array([5, SHARED_WINDOW + 7, LOCAL_WINDOW, SHARED_WINDOW], np.uint64)
    found = space_of_generic(addresses)
    assert {name: np.flatnonzero(here).tolist() for name, here in found.items()} == {
        "global": [0],
        "shared": [1, 3],
        "local": [2],
    }
    assert set(space_of_generic(addresses[:1])) == {"global"}
