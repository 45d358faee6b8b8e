"""Loads that are the same for all lanes of a wave."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.execution.program import bind
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    filled_memory,
    found,
    instruction,
    make_waves,
    run,
    scalar,
    set_scalar,
)


def _with_buffer(count=1):
    """s[2:3] is the address of 512 bytes, each its number modulo 256."""
    arena, place = filled_memory(bytes(range(256)) * 2)
    waves = make_waves(count, arena=arena)
    set_scalar(waves, 2, place.address, 2)
    return waves


def test_loads_of_whole_waves():
    waves = _with_buffer()
    run(waves, "s_load_dwordx2 s[4:5], s[2:3], 0x8", "s_load_dword s6, s[2:3], 0x101")
    assert [scalar(waves, n) for n in (4, 5, 6)] == [0x0B0A0908, 0x0F0E0D0C, 0x03020100]
    run(waves, "s_load_dwordx4 s[8:11], s[2:3], 0x1f8")
    assert found(waves)[0].what == "16 bytes that end 8 bytes behind A (512 bytes)"
    run(waves, "s_load_dword s6, s[12:13], 0x0")
    assert found(waves)[1].kind == UNDEFINED


def test_constants_may_be_negative():
    waves = _with_buffer()
    set_scalar(waves, 4, scalar(waves, 2, "u64") + 16, 2)
    set_scalar(waves, 6, 24)
    run(waves, "s_load_dword s7, s[4:5], -0x8", "s_load_dword s8, s[4:5], s6 offset:-0x1c")
    assert [scalar(waves, n) for n in (7, 8)] == [0x0B0A0908, 0x0F0E0D0C] and not found(waves)
    set_scalar(waves, 6, 0xFFFFFFF8)  # a register's is not
    run(waves, "s_load_dword s7, s[4:5], s6")
    assert "far from all memory" in found(waves)[0].what


def test_each_wave_has_its_own_offset():
    waves = _with_buffer(2)
    waves.initialise_scalar(8, np.array([4, 12], np.uint32))
    run(waves, "s_load_dword s9, s[2:3], s8 offset:0x4")
    assert waves.values.s[9].tolist() == [0x0B0A0908, 0x13121110]


def test_other_results_are_refused():
    with pytest.raises(Unsupported, match="does not support this result of a scalar load"):
        bind(instruction("s_load_dword v0, s[2:3], 0x0"))
