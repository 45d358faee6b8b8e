"""Comparisons that choose which lanes run on."""

import numpy as np
import pytest

from refcomp.emulator.code.assembly import EXEC, VCC
from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GFX1100, VECTOR
from refcomp.emulator.instructions.vector.comparisons import bind_choice
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    LANE,
    found,
    instruction,
    make_waves,
    put,
    run,
    scalar,
    set_mask,
    set_scalar,
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


@pytest.mark.parametrize("lanes", [32, 64])
def test_exec_alone_is_the_result(lanes):
    waves = make_waves(lanes=lanes, v1=np.arange(lanes).astype(np.uint32))
    set_scalar(waves, VCC, 5, 2)
    run(waves, "v_cmpx_gt_u32_e64 20, v1", of=GFX1100)
    assert waves.mask[0].tolist() == [n < 20 for n in range(lanes)]
    assert scalar(waves, VCC) == 5 and scalar(waves, EXEC) == (1 << 20) - 1


def test_lanes_that_are_off_stay_off_in_exec():
    waves = make_waves(lanes=32, v1=np.arange(32).astype(np.uint32))
    set_mask(waves, np.arange(32) >= 8)
    run(waves, "v_cmpx_gt_i32_e32 10, v1", of=GFX1100)
    assert np.flatnonzero(waves.mask[0]).tolist() == [8, 9]


def test_floats_and_classes_write_exec():
    waves = make_waves(lanes=32)
    values = np.where(np.arange(32) < 4, np.nan, -1).astype(np.float32)
    put(waves, 1, values)
    run(waves, "v_cmpx_neq_f32_e64 |v1|, 1.0", of=GFX1100)
    assert np.flatnonzero(waves.mask[0]).tolist() == [0, 1, 2, 3]
    run(waves, "v_cmpx_class_f32_e64 v1, 4", of=GFX1100)
    assert not waves.mask.any()


def test_an_undefined_exec_is_reported_once():
    waves = make_waves(lanes=32)
    run(waves, "v_cmpx_eq_u32_e32 0, v5", of=GFX1100)
    assert [one.what for one in found(waves)] == [
        "which lanes run depends on bits that nothing wrote"
    ]
    assert EXEC not in waves.dirty


def test_other_lanes_are_refused():
    line = "v_cmpx_eq_u32_e64_dpp v0, v1 row_share:1 row_mask:0xf bank_mask:0xf"
    with pytest.raises(Unsupported, match="does not support DPP of a comparison that writes EXEC"):
        bind(instruction(line, GFX1100, 32), GFX1100)
