"""RDNA3: its names for what other GPUs have, and what it has of its own."""

import numpy as np
import pytest

from refcomp.emulator.code.assembly import VCC
from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GFX1100
from refcomp.emulator.generations.gfx11 import IDLE, RENAMED
from refcomp.emulator.instructions.memory.loads_and_stores import transfer_of
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    get,
    instruction,
    make_waves,
    put,
    run,
    scalar,
    set_mask,
    set_scalar,
    undefined,
)

LANE = np.arange(32)


def _waves(*values, lanes=32, **more):
    waves = make_waves(lanes=lanes, **more)
    for number, value in enumerate(values):
        put(waves, number, np.full(lanes, value))
    return waves


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("global_load_b96", "global_load_dwordx3"),
        ("global_load_d16_hi_u8", "global_load_ubyte_d16_hi"),
        ("scratch_store_d16_hi_b16", "scratch_store_short_d16_hi"),
        ("flat_load_i16", "flat_load_sshort"),
        ("ds_load_2addr_stride64_b64", "ds_read2st64_b64"),
        ("ds_store_b8_d16_hi", "ds_write_b8_d16_hi"),
        ("global_atomic_min_i32", "global_atomic_smin"),
        ("global_atomic_max_u64", "global_atomic_umax_x2"),
        ("s_load_b512", "s_load_dwordx16"),
        ("v_add_nc_u16", "v_add_u16"),
        ("v_subrev_co_ci_u32", "v_subbrev_co_u32"),
        ("s_or_not0_saveexec_b32", "s_orn1_saveexec_b32"),
        ("v_dual_lshlrev_b32", "v_lshlrev_b32"),
    ],
)
def test_names(new, old):
    assert RENAMED[new] == old


def test_all_renamed_loads_and_stores_are_known():
    names = [to for to in RENAMED.values() if "_load_" in to or "_store_" in to]
    moved = [n for n in names if not n.startswith(("buffer_", "s_"))]
    assert len(moved) > 60 and all(transfer_of(name) for name in moved)


def test_halves_of_registers_stay():
    """On RDNA the upper half survives an instruction of 16 bits."""
    waves = _waves(np.uint32(0xABCD0000), np.uint32(5), np.uint32(7))
    run(waves, "v_add_nc_u16 v0, v1, v2", of=GFX1100)
    assert get(waves, 0)[0] == 0xABCD000C
    waves = _waves(np.uint32(0xABCD0000), np.float32(1.5))
    run(waves, "v_cvt_f16_f32_e32 v0, v1", of=GFX1100)
    assert get(waves, 0)[0] == 0xABCD3E00


def test_halves_of_registers_have_names():
    """As newer LLVMs print instructions of 16 bits."""
    waves = _waves(np.uint32(0), np.uint32(0x00050007), np.uint32(0x3C004000))
    run(waves, "v_add_nc_u16 v0.h, v1.l, v1.h", "v_mov_b16_e32 v0.l, v1.h", of=GFX1100)
    assert get(waves, 0)[0] == 0x000C0005
    run(waves, "v_fmac_f16_e32 v2.l, -v2.h, v2.h", "v_cvt_f32_f16_e32 v3, v2.l", of=GFX1100)
    assert get(waves, 2)[0] == 0x3C003C00 and get(waves, 3, "f32")[0] == 1
    run(waves, "v_cmp_eq_u16_e64 s4, 12, v0.h", of=GFX1100)
    assert scalar(waves, 4) == 0xFFFFFFFF


def test_nothing_is_read_of_null_and_nothing_kept():
    waves = _waves(np.uint32(0), np.uint32(3), np.uint32(5))
    set_scalar(waves, 4, 9)
    run(waves, "s_mov_b64 null, 0", "s_mov_b32 null, 77", "s_mov_b32 s6, m0", of=GFX1100)
    run(waves, "s_add_u32 s5, s4, null", of=GFX1100)
    run(waves, "v_mad_u64_u32 v[4:5], null, v1, v2, 2", "s_mov_b32 s7, null", of=GFX1100)
    assert scalar(waves, 5) == 9 and scalar(waves, 7) == 0 and (get(waves, 4) == 17).all()
    assert waves.shadow is not None and waves.shadow.s[6, 0] == 0xFFFFFFFF


@pytest.mark.parametrize("lanes", [32, 64])
def test_carries_are_as_wide_as_waves(lanes):
    """Wave64 is printed with the names of single registers, too."""
    waves = _waves(np.uint32(0xFFFFFFFF), lanes=lanes)
    put(waves, 1, (np.arange(lanes) % 2).astype(np.uint32))
    set_scalar(waves, VCC, 0, 2)
    set_scalar(waves, 4, 0x123, 2)
    run(waves, "v_add_co_u32 v2, s4, v0, v1", of=GFX1100)
    odd = 0xAAAAAAAA
    assert scalar(waves, 4) == odd and scalar(waves, 5) == (odd if lanes == 64 else 0)
    run(waves, "v_add_co_ci_u32_e64 v3, vcc_lo, 0, 0, s4", of=GFX1100)
    assert get(waves, 3).tolist() == [n % 2 for n in range(lanes)] and scalar(waves, VCC) == 0


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("v_minmax_u32 v3, v0, v1, v2", 10),
        ("v_maxmin_u32 v3, v0, v1, v2", 7),
        ("v_and_b16 v3, v0, v1", 8),
        ("v_not_b16_e32 v3, v0", 0xFFF3),
        ("v_cvt_u32_u16_e32 v3, v0", 12),
    ],
)
def test_rows(line, wanted):
    waves = _waves(np.uint32(12), np.uint32(10), np.uint32(7), np.uint32(0))
    assert (get(run(waves, line, of=GFX1100), 3) == wanted).all()


def test_rows_of_floats():
    waves = _waves(np.float32(3), np.float32(-2), np.float32(1))
    run(waves, "v_minmax_f32 v3, v0, v1, v2", "v_maxmin_f32 v4, v0, v1, v2", of=GFX1100)
    assert (get(waves, 3, "f32") == 1).all() and (get(waves, 4, "f32") == 1).all()
    run(waves, "v_cvt_pk_i16_f32 v5, v0, v1", of=GFX1100)
    assert (get(waves, 5) == 0xFFFE0003).all()


def test_scalar_rows():
    waves = make_waves(lanes=32, s0=0x11112222, s1=0x33334444)
    set_mask(waves, LANE < 8)
    run(waves, "s_pack_hl_b32_b16 s2, s0, s1", "s_and_not1_b32 s3, s0, 0xff", of=GFX1100)
    assert scalar(waves, 2) == 0x44441111 and scalar(waves, 3) == 0x11112200
    run(waves, "s_and_not1_saveexec_b32 s4, 0xf0f", of=GFX1100)
    assert scalar(waves, 4) == 0xFF and np.flatnonzero(waves.mask[0]).tolist() == [8, 9, 10, 11]


def test_an_exchange_if_equal_compares_with_its_last_operand():
    waves = _waves(np.uint32(0), np.uint32(11), np.uint32(5), shared=64)
    put(waves, 0, (LANE * 0).astype(np.uint32))
    set_mask(waves, LANE < 1)
    run(waves, "v_mov_b32_e32 v4, 5", "ds_store_b32 v0, v4", of=GFX1100)
    run(waves, "ds_cmpstore_rtn_b32 v5, v0, v1, v2", "ds_load_b32 v6, v0", of=GFX1100)
    assert get(waves, 5)[0] == 5 and get(waves, 6)[0] == 11


def test_lanes_reach_32_others_through_shared_memory():
    waves = make_waves(lanes=64, v0=np.uint32(4 * 35), v1=np.arange(64).astype(np.uint32))
    run(waves, "ds_bpermute_b32 v2, v0, v1", of=GFX1100)
    assert get(waves, 2).tolist() == [3] * 32 + [35] * 32
    assert not undefined(waves, 2).any()
    run(waves, "ds_permute_b32 v2, v0, v1", of=GFX1100)
    assert np.flatnonzero(get(waves, 2)).tolist() == [3, 35]
    assert get(waves, 2)[[3, 35]].tolist() == [31, 63]


def test_a_trap_asks_for_a_doorbell_first():
    waves = run(
        make_waves(lanes=32), "s_sendmsg_rtn_b32 s3, sendmsg(MSG_RTN_GET_DOORBELL)", of=GFX1100
    )
    assert scalar(waves, 3) == 0 and waves.shadow.s[3, 0] == 0
    line = "s_sendmsg_rtn_b32 s3, sendmsg(MSG_RTN_GET_REALTIME)"
    with pytest.raises(Unsupported, match="the emulator does not support this message"):
        bind(instruction(line, GFX1100, 32), GFX1100)


def test_what_only_waits_does_nothing():
    for line in ("s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)",):
        assert bind(instruction(line, GFX1100, 32), GFX1100) is None
    assert {"s_waitcnt_depctr", "buffer_gl0_inv", "s_version"} <= IDLE
