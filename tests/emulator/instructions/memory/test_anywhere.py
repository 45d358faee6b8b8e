"""Accesses that are told their memory when they are bound."""

import numpy as np
import pytest

from refcomp.emulator.code.assembly import RegisterRange
from refcomp.emulator.instructions.memory.anywhere import bind_anywhere
from refcomp.emulator.instructions.memory.loads_and_stores import SHARED
from tests.emulator.snippets import LANE, get, instruction, make_waves

_V4_TO_6 = RegisterRange(4, 3)
_EACH_OF_V4_TO_6 = [RegisterRange(number, 1) for number in (4, 5, 6)]


def _access(line, position=0):
    one = instruction(line)
    return bind_anywhere(one, one.operands[position])


@pytest.mark.parametrize(
    ("line", "size", "written", "words"),
    [
        ("buffer_load_dwordx3 v[4:6], off, s[0:3], 0", 12, _V4_TO_6, _EACH_OF_V4_TO_6),
        ("buffer_load_dword a4, off, s[0:3], 0", 4, RegisterRange(260, 1), []),
        ("buffer_load_ubyte_d16 v4, off, s[0:3], 0", 1, None, []),
        ("buffer_store_dwordx2 v[4:5], off, s[0:3], 0", 8, None, [None, None]),
        ("buffer_atomic_add v4, off, s[0:3], 0", 4, None, []),
        ("buffer_atomic_add_x2 v[4:5], off, s[0:3], 0 sc0", 8, RegisterRange(4, 2), []),
    ],
)
def test_what_is_moved_and_filled(line, size, written, words):
    access = _access(line)
    assert (access.size, access.written) == (size, written)
    assert [word.written for word in access.words] == words
    assert all(word.size == 4 and not word.words for word in access.words)


def test_other_instructions_are_none():
    assert _access("buffer_load_format_x v0, off, s[0:3], 0") is None
    assert _access("buffer_atomic_frobnicate v0, off, s[0:3], 0") is None


def test_it_goes_to_the_memory_that_it_is_told():
    waves = make_waves(shared=256, v4=(LANE + 100).astype(np.uint32))
    _access("buffer_store_dword v4, off, s[0:3], 0").make(SHARED, lambda w: LANE[None] * 4)(waves)
    words = _access("buffer_load_dword v5, off, s[0:3], 0")
    words.make(SHARED, lambda w: LANE[None, ::-1] * 4)(waves)
    assert get(waves, 5).tolist() == (LANE[::-1] + 100).tolist()
