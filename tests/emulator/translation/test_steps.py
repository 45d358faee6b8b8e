"""Steps: sources and results of instructions, and what has no step."""

import numpy as np
import pytest

from refcomp.emulator.code.assembly import EXEC, IEEE_MODE, VCC
from refcomp.emulator.generations.generation import GFX942, GFX1100
from refcomp.emulator.machine.registers import FIRST_VECTOR, SCC
from refcomp.emulator.translation.steps import HostStep, Piece, SourceValue, decode
from tests.emulator.snippets import instruction

V = FIRST_VECTOR


def _step(line: str, of=GFX942, lanes: int = 64) -> HostStep:
    step = decode(instruction(line, of, lanes), of)
    assert step is not None, line
    return step


def test_sources_and_results_are_registers_of_their_kinds():
    step = _step("v_mad_u64_u32 v[4:5], s[8:9], v1, -2, v[2:3]")
    (one,) = step.computations
    assert [source.kind for source in one.sources] == ["u32", "u32", "u64"]
    assert one.sources[1] == SourceValue("u32", None, 0xFFFFFFFE)
    assert step.reads == {V + 1, V + 2, V + 3}
    assert step.writes == {V + 4, V + 5, 8, 9}


def test_implicit_sources_are_read():
    assert _step("v_fmac_f32_e32 v0, v1, v2").reads == {V, V + 1, V + 2}
    assert _step("s_addc_u32 s0, s1, s2").reads == {1, 2, SCC}
    assert _step("s_addc_u32 s0, s1, s2").writes == {0, SCC}


def test_signs_are_kept():
    (one,) = _step("v_add_f32_e64 v0, -v1, |v2|").computations
    assert one.sources == (
        SourceValue("f32", V + 1, is_negative=True),
        SourceValue("f32", V + 2, is_absolute=True),
    )


def test_packed_instructions_have_a_computation_for_each_half():
    step = _step("v_pk_mul_f32 v[0:1], v[2:3], s[4:5] op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[1,0]")
    low, high = step.computations
    assert low.sources == (SourceValue("f32", V + 3, is_negative=True), SourceValue("f32", 4))
    assert high.sources == (SourceValue("f32", V + 2), SourceValue("f32", 5))
    assert step.writes == {V, V + 1}


def test_both_halves_of_a_pair_read_first():
    step = _step("v_dual_mov_b32 v0, v1 :: v_dual_cndmask_b32 v1, v0, v2", GFX1100, 32)
    assert [one.mnemonic for one in step.computations] == ["v_mov_b32", "v_cndmask_b32"]
    assert step.reads == {V, V + 1, V + 2, VCC}


def test_accumulators_are_vector_registers():
    assert _step("v_accvgpr_read_b32 v0, a3").reads == {V + 256 + 3}


def test_constants_of_16_bits_are_extended():
    (one,) = _step("s_addk_i32 s0, 0xfffe").computations
    assert np.int32(one.sources[0].bits - (1 << 32)) == -2


def test_accesses_have_pieces():
    access = _step("ds_read2st64_b64 v[0:3], v9 offset0:1 offset1:2").access
    assert access is not None and access.is_shared and not access.is_store
    assert access.pieces == (Piece(512, V, 2), Piece(1024, V + 2, 2))
    access = _step("global_store_short v1, v2, s[4:5] offset:-6").access
    assert access is not None and access.is_store
    assert access.base == SourceValue("u64", 4)
    assert access.pieces == (Piece(-6, V + 2, 1, 2),)
    assert _step("global_load_sbyte v0, v[2:3], off").access.pieces[0].is_signed


def test_scalar_loads_have_an_offset_of_either_kind():
    load = _step("s_load_dwordx2 s[4:5], s[0:1], 0x10").load
    assert load is not None and (load.offset, load.first, load.count) == (16, 4, 2)
    load = _step("s_load_dword s4, s[0:1], s7").load
    assert load is not None and load.more == SourceValue("u32", 7)


@pytest.mark.parametrize(
    "line",
    [
        "v_exp_f32_e32 v0, v1",
        "v_add_f32_e64 v0, v1, v2 clamp",
        "v_add_u32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:DWORD",
        "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        "s_mov_b64 exec, s[0:1]",
        "s_and_saveexec_b64 s[0:1], vcc",
        "global_atomic_add v0, v1, s[0:1]",
        "global_load_short_d16 v0, v1, s[0:1]",
        "v_pk_add_f16 v0, v1, v2",
        "s_mov_b64 s[127:128], 0",
    ],
)
def test_the_interpreter_keeps_what_has_no_step(line):
    assert decode(instruction(line), GFX942) is None


def test_other_modes_have_no_step():
    found = instruction("v_add_f32_e32 v0, v1, v2")
    assert decode(found, GFX942) is not None
    object.__setattr__(found, "mode", IEEE_MODE ^ 1)
    assert decode(found, GFX942) is None


def test_exec_is_a_source():
    assert _step("s_and_b64 s[0:1], exec, vcc").reads == {EXEC, EXEC + 1, VCC, VCC + 1}
