"""Exchange among lanes through vector registers alone."""

import numpy as np
import pytest

from refcomp.emulator.execution.program import bind
from refcomp.emulator.generations.generation import GFX1100
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    found,
    get,
    instruction,
    make_waves,
    run,
    set_mask,
    set_scalar,
    undefined,
)

LANE = np.arange(32)
# Lane n of a row reads lane 15 - n of the row that is meant.
_TURNED = (0x89ABCDEF, 0x01234567)


def _waves(active=None, lanes=32):
    waves = make_waves(
        lanes=lanes, v0=np.full(lanes, 7, np.uint32), v1=(np.arange(lanes) + 100).astype(np.uint32)
    )
    set_mask(waves, np.ones(lanes) if active is None else active)
    for number, value in enumerate(_TURNED):
        set_scalar(waves, 2 + number, value)
    return waves


def test_lanes_of_the_own_row_and_of_the_other():
    waves = run(_waves(), "v_permlane16_b32 v0, v1, s2, s3", of=GFX1100)
    assert get(waves, 0).tolist() == [n // 16 * 16 + 15 - n % 16 + 100 for n in range(32)]
    waves = run(_waves(), "v_permlanex16_b32 v0, v1, s2, s3", of=GFX1100)
    assert get(waves, 0).tolist() == [131 - n for n in range(32)]


@pytest.mark.parametrize(("flags", "off"), [("", 7), (" op_sel:[0,1]", 0), (" op_sel:[1,0]", 116)])
def test_lanes_that_are_off(flags, off):
    """Lane 15 reads lane 16, which is off."""
    waves = _waves(active=LANE < 16)
    run(waves, f"v_permlanex16_b32 v0, v1, s2, s3{flags}", of=GFX1100)
    assert get(waves, 0)[15] == off and (get(waves, 0)[16:] == 7).all()


def test_constants_choose_too():
    waves = run(_waves(), "v_permlanex16_b32 v0, v1, -1, -1", of=GFX1100)
    assert get(waves, 0).tolist() == [131] * 16 + [115] * 16


def test_halves_of_a_wide_wave_change_places():
    waves = run(_waves(lanes=64), "v_permlane64_b32 v0, v1", of=GFX1100)
    assert get(waves, 0).tolist() == [(n + 32) % 64 + 100 for n in range(64)]
    waves = run(_waves(), "v_permlane64_b32 v0, v1", of=GFX1100)
    assert get(waves, 0).tolist() == [n + 100 for n in range(32)]


def test_what_is_undefined_moves_along():
    waves = _waves()
    set_mask(waves, LANE < 16)
    run(waves, "v_mov_b32_e32 v5, v1", of=GFX1100)
    set_mask(waves, LANE < 32)
    run(waves, "v_permlanex16_b32 v0, v5, s2, s3", of=GFX1100)
    assert undefined(waves, 0)[:16].all() and not undefined(waves, 0)[16:].any()


def test_a_choice_that_is_undefined_is_told_of():
    waves = run(_waves(), "v_permlane16_b32 v0, v1, s2, s9", of=GFX1100)
    assert [one.what for one in found(waves)] == [
        "which lane is read depends on bits that nothing wrote"
    ]


def test_other_operands_are_refused():
    with pytest.raises(Unsupported, match="does not support such a source of a lane permutation"):
        bind(instruction("v_permlane16_b32 v0, s1, s2, s3", GFX1100, 32), GFX1100)
