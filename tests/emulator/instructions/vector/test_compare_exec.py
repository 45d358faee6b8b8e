"""Comparisons that write EXEC."""

import numpy as np
import pytest

from refcomp.emulator.code.assembly import EXEC, VCC
from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GFX1100
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    found,
    instruction,
    make_waves,
    put,
    run,
    scalar,
    set_mask,
    set_scalar,
)


@pytest.mark.parametrize("lanes", [32, 64])
def test_exec_is_what_compares(lanes):
    waves = make_waves(lanes=lanes, v1=np.arange(lanes).astype(np.uint32))
    set_scalar(waves, VCC, 5, 2)
    run(waves, "v_cmpx_gt_u32_e64 20, v1", of=GFX1100)
    assert waves.mask[0].tolist() == [n < 20 for n in range(lanes)]
    assert scalar(waves, VCC) == 5 and scalar(waves, EXEC) == (1 << 20) - 1


def test_lanes_that_are_off_stay_off():
    waves = make_waves(lanes=32, v1=np.arange(32).astype(np.uint32))
    set_mask(waves, np.arange(32) >= 8)
    run(waves, "v_cmpx_gt_i32_e32 10, v1", of=GFX1100)
    assert np.flatnonzero(waves.mask[0]).tolist() == [8, 9]


def test_floats_and_classes():
    waves = make_waves(lanes=32)
    values = np.where(np.arange(32) < 4, np.nan, -1).astype(np.float32)
    put(waves, 1, values)
    run(waves, "v_cmpx_neq_f32_e64 |v1|, 1.0", of=GFX1100)
    assert np.flatnonzero(waves.mask[0]).tolist() == [0, 1, 2, 3]
    run(waves, "v_cmpx_class_f32_e64 v1, 4", of=GFX1100)
    assert not waves.mask.any()


def test_an_undefined_mask_is_told_of_once():
    waves = make_waves(lanes=32)
    run(waves, "v_cmpx_eq_u32_e32 0, v5", of=GFX1100)
    assert [one.what for one in found(waves)] == [
        "which lanes run depends on bits that nothing wrote"
    ]
    assert EXEC not in waves.dirty


def test_other_lanes_are_refused():
    line = "v_cmpx_eq_u32_e64_dpp v0, v1 row_share:1 row_mask:0xf bank_mask:0xf"
    with pytest.raises(Unsupported, match="this exchange among lanes is not known"):
        bind(instruction(line, GFX1100, 32), GFX1100)
