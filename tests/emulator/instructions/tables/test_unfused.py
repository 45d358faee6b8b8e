"""Multiply-adds that round twice and know no denormals."""

import numpy as np

from refcomp.emulator.generations.generation import GENERATIONS
from refcomp.emulator.instructions.tables.unfused import UNFUSED_F32, flushed, multiply_add
from tests.emulator.snippets import get, make_waves, put, run, undefined

_TINY = np.float32(2.0**-126)


def test_denormals_become_zeros_of_their_sign():
    values = np.array([_TINY, _TINY / 2, -_TINY / 2, 0, np.inf, np.nan], np.float32)
    found = flushed(values)
    np.testing.assert_array_equal(found, np.float32([_TINY, 0, -0.0, 0, np.inf, np.nan]))
    assert np.signbit(found).tolist() == [False, False, True, False, False, False]


def test_the_product_is_rounded():
    one = np.float32(1 + 2.0**-23)
    assert multiply_add(one, one, -one * one) == 0
    assert multiply_add(_TINY, np.float32(0.5), np.float32(0)) == 0
    assert multiply_add(_TINY / 2, np.float32(4), np.float32(1)) == 1
    assert multiply_add(_TINY, np.float32(1), np.float32(-1.5) * _TINY) == 0


def test_f16():
    waves = make_waves(v1=np.float16(1 + 2.0**-10), v2=np.float16(-1.0), v0=np.uint32(0xAAAA_0000))
    run(waves, "v_mad_f16 v0, v1, v1, v2")
    assert get(waves, 0)[0] == 0xAAAA_0000 | int(np.float16(2.0**-9).view(np.uint16))
    put(waves, 0, np.full(64, 0xBBBB_4200, np.uint32))
    put(waves, 3, np.full(64, 0xCCCC_0000, np.uint32))
    run(waves, "v_mac_f16_e32 v0, v2, v2", "v_madak_f16 v3, v0, v2, 0x4400")
    assert (get(waves, 0)[0], get(waves, 3)[0]) == (0xBBBB_4400, 0xCCCC_0000)
    run(waves, "v_madmk_f16 v4, v0, 0x4400, v2")
    assert undefined(waves, 4)[0] == 0xFFFF_0000
    assert get(waves, 0, "f16")[0] == 4.0 and get(waves, 3, "f16")[0] == 0.0


def test_only_gfx90a_has_those_of_f32():
    assert set(UNFUSED_F32) <= set(GENERATIONS["gfx90a"].vector)
    assert set(UNFUSED_F32).isdisjoint(GENERATIONS["gfx942"].vector)
    row = UNFUSED_F32["v_mad_legacy_f32"]
    with np.errstate(all="ignore"):
        found = row.function(np.float32([0, 2]), np.float32([np.inf, 3]), np.float32([1, 1]))
    assert found.tolist() == [1.0, 7.0]
    assert UNFUSED_F32["v_madmk_f32"].function(*np.float32([2, 3, 4])) == 10
