"""Lanes that read each other's registers."""

from dataclasses import replace

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
    set_scalar,
    undefined,
)


def _waves():
    waves = make_waves(v1=(LANE * 10).astype(np.uint32))
    return waves


def test_lanes_send_what_they_have():
    waves = _waves()
    put(waves, 2, ((LANE + 1) * 4).astype(np.uint32))
    run(waves, "ds_permute_b32 v3, v2, v1")
    assert get(waves, 3).tolist() == [630, *(n * 10 for n in range(63))]
    # Lanes that are off neither send nor get; the highest of two wins.
    put(waves, 2, np.full(64, 8, np.uint32))
    put(waves, 3, np.full(64, 7, np.uint32))
    set_mask(waves, (LANE > 1) & (LANE < 6))
    run(waves, "ds_permute_b32 v3, v2, v1 offset:4")
    assert get(waves, 3)[:7].tolist() == [7, 7, 0, 50, 0, 0, 7]
    assert not undefined(waves, 3).any()
    run(waves, "ds_permute_b32 v3, v2, v5")
    assert undefined(waves, 3)[:7].tolist() == [0, 0, 0xFFFFFFFF, 0, 0, 0, 0]


def test_single_lanes():
    waves = _waves()
    set_mask(waves, LANE >= 7)
    set_scalar(waves, 4, 3)
    run(waves, "v_readlane_b32 s0, v1, s4", "v_readlane_b32 s1, v1, 63")
    run(waves, "v_readfirstlane_b32 s2, v1", "v_writelane_b32 v1, s4, 5")
    assert [scalar(waves, n) for n in range(3)] == [30, 630, 70]
    assert get(waves, 1)[4:7].tolist() == [40, 3, 60]
    set_mask(waves, LANE < 0)
    run(waves, "v_readfirstlane_b32 s2, v1")
    assert scalar(waves, 2) == 0


def test_undefined_lanes_are_carried_along():
    waves = make_waves(v2=LANE.astype(np.uint32))
    set_mask(waves, LANE < 4)
    run(waves, "v_mov_b32_e32 v5, 1", "v_readlane_b32 s0, v5, 3", "v_readlane_b32 s1, v5, 4")
    assert waves.shadow.s[0, 0] == 0 and waves.shadow.s[1, 0] == 0xFFFFFFFF
    run(waves, "v_writelane_b32 v2, s1, 1")
    assert undefined(waves, 2)[:3].tolist() == [0, 0xFFFFFFFF, 0]


def test_lanes_below_are_counted():
    waves = _waves()
    set_scalar(waves, 4, 0x8000000180000001, 2)
    run(waves, "v_mbcnt_lo_u32_b32 v2, s4, 5", "v_mbcnt_hi_u32_b32 v2, s5, v2")
    assert get(waves, 2)[[0, 1, 31, 32, 33, 63]].tolist() == [5, 6, 6, 7, 8, 8]


def test_any_lane_may_be_asked():
    waves = _waves()
    put(waves, 2, ((63 - LANE) * 4).astype(np.uint32))
    run(waves, "ds_bpermute_b32 v3, v2, v1")
    assert get(waves, 3).tolist() == list(range(630, -10, -10))
    set_mask(waves, LANE < 40)
    run(waves, "ds_bpermute_b32 v3, v2, v1")
    assert get(waves, 3)[[0, 23, 24, 39]].tolist() == [0, 0, 390, 240]


def test_lanes_are_swizzled_by_the_encoded_offset():
    """and, or, xor in five bits each; or a choice among four."""
    for offset, origin in (
        (0x041F, lambda n: n ^ 1),
        (0x7C1F, lambda n: n ^ 31),
        (0x0060, lambda n: n & 32 | 3),
        (0x80E4 ^ 0x05, lambda n: n & ~3 | [1, 0, 2, 3][n & 3]),
    ):
        waves, one = _waves(), instruction("ds_swizzle_b32 v3, v1")
        bind(replace(one, encoding=f"D87A{offset:04X} 03000001"))(waves)
        assert get(waves, 3).tolist() == [10 * origin(n) for n in range(64)]
    with pytest.raises(Unsupported, match="does not support this pattern of ds_swizzle_b32"):
        bind(replace(one, encoding="D87AC020 03000001"))


def test_registers_change_places():
    waves = _waves()
    put(waves, 2, LANE.astype(np.uint32))
    set_mask(waves, LANE < 2)
    run(waves, "v_swap_b32 v1, v2")
    assert get(waves, 1)[:3].tolist() == [0, 1, 20] and get(waves, 2)[:3].tolist() == [0, 10, 2]
