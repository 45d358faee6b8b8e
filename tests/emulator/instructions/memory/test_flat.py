"""Addresses that may be in any memory: each lane's in another one."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import OUT_OF_BOUNDS, UNDEFINED
from refcomp.emulator.execution.program import bind
from refcomp.emulator.machine.sources import APERTURES
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
)


def _with_memory():
    """v[0:1] are addresses: of every third lane in the device's, the group's, its own memory."""
    arena, place = filled_memory(np.arange(128, dtype=np.uint32).tobytes())
    waves = make_waves(arena=arena, shared=512, private=16)
    bases = [place.address, APERTURES["src_shared_base"], APERTURES["src_private_base"]]
    offsets = np.where(LANE % 3 == 2, 4, LANE * 4)
    put(waves, 0, np.array(bases, np.uint64)[LANE % 3] + offsets.astype(np.uint64))
    put(waves, 2, (LANE + 1000).astype(np.uint32))
    return waves, arena, place


def test_each_lane_stores_and_loads_in_its_memory():
    waves, arena, place = _with_memory()
    run(waves, "flat_store_dword v[0:1], v2", "flat_load_dword v3, v[0:1]")
    assert get(waves, 3).tolist() == (LANE + 1000).tolist() and not found(waves)
    stored = arena.read(place.address, 256).view(np.uint32)
    assert stored.tolist() == [n + 1000 if n % 3 == 0 else n for n in range(64)]
    own = waves.private.data.view(np.uint32).reshape(64, 4)
    assert own[LANE % 3 == 2, 1].tolist() == (LANE[LANE % 3 == 2] + 1000).tolist()
    assert waves.shared.data.view(np.uint32)[[1, 4]].tolist() == [1001, 1004]


def test_results_may_overwrite_addresses():
    waves, _, _ = _with_memory()
    run(waves, "flat_store_dwordx2 v[0:1], v[2:3] offset:4", "flat_load_dword v0, v[0:1] offset:4")
    assert get(waves, 0).tolist() == (LANE + 1000).tolist()


def test_updates():
    waves, arena, place = _with_memory()
    run(waves, "flat_store_dword v[0:1], v2", "v_mov_b32_e32 v3, 5")
    run(waves, "flat_atomic_add v4, v[0:1], v3 sc0", "flat_atomic_smax v[0:1], v3")
    assert get(waves, 4).tolist() == (LANE + 1000).tolist() and not found(waves)
    stored = arena.read(place.address, 16).view(np.uint32)
    assert stored.tolist() == [1005, 1, 2, 1008]
    run(waves, "flat_load_dword v5, v[0:1]")
    assert get(waves, 5).tolist() == (LANE + 1005).tolist()


def test_updates_of_pairs_of_halves():
    waves, _, _ = _with_memory()
    halves = np.array([1.5, 2.5], np.float16).view(np.uint32)[0]
    put(waves, 2, np.full(64, halves, np.uint32))
    set_mask(waves, LANE == 1)
    run(waves, "flat_store_dword v[0:1], v2", "flat_atomic_pk_add_f16 v[0:1], v2")
    run(waves, "flat_load_dword v3, v[0:1]")
    assert get(waves, 3)[1:2].view(np.float16).tolist() == [3.0, 5.0]
    run(waves, "ds_pk_add_rtn_f16 v4, v0, v2", "flat_load_dword v3, v[0:1]")
    assert get(waves, 4)[1:2].view(np.float16).tolist() == [3.0, 5.0]
    assert get(waves, 3)[1:2].view(np.float16).tolist() == [4.5, 7.5]


def test_updates_of_pairs_of_bfloats_round_to_even():
    waves, _, _ = _with_memory()
    set_mask(waves, LANE == 1)
    # 1 and 256 in the lower and the upper half; to them are added 2 and 1 (a tie).
    put(waves, 2, np.full(64, 0x4380_3F80, np.uint32))
    put(waves, 3, np.full(64, 0x3F80_4000, np.uint32))
    run(waves, "flat_store_dword v[0:1], v2", "ds_pk_add_bf16 v0, v3")
    run(waves, "flat_load_dword v4, v[0:1]")
    assert get(waves, 4)[1] == 0x4380_4040


def test_what_is_outside_of_a_memory_is_told_of():
    waves, _, _ = _with_memory()
    for memory in range(3):
        set_mask(waves, memory == LANE % 3)
        run(waves, "flat_load_dword v3, v[0:1] offset:2048")
    set_mask(waves, LANE < 64)
    told = {(one.kind, one.what) for one in found(waves)}
    assert (OUT_OF_BOUNDS, "4 bytes at 2052 of 512 bytes of shared memory") in told
    assert (OUT_OF_BOUNDS, "4 bytes at 2052 of 16 bytes of private memory") in told
    run(waves, "flat_load_dword v3, v[8:9]")
    assert UNDEFINED in {one.kind for one in found(waves)}


def test_apertures_are_read_by_scalar_instructions():
    waves = make_waves()
    run(waves, "s_mov_b64 s[0:1], src_shared_base", "s_mov_b64 s[2:3], src_private_limit")
    assert scalar(waves, 0, "u64") == APERTURES["src_shared_base"]
    assert scalar(waves, 2, "u64") == APERTURES["src_private_base"] + 0xFFFFFFFF
    with pytest.raises(
        Unsupported, match="does not support the operand 'src_pops_exiting_wave_id'"
    ):
        bind(instruction("s_mov_b32 s0, src_pops_exiting_wave_id"))


def test_other_accesses_are_not_known():
    with pytest.raises(Unsupported, match="does not support the instruction flat_atomic_nonsense"):
        bind(instruction("flat_atomic_nonsense v[0:1], v2"))
