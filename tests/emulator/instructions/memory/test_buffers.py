"""Accesses through descriptors: linear, swizzled, out of range, and private memory."""

import numpy as np
import pytest

from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GFX1100
from refcomp.emulator.instructions.memory.buffers import SCRATCH, SCRATCH_DESCRIPTOR, wave_bytes
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    LANE,
    filled_memory,
    found,
    get,
    instruction,
    make_waves,
    put,
    run,
    scalar,
    set_mask,
    set_scalar,
)


def _with_buffer(stride=0, records=256, swizzled=None, **options):
    """The descriptor is s[0:3], of a buffer that holds 0, 1, 2, ... as 32-bit numbers."""
    arena, place = filled_memory(np.arange(256, dtype=np.uint32).tobytes())
    waves = make_waves(arena=arena, **options)
    upper = place.address >> 32 | stride << 16 | (0 if swizzled is None else 1 << 31)
    fields = 0 if swizzled is None else swizzled << 21
    for number, word in enumerate((place.address & 0xFFFFFFFF, upper, records, fields)):
        set_scalar(waves, number, word)
    return waves, arena, place


def test_linear_buffers():
    waves, arena, place = _with_buffer()
    put(waves, 1, (LANE * 4).astype(np.uint32))
    set_scalar(waves, 4, 8)
    run(waves, "buffer_load_dwordx2 v[2:3], v1, s[0:3], s4 offen offset:4")
    assert get(waves, 2)[:3].tolist() == [3, 4, 5] and get(waves, 3)[:3].tolist() == [4, 5, 6]
    run(waves, "buffer_load_ubyte v2, off, s[0:3], 0 offset:4")
    assert (get(waves, 2) == 1).all()
    set_mask(waves, LANE < 2)
    run(waves, "buffer_store_short v1, v1, s[0:3], 0 offen offset:2")
    assert arena.read(place.address, 8).view(np.uint16).tolist() == [0, 0, 1, 4]
    assert not found(waves)


def test_records_of_a_stride():
    waves, _, _ = _with_buffer(stride=12, records=256)
    put(waves, 1, LANE.astype(np.uint32))
    put(waves, 4, LANE.astype(np.uint32))
    put(waves, 5, np.full(64, 4, np.uint32))
    run(waves, "buffer_load_dword v3, v[4:5], s[0:3], 0 idxen offen")
    assert get(waves, 3)[:4].tolist() == [1, 4, 7, 10]
    assert get(waves, 3)[20] == 61 and get(waves, 3)[21] == 0  # behind 256 bytes
    run(waves, "buffer_load_dword v3, v1, s[0:3], 0 idxen offset:8")
    assert get(waves, 3)[:3].tolist() == [2, 5, 8]


def test_what_is_out_of_range_reads_0_and_is_not_written():
    waves, arena, place = _with_buffer(records=20)
    put(waves, 1, (LANE * 4).astype(np.uint32))
    run(waves, "buffer_load_dword v2, v1, s[0:3], 0 offen")
    assert get(waves, 2).tolist() == [0, 1, 2, 3, 4, *[0] * 59]
    run(waves, "v_mov_b32_e32 v3, 7", "buffer_store_dword v3, v1, s[0:3], 0 offen")
    assert arena.read(place.address, 28).view(np.uint32).tolist() == [7] * 5 + [5, 6]
    run(waves, "buffer_atomic_add v3, v1, s[0:3], 0 offen sc0")
    assert get(waves, 3).tolist() == [7] * 5 + [0] * 59
    assert arena.read(place.address, 24).view(np.uint32).tolist() == [14] * 5 + [5]
    assert not found(waves)


def test_each_word_has_a_range():
    """What a lane's access begins within the records, it ends there."""
    waves, arena, place = _with_buffer(records=20)
    put(waves, 1, (LANE * 4).astype(np.uint32))
    run(waves, "buffer_load_dwordx4 v[2:5], v1, s[0:3], 0 offen")
    rows = [[n + k if n + k < 5 else 0 for n in range(64)] for k in range(4)]
    assert [get(waves, 2 + k).tolist() for k in range(4)] == rows
    put(waves, 6, np.full(64, 77, np.uint32))
    put(waves, 7, np.full(64, 88, np.uint32))
    set_mask(waves, LANE == 4)
    run(waves, "buffer_store_dwordx2 v[6:7], v1, s[0:3], 0 offen")
    assert arena.read(place.address, 28).view(np.uint32).tolist() == [0, 1, 2, 3, 77, 5, 6]
    set_mask(waves, LANE >= 0)
    run(waves, "buffer_load_dwordx2 v[0:1], v1, s[0:3], 0 offen")  # over its own addresses
    assert get(waves, 0)[:6].tolist() == [0, 1, 2, 3, 77, 0]
    assert get(waves, 1)[:6].tolist() == [1, 2, 3, 77, 0, 0] and not found(waves)


def test_gfx1100_looks_at_all_words_together():
    waves, _, _ = _with_buffer(records=20, lanes=32)
    set_scalar(waves, 3, _PLAIN)
    put(waves, 1, (LANE[:32] * 4).astype(np.uint32))
    run(waves, "buffer_load_b64 v[2:3], v1, s[0:3], 0 offen", of=GFX1100)
    assert get(waves, 2)[:6].tolist() == [0, 1, 2, 3, 0, 0]
    assert get(waves, 3)[:6].tolist() == [1, 2, 3, 4, 0, 0]


def test_addresses_in_range_must_still_belong_to_somebody():
    waves, _, _ = _with_buffer(records=1 << 20)
    put(waves, 1, (LANE * 4).astype(np.uint32))
    run(waves, "buffer_load_dword v2, v1, s[0:3], 0 offen offset:800")
    assert found(waves)[0].what == "4 bytes that end 4 bytes behind A (1024 bytes)"


def test_swizzled_buffers():
    """Stride 8, eight indices side by side: index i, offset o is dword 16 (i/8) + 8 (o/4) + i%8."""
    waves, _, _ = _with_buffer(stride=8, records=256, swizzled=0)
    put(waves, 1, LANE.astype(np.uint32))
    run(waves, "buffer_load_dword v2, v1, s[0:3], 0 idxen offset:4")
    assert get(waves, 2).tolist() == [16 * (n // 8) + 8 + n % 8 for n in range(64)]
    run(waves, "buffer_load_ubyte v2, v1, s[0:3], 0 idxen offset:4")
    assert get(waves, 2)[:9].tolist() == [*range(8, 16), 24]
    with pytest.raises(Unsupported, match="a swizzled access of more than 4 bytes"):
        run(waves, "buffer_load_dwordx2 v[2:3], v1, s[0:3], 0 idxen")


def _with_private(count=2, private=16):
    waves = make_waves(count, private=private)
    for number, word in enumerate(SCRATCH_DESCRIPTOR):
        set_scalar(waves, number, word)
    low = SCRATCH_DESCRIPTOR[0] + np.arange(count) * wave_bytes(private, 64)
    waves.initialise_scalar(0, low.astype(np.uint32))
    return waves


def test_private_memory_lies_behind_a_descriptor():
    assert SCRATCH_DESCRIPTOR[1] & 0xFFFF == SCRATCH >> 32
    waves = _with_private()
    put(waves, 1, np.stack([LANE, LANE + 100]).astype(np.uint32))
    put(waves, 2, np.where(LANE % 2 == 0, 4, 8).astype(np.uint32))
    run(waves, "buffer_store_dword v1, v2, s[0:3], 0 offen", "v_mov_b32_e32 v3, v2")
    run(waves, "buffer_load_dword v3, v3, s[0:3], 0 offen")
    assert get(waves, 3, wave=1).tolist() == (LANE + 100).tolist() and not found(waves)
    own = waves.private.data.view(np.uint32).reshape(2, 64, 4)
    assert own[1, :2].tolist() == [[0, 100, 0, 0], [0, 0, 101, 0]]
    run(waves, "buffer_store_short v1, off, s[0:3], 0 offset:14")
    assert own[1, :2, 3].tolist() == [100 << 16, 101 << 16]
    # An offset for the whole wave counts the bytes of all its lanes.
    set_scalar(waves, 4, 4 * 64)
    run(waves, "buffer_load_short_d16_hi v3, off, s[0:3], s4")
    assert get(waves, 3)[[0, 2]].tolist() == [0, 2 << 16 | 2]


def test_offsets_of_private_memory_may_wrap():
    """LLVM folds a constant into the access although the rest may be negative."""
    waves = _with_private()
    put(waves, 1, np.full(64, -180 & 0xFFFFFFFF, np.uint32))
    put(waves, 2, LANE.astype(np.uint32))
    run(waves, "buffer_store_dword v2, v1, s[0:3], 0 offen offset:184")
    assert (waves.private.data.view(np.uint32).reshape(2, 64, 4)[:, :, 1] == LANE).all()
    assert not found(waves)


def test_private_memory_has_an_end():
    waves = _with_private()
    run(waves, "buffer_load_dword v3, off, s[0:3], 0 offset:16")
    assert found(waves)[0].what == "4 bytes at 16 of 16 bytes of private memory"
    set_scalar(waves, 4, 4)  # the neighbour's
    run(waves, "buffer_load_dword v3, off, s[0:3], s4")
    assert "4 bytes at -1 of 16 bytes of private memory" in found(waves)[1].what


def test_scalar_loads():
    waves, _, _ = _with_buffer(records=40)
    run(waves, "s_buffer_load_dwordx2 s[4:5], s[0:3], 0x4")
    assert (scalar(waves, 4), scalar(waves, 5)) == (1, 2)
    waves.initialise_scalar(6, np.array([16], np.uint32))
    run(waves, "s_buffer_load_dword s7, s[0:3], s6 offset:0x8")
    assert scalar(waves, 7) == 6
    run(waves, "s_buffer_load_dwordx2 s[4:5], s[0:3], 0x28")  # behind 40 bytes
    assert (scalar(waves, 4), scalar(waves, 5)) == (0, 0) and not found(waves)


def test_each_word_of_a_scalar_load_has_a_range():
    waves, _, _ = _with_buffer(records=42, count=3)
    waves.initialise_scalar(6, np.array([28, 32, 36], np.uint32))
    run(waves, "s_buffer_load_dwordx4 s[8:11], s[0:3], s6")
    assert waves.values.s[8:12].T.tolist() == [[7, 8, 9, 0], [8, 9, 0, 0], [9, 0, 0, 0]]
    assert not found(waves)


def test_scalar_loads_reach_all_bytes_of_the_records():
    waves, _, _ = _with_buffer(stride=8, records=2)
    run(waves, "s_buffer_load_dwordx2 s[4:5], s[0:3], 0x8")
    assert (scalar(waves, 4), scalar(waves, 5)) == (2, 3)
    run(waves, "s_buffer_load_dwordx2 s[4:5], s[0:3], 0xc")  # the second behind 16 bytes
    assert (scalar(waves, 4), scalar(waves, 5)) == (3, 0)


_PLAIN = 3 << 28  # OOB_SELECT, of a raw buffer


def test_gfx1100_reads_and_writes_plain_buffers_alone():
    line = "buffer_load_b32 v2, v1, s[0:3], 0 offen"
    waves, _, _ = _with_buffer(lanes=32)
    put(waves, 1, (LANE[:32] * 4).astype(np.uint32))
    set_scalar(waves, 3, _PLAIN)
    run(waves, line, of=GFX1100)
    assert get(waves, 2)[:3].tolist() == [0, 1, 2]
    upper = scalar(waves, 1)
    for number, word in [
        *((1, upper | bit) for bit in (8 << 16, 1 << 30, 1 << 31)),
        *((3, fields) for fields in (0, 1 << 28, 2 << 28, _PLAIN | 1 << 23)),
    ]:
        set_scalar(waves, 1, upper)
        set_scalar(waves, 3, _PLAIN)
        set_scalar(waves, number, word)
        with pytest.raises(Unsupported, match="a buffer with a stride, swizzled, or not checked"):
            run(waves, line, of=GFX1100)


def test_descriptors_must_be_defined():
    waves, _, _ = _with_buffer()
    run(waves, "s_mov_b32 s8, s0", "s_mov_b32 s9, s1", "s_mov_b32 s10, s2")
    run(waves, "buffer_load_dword v2, off, s[8:11], 0")
    assert found(waves)[0].what == "an address depends on bits that nothing wrote"


def test_what_is_not_known_is_refused():
    with pytest.raises(Unsupported, match="does not support tfe of an access to a buffer"):
        bind(instruction("buffer_load_dword v0, off, s[0:3], 0 offset:4 tfe"))
    with pytest.raises(Unsupported, match="does not support the instruction buffer_load_format_x"):
        bind(instruction("buffer_load_format_x v0, v1, s[0:3], 0 idxen"))
