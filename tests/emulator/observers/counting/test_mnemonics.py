"""Classes of instructions by their names, and how many multiply-adds they do."""

from collections import defaultdict

import pytest

from refcomp.emulator.code.assembly import read_assembly
from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.ledger import read_ledger
from refcomp.emulator.observers.counting.mnemonics import (
    FMA,
    MFMA,
    SALU,
    UNKNOWN,
    VALU,
    class_of,
    fmas_of_lane,
    fmas_of_wave,
    matrix_dtype,
)


def _instruction(text):
    return read_assembly(f"\t{text}  // 000000000000: 00000000").instruction(0)


@pytest.mark.parametrize(
    ("kind", "mnemonics"),
    [
        (
            "VALU FMA",
            "v_fma_f32 v_pk_fma_f32 v_fmac_f64 v_dot4_i32_i8 v_mac_f32 v_dual_dot2acc_f32_f16",
        ),
        ("VALU FMA", "v_fma_mixlo_f16 v_dot2acc_f32_f16 v_fma_dx9_zero_f32 v_fmac_legacy_f32"),
        ("MFMA", "v_mfma_f32_32x32x8_f16 v_wmma_f32_16x16x16_f16 v_smfmac_f32_16x16x32_f16"),
        ("other VALU", "v_add_f32 v_mad_u64_u32 v_mad_u32_u24 v_mul_f32 v_mov_b32 v_cmp_lt_i32"),
        ("SALU", "s_add_u32 s_and_saveexec_b64 s_mov_b32 s_cmp_lt_i32 s_getpc_b64"),
        ("LDS", "ds_read_b128 ds_add_rtn_f32 ds_bpermute_b32 lds_direct_load"),
        (
            "global memory",
            "global_load_dwordx4 flat_store_dword global_atomic_add buffer_load_dword",
        ),
        ("scratch", "scratch_load_dword"),
        ("scalar memory", "s_load_dwordx2 s_buffer_load_dword s_dcache_inv s_memrealtime"),
        ("branch", "s_branch s_cbranch_execz s_endpgm s_setpc_b64"),
        ("wait", "s_waitcnt s_barrier s_nop buffer_wbl2 buffer_inv s_waitcnt_vscnt s_delay_alu"),
        ("wait", "s_setprio s_sendmsg s_icache_inv s_set_inst_prefetch_distance s_code_end"),
        ("not known here", "exp export nonsense"),
    ],
)
def test_each_instruction_has_a_class(kind, mnemonics):
    assert {class_of(name) for name in mnemonics.split()} == {kind}


@pytest.mark.parametrize("gpu", GENERATIONS)
def test_the_class_of_each_instruction_that_is_emulated_is_known(gpu):
    found = defaultdict(set)
    for entry in read_ledger(GENERATIONS[gpu]):
        found[class_of(entry.mnemonic)].add(entry.mnemonic)
    assert UNKNOWN not in found and len(found) > 8
    # Beside these nothing of vectors and scalars has a class for want of another.
    assert all(name.startswith("v_") for kind in (FMA, VALU, MFMA) for name in found[kind])
    assert all(name.startswith("s_") for name in found[SALU])


def test_a_buffer_access_to_private_memory_is_scratch():
    assert class_of("buffer_load_dword", "private") == "scratch"
    assert class_of("buffer_load_dword", "global") == "global memory"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("v_fma_f32 v0, v1, v2, v3", 1),
        ("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[0:1]", 2),
        ("v_dot4_i32_i8 v0, v1, v2, v3", 4),
        ("v_dot2c_f32_f16 v0, v1, v2", 2),
        ("v_dot2acc_f32_f16 v0, v1, v2", 2),
        ("v_dual_dot2acc_f32_f16 v0, v1, v2 :: v_dual_fmac_f32 v3, v4, v5", 3),
        ("v_dual_mul_f32 v0, v1, v2 :: v_dual_dot2acc_f32_f16 v3, v4, v5", 2),
        ("v_dual_fmac_f32 v0, v1, v2 :: v_dual_fmac_f32 v3, v4, v5", 2),
        ("v_dual_mul_f32 v0, v1, v2 :: v_dual_fmac_f32 v3, v4, v5", 1),
        ("v_mad_u32_u24 v0, v1, v2, v3", 0),
        ("v_mul_f32 v0, v1, v2", 0),
    ],
)
def test_multiply_adds_of_a_lane(text, count):
    assert fmas_of_lane(_instruction(text)) == count


@pytest.mark.parametrize(
    ("text", "count", "dtype"),
    [
        ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 32 * 32 * 8, "f16"),
        ("v_mfma_f32_16x16x16_bf16 a[0:3], v[0:1], v[2:3], a[0:3]", 16 * 16 * 16, "bf16"),
        ("v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v1, a[0:31]", 32 * 32 * 1 * 2, "f32"),
        # The names on gfx90a, which tell no blocks.
        ("v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]", 32 * 32 * 1 * 2, "f32"),
        ("v_mfma_f32_16x16x1f32 a[0:15], v0, v1, a[0:15]", 16 * 16 * 1 * 4, "f32"),
        ("v_mfma_f32_4x4x4f16 a[0:3], v[0:1], v[2:3], a[0:3]", 4 * 4 * 4 * 16, "f16"),
        ("v_mfma_f32_16x16x4bf16_1k a[0:15], v[0:1], v[2:3], a[0:15]", 16 * 16 * 4 * 4, "bf16"),
        ("v_mfma_f64_4x4x4f64 a[0:1], v[0:1], v[2:3], a[0:1]", 4 * 4 * 4 * 4, "f64"),
        ("v_wmma_i32_16x16x16_iu4 v[0:7], v[8:9], v[10:11], v[0:7]", 16**3, "i4"),
        ("v_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], v[0:7]", 16**3, "i8"),
        ("v_mfma_f64_16x16x4f64 a[0:7], v[0:1], v[2:3], a[0:7]", 16 * 16 * 4, "f64"),
        ("v_mfma_i32_32x32x16_i8 a[0:15], v[0:1], v[2:3], a[0:15]", 32 * 32 * 16, "i8"),
        ("v_mfma_f32_16x16x32_fp8_fp8 a[0:3], v[0:1], v[2:3], a[0:3]", 16 * 16 * 32, "fp8"),
        ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", 16**3, "f16"),
    ],
)
def test_multiply_adds_of_a_matrix_instruction(text, count, dtype):
    instruction = _instruction(text)
    assert fmas_of_wave(instruction) == count
    assert matrix_dtype(instruction.mnemonic) == dtype
    assert fmas_of_lane(instruction) == 0


def test_other_instructions_multiply_no_matrices():
    assert fmas_of_wave(_instruction("v_fma_f32 v0, v1, v2, v3")) == 0
