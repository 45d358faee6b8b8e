"""Vector instructions bound to operands: parts of registers, masks, what is not known."""

import numpy as np
import pytest

from refcomp.emulator.execution.program import bind
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    LANE,
    get,
    instruction,
    make_waves,
    put,
    run,
    scalar,
    set_mask,
    undefined,
)


def _sdwa(place, unused):
    waves = make_waves(v0=np.uint32(0x11223344), v1=np.uint32(0xFF80))
    run(waves, f"v_mov_b32_sdwa v0, v1 dst_sel:{place} dst_unused:{unused} src0_sel:BYTE_0")
    return get(waves, 0)[0]


def test_results_may_go_to_a_part():
    assert _sdwa("BYTE_1", "UNUSED_PAD") == 0x8000
    assert _sdwa("BYTE_1", "UNUSED_PRESERVE") == 0x11228044
    assert _sdwa("WORD_1", "UNUSED_PRESERVE") == 0x00803344
    assert _sdwa("BYTE_1", "UNUSED_SEXT") == 0xFFFF8000


def test_a_part_leaves_the_other_bits_undefined():
    waves = make_waves(v1=np.uint32(0))
    line = "v_mov_b32_sdwa v0, v1 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD"
    run(waves, line)
    assert undefined(waves, 0)[0] == 0xFFFF0000


def test_masks_hold_active_lanes_only():
    waves = make_waves()
    set_mask(waves, LANE % 2 == 0)
    run(waves, "v_cmp_eq_u32_e64 s[4:5], 0, 0")
    assert scalar(waves, 4, "u64") == 0x5555555555555555


def test_undefined_lanes_make_undefined_bits_of_masks():
    waves = make_waves()
    set_mask(waves, LANE < 4)
    put(waves, 1, np.zeros(64, np.uint32))
    run(waves, "v_cmp_eq_u32_e64 s[4:5], v1, v9")
    assert waves.shadow.s[4, 0] == 0xF and waves.shadow.s[5, 0] == 0


def test_a_source_may_be_the_result():
    waves = make_waves(v0=np.uint64(3))
    run(waves, "v_lshlrev_b64 v[0:1], 33, v[0:1]")
    assert get(waves, 0, "u64")[0] == 3 << 33


@pytest.mark.parametrize("is_whole", [True, False])
def test_results_of_all_lanes_are_computed_in_place(is_whole):
    """Also where sources are of one value for a wave, or a number; never beside active lanes."""
    waves = make_waves(3, v1=LANE.astype(np.uint32), s4=7)
    assert waves.writes_all
    if not is_whole:
        set_mask(waves, LANE % 2 == 0)
        waves.select(np.array([0, 2]))
    assert waves.writes_all == is_whole
    run(waves, "v_mov_b32_e32 v2, s4", "v_or_b32_e32 v3, 1, v1", "v_and_b32_e32 v1, v1, v2")
    for wave in (0, 2) if not is_whole else range(3):
        where = LANE if is_whole else LANE[::2]
        assert get(waves, 2, wave=wave)[where].tolist() == [7] * len(where)
        assert get(waves, 3, wave=wave)[where].tolist() == (where | 1).tolist()
        assert get(waves, 1, wave=wave)[where].tolist() == (where & 7).tolist()
        assert not undefined(waves, 3)[where].any()
    if not is_whole:
        assert get(waves, 1)[1::2].tolist() == LANE[1::2].tolist()
        assert get(waves, 1, wave=1).tolist() == LANE.tolist()
        assert undefined(waves, 3)[1::2].all()


def test_packed_instructions_choose_halves():
    waves = make_waves()
    put(waves, 1, np.full(64, 0x40003C00, np.uint32))  # 1 and 2
    run(waves, "v_pk_add_f16 v0, v1, v1 op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[0,1]")
    assert get(waves, 0).view(np.float16)[:2].tolist() == [-1.0, 3.0]
    put(waves, 4, np.array([2.0, 0] * 32, np.float32))
    put(waves, 5, np.full(64, 5.0, np.float32))
    run(waves, "v_pk_fma_f32 v[6:7], v[4:5], v[4:5], 1.0 op_sel_hi:[0,1,1]")
    assert (get(waves, 6, "f32")[0], get(waves, 7, "f32")[0]) == (5.0, 11.0)
    run(waves, "v_pk_mul_lo_u16 v0, v1, 3")
    assert get(waves, 0)[0] == 0x3C00 * 3 & 0xFFFF


def test_a_clamp_that_is_not_known_is_refused():
    with pytest.raises(Unsupported, match="does not support clamp of v_mul_lo_u32"):
        bind(instruction("v_mul_lo_u32 v0, v1, v2 clamp"))
    with pytest.raises(Unsupported, match="3 sources of v_add_f32, which has 2"):
        bind(instruction("v_add_f32 v0, v1, v2, v3"))
