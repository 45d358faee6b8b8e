"""Two instructions in one: what each reads is what was there before."""

import numpy as np
import pytest

from refcomp.emulator.generations.generation import GFX1100
from tests.emulator.snippets import get, instruction, make_waves, put, run, set_mask, undefined

LANE = np.arange(32)


def _waves(**registers):
    waves = make_waves(lanes=32)
    for name, value in registers.items():
        put(waves, int(name[1:]), np.full(32, value, np.uint32))
    return waves


@pytest.mark.parametrize(
    ("pair", "results"),
    [
        ("v_dual_mov_b32 v0, v2 :: v_dual_mov_b32 v1, v3", (30, 40)),
        ("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, 7", (20, 7)),
        ("v_dual_mov_b32 v0, 7 :: v_dual_mov_b32 v1, v0", (7, 10)),
        ("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0", (20, 10)),
        ("v_dual_add_nc_u32 v0, v1, v2 :: v_dual_and_b32 v1, 24, v0", (50, 8)),
    ],
)
def test_both_read_before_either_writes(pair, results):
    waves = run(_waves(v0=10, v1=20, v2=30, v3=40), pair, of=GFX1100)
    assert (get(waves, 0)[0], get(waves, 1)[0]) == results


def test_what_is_undefined_changes_places_too():
    waves = run(_waves(v0=10), "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0", of=GFX1100)
    assert undefined(waves, 0).all() and not undefined(waves, 1).any()
    assert get(waves, 1)[0] == 10


def test_only_active_lanes_change_places():
    waves = _waves(v0=10, v1=20)
    set_mask(waves, LANE < 5)
    run(waves, "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0", of=GFX1100)
    assert get(waves, 0).tolist() == [20] * 5 + [10] * 27
    assert get(waves, 1).tolist() == [10] * 5 + [20] * 27


def test_a_choice_reads_vcc():
    waves = _waves(v0=10, v1=20)
    run(
        waves,
        "s_mov_b32 vcc_lo, 0xf0",
        "v_dual_cndmask_b32 v2, v0, v1 :: v_dual_mov_b32 v3, 1",
        of=GFX1100,
    )
    assert get(waves, 2).tolist() == [20 if 4 <= n < 8 else 10 for n in range(32)]


def test_they_are_read_as_one_with_a_second():
    one = instruction("v_dual_mul_f32 v0, v1, v2 :: v_dual_mov_b32 v3, 1", GFX1100, 32)
    assert (one.mnemonic, one.printed) == ("v_mul_f32", "v_dual_mul_f32")
    assert one.second is not None
    assert (one.second.mnemonic, one.second.printed) == ("v_mov_b32", "v_dual_mov_b32")
    assert str(one).startswith("v_dual_mul_f32 v0, v1, v2 :: v_dual_mov_b32 v3, 1  (")
