"""Comparisons that choose which lanes run on."""

import numpy as np

from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.generations.generation import VECTOR
from refcomp.emulator.instructions.vector.comparisons import bind_choice
from tests.emulator.snippets import (
    LANE,
    found,
    instruction,
    make_waves,
    put,
    run,
    scalar,
    set_mask,
    undefined,
)


def test_lanes_are_chosen():
    waves = make_waves(v0=LANE.astype(np.uint32))
    set_mask(waves, LANE >= 2)
    run(waves, "v_cmpx_gt_u32_e32 vcc, 8, v0")
    assert scalar(waves, 106, "u64") == 0xFC and waves.mask[0].tolist() == [
        2 <= n < 8 for n in range(64)
    ]
    put(waves, 2, np.where(LANE == 3, np.nan, 1.0))
    run(waves, "v_cmpx_neq_f64_e64 s[4:5], v[2:3], v[2:3]", "v_mov_b32_e32 v5, 1")
    assert scalar(waves, 4, "u64") == 8 == scalar(waves, 126, "u64")
    assert np.flatnonzero(undefined(waves, 5) == 0).tolist() == [3]
    run(waves, "v_cmpx_class_f32_e64 s[4:5], v1, 1")
    assert found(waves)[0].kind == UNDEFINED
    assert found(waves)[0].what == "which lanes run depends on bits that nothing wrote"


def test_other_instructions_are_none():
    assert bind_choice(instruction("v_cmp_lt_f32_e32 vcc, v0, v1"), VECTOR) is None
    assert bind_choice(instruction("v_cmpx_lt_f99_e32 vcc, v0, v1"), VECTOR) is None
