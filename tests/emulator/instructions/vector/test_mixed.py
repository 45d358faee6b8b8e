"""Operands whose types stand in modifiers."""

import numpy as np

from refcomp.emulator.instructions.small_floats import from_bytes
from refcomp.emulator.instructions.vector.mixed import without
from tests.emulator.snippets import get, instruction, make_waves, put, run, two_halves, undefined


def _waves():
    """v1 has halves 2 and 3, v2 is 5, v3 is -7; v0 is 0xAAAABBBB."""
    waves = make_waves(
        v1=two_halves(2.0, 3.0),
        v2=np.float32(5.0),
        v3=np.float32(-7.0),
        v0=np.uint32(0xAAAABBBB),
    )
    return waves


def _mixed(line):
    return get(run(_waves(), line), 0, "f32")[0]


def test_each_operand_is_single_or_half():
    assert _mixed("v_fma_mix_f32 v0, v2, v2, v3") == 18.0
    assert _mixed("v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,0]") == 3.0
    assert _mixed("v_fma_mix_f32 v0, v1, -v1, |v3| op_sel:[1,0,0] op_sel_hi:[1,1,0]") == 1.0
    assert _mixed("v_fma_mix_f32 v0, v1, 1.0, v3 op_sel_hi:[1,0,0]") == -5.0
    assert _mixed("v_fma_mix_f32 v0, v2, v2, v3 clamp") == 1.0


def test_results_go_to_a_half():
    waves = run(_waves(), "v_fma_mixlo_f16 v0, v1, v2, v3 op_sel_hi:[1,0,0]")
    assert get(waves, 0)[0] == 0xAAAA0000 | int(np.float16(3).view(np.uint16))
    waves = run(_waves(), "v_fma_mixhi_f16 v0, v2, v2, v1 op_sel:[0,0,1] op_sel_hi:[0,0,1]")
    assert get(waves, 0)[0] == int(np.float16(28).view(np.uint16)) << 16 | 0xBBBB


def test_the_sum_is_rounded_to_single_before_it_is_to_half():
    """1 + 2**-11 + 2**-30 is no tie, but becomes one as an f32, whose tie goes to 1."""
    waves = _waves()
    put(waves, 2, np.full(64, 2.0**-30, np.float32))
    put(waves, 3, np.full(64, 1 + 2.0**-11, np.float32))
    run(waves, "v_fma_mixlo_f16 v0, v2, 1.0, v3")
    assert get(waves, 0)[0] & 0xFFFF == np.float16(1).view(np.uint16)


def test_chance_may_round_to_any_byte():
    for number, flags in enumerate(("0,0,0,0", "0,0,1,0", "0,0,0,1", "0,0,1,1")):
        waves = _waves()
        put(waves, 4, np.arange(64, dtype=np.uint32) << np.uint32(26))
        put(waves, 2, np.full(64, 1.0625 / 2, np.float32))  # half of the way from 0.5 on
        run(waves, f"v_cvt_sr_fp8_f32 v0, v2, v4 op_sel:[{flags}]")
        found = get(waves, 0) >> np.uint32(8 * number) & np.uint32(255)
        assert from_bytes(found, "fp8").tolist() == [0.5] * 32 + [0.5625] * 32
        rest = ~np.uint32(0xFF << 8 * number)
        assert (get(waves, 0) & rest == np.uint32(0xAAAABBBB) & rest).all()


def test_pairs_are_put_together():
    waves = make_waves()
    for number in (3, 4):
        put(waves, number, np.full(64, number, np.uint32))
    run(waves, "v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]")
    assert (get(waves, 0)[0], get(waves, 1)[0]) == (3, 4)
    assert not undefined(waves, 0).any() and not undefined(waves, 1).any()
    run(waves, "v_pk_mov_b32 v[0:1], 7, v[4:5] op_sel:[0,1]")
    assert get(waves, 0)[0] == 7 and undefined(waves, 1).all() and not undefined(waves, 0).any()


def test_modifiers_are_dropped():
    one = instruction("v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0] clamp")
    assert without(one, "op_sel", dst_sel="WORD_1").modifiers == {"clamp": "", "dst_sel": "WORD_1"}
