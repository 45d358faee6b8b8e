"""Loads and stores of every size and place, in active lanes, and what is wrong with them."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import OUT_OF_BOUNDS, UNDEFINED
from refcomp.emulator.instructions.memory.loads_and_stores import Transfer, transfer_of
from tests.emulator.snippets import (
    LANE,
    filled_memory,
    found,
    get,
    make_waves,
    put,
    run,
    set_mask,
    set_scalar,
    undefined,
)


@pytest.mark.parametrize(
    ("name", "transfer"),
    [
        ("global_load_dwordx3", Transfer(False, 4, 3)),
        ("global_load_sbyte", Transfer(False, 1, 1, True)),
        ("global_load_ushort", Transfer(False, 2)),
        ("global_load_short_d16_hi", Transfer(False, 2, place="high")),
        ("global_load_sbyte_d16", Transfer(False, 1, 1, True, "low")),
        ("global_store_byte_d16_hi", Transfer(True, 1, place="high")),
        ("scratch_store_dwordx2", Transfer(True, 4, 2)),
        ("ds_read_b128", Transfer(False, 4, 4)),
        ("ds_read_i8", Transfer(False, 1, 1, True)),
        ("ds_read_u16_d16_hi", Transfer(False, 2, place="high")),
        ("ds_write_b8", Transfer(True, 1)),
        ("ds_write_b16_d16_hi", Transfer(True, 2, place="high")),
        ("ds_add_u32", None),
    ],
)
def test_names_tell_what_is_moved(name, transfer):
    assert transfer_of(name) == transfer


def _with_buffer(size=512, content=None, **options):
    arena, place = filled_memory(content or bytes(range(256)) * 2, size)
    waves = make_waves(arena=arena, v1=(LANE * 4).astype(np.uint32), **options)
    set_scalar(waves, 2, place.address, 2)
    return waves, arena, place


def test_global_memory():
    waves, arena, place = _with_buffer()
    run(waves, "global_load_dwordx2 v[2:3], v1, s[2:3] offset:4")
    assert get(waves, 2)[1] == 0x0B0A0908 and get(waves, 3)[1] == 0x0F0E0D0C
    run(waves, "global_load_sbyte v4, v1, s[2:3] offset:3", "v_add_u32_e32 v4, 1, v4")
    assert get(waves, 4, "i32")[[0, 33]].tolist() == [4, 0x87 - 256 + 1]
    run(waves, "global_load_short_d16_hi v4, v1, s[2:3]")
    assert get(waves, 4)[0] == 0x01000004
    set_mask(waves, LANE == 2)
    run(waves, "global_store_short_d16_hi v1, v2, s[2:3] offset:1")
    content = bytes(arena.read(place.address, 16))
    assert content == bytes([*range(9), 0x0E, 0x0F, 11, 12, 13, 14, 15])
    assert not found(waves)


def test_addresses_may_be_vectors():
    waves, _, place = _with_buffer()
    put(waves, 4, place.address + LANE.astype(np.uint64))
    run(waves, "global_load_ubyte v6, v[4:5], off offset:2")
    assert get(waves, 6)[:3].tolist() == [2, 3, 4]


def test_what_is_outside_reads_0_and_writes_nothing():
    waves, arena, place = _with_buffer(size=248)
    before = bytes(arena.read(place.address, 300))
    run(waves, "global_load_dword v2, v1, s[2:3]", "global_store_dword v1, v2, s[2:3] offset:-8")
    read, written = found(waves)
    assert read.kind == OUT_OF_BOUNDS and read.times == 2
    assert read.what == "4 bytes that end 4 bytes behind A (248 bytes)" and read.item == (62, 0, 0)
    assert "8 bytes before A" in written.what and get(waves, 2)[63] == 0
    assert bytes(arena.read(place.address, 300))[248:] == before[248:]


def test_shared_memory():
    waves = make_waves(
        2,
        groups=2,
        shared=260,
        v1=(LANE * 4).astype(np.uint32),
        v2=np.stack([LANE, LANE + 100]).astype(np.uint32),
    )
    run(waves, "ds_write_b32 v1, v2 offset:4", "ds_read_b32 v3, v1 offset:4")
    assert get(waves, 3, wave=1).tolist() == list(range(100, 164)) and not found(waves)
    put(waves, 4, np.full(64, -4, np.int32))
    run(waves, "ds_read2_b32 v[6:7], v4 offset0:2 offset1:3", "ds_read_b64 v[8:9], v4 offset:8")
    assert (get(waves, 6)[0], get(waves, 7)[0], get(waves, 9, wave=1)[0]) == (0, 1, 101)
    run(waves, "ds_read2_b32 v[4:5], v4 offset0:2 offset1:3")
    assert (get(waves, 4)[0], get(waves, 5)[0]) == (0, 1)
    run(waves, "ds_read_b32 v3, v1 offset:12")
    assert found(waves)[0].what == "4 bytes at 260 of 260 bytes of shared memory"


def test_strided_pairs():
    waves = make_waves(shared=1024, v1=np.uint32(0))
    set_mask(waves, LANE == 0)
    run(waves, "v_mov_b32_e32 v2, 5", "v_mov_b32_e32 v3, 6")
    run(waves, "ds_write2st64_b32 v1, v2, v3 offset0:1 offset1:2", "ds_read_b32 v4, v1 offset:512")
    assert get(waves, 4)[0] == 6


def test_private_memory_is_each_lanes_own():
    waves = make_waves(private=16, v1=LANE.astype(np.uint32), s33=4)
    run(waves, "scratch_store_dword off, v1, s33 offset:4", "scratch_load_dword v2, off, s33")
    assert (undefined(waves, 2) == 0xFFFFFFFF).all()
    run(waves, "v_mov_b32_e32 v3, 8", "scratch_load_dword v2, v3, off")
    assert get(waves, 2).tolist() == LANE.tolist() and not undefined(waves, 2).any()
    run(waves, "scratch_load_dword v2, v3, s33 offset:8")
    assert found(waves)[0].what == "4 bytes at 20 of 16 bytes of private memory"


def test_undefined_bits_must_not_reach_memory_or_addresses():
    waves, arena, _ = _with_buffer()
    run(waves, "global_store_dword v1, v9, s[2:3]", "global_load_dword v2, v10, s[2:3]")
    told = {(f.kind, f.what) for f in found(waves)}
    assert (UNDEFINED, "what is stored depends on bits that nothing wrote") in told
    assert (UNDEFINED, "an address depends on bits that nothing wrote") in told
    other = arena.allocate(256, "B")
    set_scalar(waves, 4, other.address, 2)
    run(waves, "global_load_dword v2, v1, s[4:5]", "v_and_b32_e32 v3, 0, v2")
    assert undefined(waves, 2).all() and not undefined(waves, 3).any()


def test_memory_that_a_kernel_does_not_have_is_out_of_bounds():
    waves = make_waves(s0=0, v0=np.uint32(0))
    run(waves, "ds_read_b128 v[4:7], v0", "ds_write_b64 v0, v[4:5]", "ds_add_u32 v0, v4")
    run(waves, "scratch_load_dwordx4 v[8:11], off, s0", "scratch_store_dword off, v0, s0")
    assert [one.kind for one in found(waves)] == [OUT_OF_BOUNDS] * 5
    assert found(waves)[0].what == "16 bytes at 0 of 0 bytes of shared memory"
    assert not any(get(waves, n).any() for n in (4, 7, 8, 11))
