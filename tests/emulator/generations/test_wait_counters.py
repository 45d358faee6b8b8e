"""What instructions begin, touch and fill, and what waits wait for."""

import pytest

from refcomp.emulator.generations.wait_counters import (
    GFX9_COUNTERS,
    GFX11_COUNTERS,
    effect_of,
    register_name,
    waits_of,
)
from refcomp.emulator.machine.registers import FIRST_VECTOR
from tests.emulator.snippets import instruction


def _names(numbers):
    return " ".join(register_name(number) for number in sorted(numbers))


@pytest.mark.parametrize(
    ("line", "kind", "fills", "touches"),
    [
        ("global_load_dwordx2 v[4:5], v1, s[2:3] offset:8", "load", "v4 v5", "s2 s3 v1"),
        ("global_store_dwordx2 v1, v[4:5], s[2:3]", "store", "", "s2 s3 v1 v4 v5"),
        ("global_atomic_add v4, v1, v2, s[2:3] sc0", "load", "v4", "s2 s3 v1 v2"),
        ("global_atomic_add v1, v2, s[2:3]", "store", "", "s2 s3 v1 v2"),
        ("global_atomic_add_u32 v4, v1, v2, s[2:3] glc", "load", "v4", "s2 s3 v1 v2"),
        # That of a buffer is what is added, too.
        ("buffer_atomic_add v4, off, s[0:3], 0 glc", "load", "v4", "s0 s1 s2 s3 v4"),
        (
            "buffer_atomic_cmpswap v[4:5], v1, s[0:3], 0 sc0",
            "load",
            "v4 v5",
            "s0 s1 s2 s3 v1 v4 v5",
        ),
        ("buffer_atomic_add v4, off, s[0:3], 0", "store", "", "s0 s1 s2 s3 v4"),
        ("scratch_load_dword v1, off, s32 offset:4", "load", "v1", "s32"),
        ("buffer_load_dword v1, off, s[0:3], 0 offset:4", "load", "v1", "s0 s1 s2 s3"),
        ("global_load_lds_dword v1, s[2:3] offset:16", "direct load", "", "s2 s3 v1"),
        ("buffer_load_dword v1, s[0:3], s4 offen lds", "direct load", "", "s0 s1 s2 s3 s4 v1"),
        ("buffer_inv sc1", "store", "", ""),
        ("buffer_wbl2 sc1", "store", "", ""),
        ("buffer_gl0_inv", "", "", ""),
        ("buffer_wbinvl1_vol", "", "", ""),
        ("flat_load_dword v1, v[2:3]", "flat load", "v1", "v2 v3"),
        ("flat_store_dword v[2:3], v1", "flat store", "", "v1 v2 v3"),
        ("ds_read2_b32 v[8:9], v2 offset0:1 offset1:2", "shared", "v8 v9", "v2"),
        ("ds_write_b32 v1, v2", "shared", "", "v1 v2"),
        ("ds_add_u32 v1, v2", "shared", "", "v1 v2"),
        ("ds_add_rtn_u32 v3, v1, v2", "shared", "v3", "v1 v2"),
        ("ds_bpermute_b32 v3, v1, v2", "shared", "v3", "v1 v2"),
        ("ds_load_b64 v[2:3], v1", "shared", "v2 v3", "v1"),
        ("s_load_dwordx2 s[4:5], s[0:1], 0x10", "scalar", "s4 s5", "s0 s1"),
        ("s_load_b64 vcc, s[0:1], 0x10", "scalar", "vcc_lo vcc_hi", "s0 s1"),
        ("s_memtime s[4:5]", "scalar", "s4 s5", ""),
        ("s_dcache_inv", "scalar", "", ""),
        ("s_sendmsg sendmsg(MSG_INTERRUPT)", "message", "", ""),
        ("v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]", "", "", "v0 v1 a0 a1 a2 a3"),
        ("v_dual_mov_b32 v14, v2 :: v_dual_add_f32 v13, s5, v7", "", "", "s5 v2 v7 v13 v14"),
        ("v_div_fmas_f32 v0, v1, v2, v3", "", "", "vcc_lo vcc_hi v0 v1 v2 v3"),
        (
            "v_dual_cndmask_b32 v0, v1, v2 :: v_dual_mov_b32 v3, v4",
            *("", "", "vcc_lo vcc_hi v0 v1 v2 v3 v4"),
        ),
    ],
)
def test_effects(line, kind, fills, touches):
    effect = effect_of(instruction(line))
    assert (effect.kind or "", _names(effect.fills)) == (kind, fills)
    assert _names(effect.touches) == touches
    assert FIRST_VECTOR not in effect.fills or "v0" in fills


def test_what_waits_wait_for():
    assert waits_of(instruction("s_waitcnt vmcnt(2) lgkmcnt(0)")) == {"vmcnt": 2, "lgkmcnt": 0}
    assert waits_of(instruction("s_waitcnt_vscnt null, 0x3")) == {"vscnt": 3}
    assert waits_of(instruction("s_waitcnt_depctr 0xfffe")) == {}
    assert waits_of(instruction("s_barrier")) == {}


def test_a_counter_at_its_end_waits_for_nothing():
    assert GFX9_COUNTERS.maxima == {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7}
    assert GFX11_COUNTERS.maxima == {"vmcnt": 63, "vscnt": 63, "lgkmcnt": 63, "expcnt": 7}


def test_counters_of_gpus():
    """Only a wait for all says that what may be done in any order is done."""
    assert GFX9_COUNTERS.queues("store") == (("vmcnt", True),)
    assert GFX11_COUNTERS.queues("store") == (("vscnt", True),)
    assert GFX9_COUNTERS.queues("scalar") == (("lgkmcnt", False),)
    assert GFX9_COUNTERS.queues("flat load") == (("vmcnt", False), ("lgkmcnt", False))
    assert GFX11_COUNTERS.queues("flat load") == (("vmcnt", True), ("lgkmcnt", True))
    assert set(GFX11_COUNTERS.all_queues()) == {
        *(("vmcnt", True), ("vscnt", True), ("lgkmcnt", True), ("lgkmcnt", False)),
    }
