"""First sources that come from another lane."""

import numpy as np
import pytest

from refcomp.emulator.execution.program import bind
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import (
    LANE,
    get,
    instruction,
    make_waves,
    run,
    scalar,
    set_mask,
)

_ALL = "row_mask:0xf bank_mask:0xf"


def _moved(how, active=None, initial=7):
    waves = make_waves(v0=np.uint32(initial), v1=(LANE + 100).astype(np.uint32))
    set_mask(waves, np.ones(64) if active is None else active)
    run(waves, f"v_mov_b32_dpp v0, v1 {how}")
    return get(waves, 0).astype(int)


@pytest.mark.parametrize(
    ("how", "origin"),
    [
        ("quad_perm:[1,0,3,2]", lambda n: n ^ 1),
        ("row_mirror", lambda n: n ^ 15),
        ("row_half_mirror", lambda n: n ^ 7),
        ("row_ror:4", lambda n: n & ~15 | (n - 4) & 15),
        ("row_newbcast:3", lambda n: n & ~15 | 3),
        ("row_share:3", lambda n: n & ~15 | 3),
        ("row_xmask:5", lambda n: n ^ 5),
        ("wave_ror:1", lambda n: n - 1 & 63),
    ],
)
def test_each_lane_reads_another(how, origin):
    assert _moved(f"{how} {_ALL}").tolist() == [origin(n) + 100 for n in range(64)]


def test_eight_lanes_in_any_order():
    waves = make_waves(v1=(LANE + 100).astype(np.uint32))
    run(waves, "v_mov_b32_dpp v0, v1 dpp8:[7,0,1,2,3,4,5,5]")
    order = [7, 0, 1, 2, 3, 4, 5, 5]
    assert get(waves, 0).tolist() == [n // 8 * 8 + order[n % 8] + 100 for n in range(64)]


def test_lanes_that_are_off_may_be_read():
    how = f"quad_perm:[1,0,3,2] {_ALL} fi:1"
    assert _moved(how, active=LANE % 4 != 1)[:4].tolist() == [101, 7, 103, 102]


def test_lanes_at_the_end_of_a_row():
    moved = _moved(f"row_shr:1 {_ALL}")
    assert moved[[0, 1, 15, 16, 17]].tolist() == [7, 100, 114, 7, 116]
    moved = _moved(f"row_shl:2 {_ALL} bound_ctrl:1")
    assert moved[[0, 13, 14, 15, 16]].tolist() == [102, 115, 0, 0, 118]


def test_rows_and_banks_may_be_left_out():
    moved = _moved("row_mirror row_mask:0x2 bank_mask:0x1")
    assert np.flatnonzero(moved != 7).tolist() == [16, 17, 18, 19]
    moved = _moved(f"row_bcast:15 {_ALL}")
    assert moved[[0, 16, 31, 32, 47, 48]].tolist() == [7, 115, 115, 131, 131, 147]
    moved = _moved("row_bcast:31 row_mask:0xc bank_mask:0xf")
    assert moved[[31, 32, 63]].tolist() == [7, 131, 131]


def test_lanes_that_are_off_give_nothing():
    moved = _moved(f"quad_perm:[1,0,3,2] {_ALL}", active=LANE % 4 != 1)
    assert moved[:4].tolist() == [7, 7, 103, 102]
    moved = _moved(f"quad_perm:[1,0,3,2] {_ALL} bound_ctrl:1", active=LANE % 4 != 1)
    assert moved[:4].tolist() == [0, 7, 103, 102]


def test_carries_of_lanes_that_read_and_of_others():
    waves = make_waves(
        v1=np.where(LANE % 2 == 0, 1, 0xFFFFFFFF).astype(np.uint32),
        v2=np.uint32(5),
        v0=np.uint32(0),
    )
    run(waves, f"v_subrev_co_u32_dpp v0, vcc, v1, v2 row_shl:1 {_ALL} bound_ctrl:1")
    # Odd lanes read 1, even ones all ones; the last of a row reads 0.
    assert get(waves, 0)[[0, 1, 15]].tolist() == [6, 4, 5]
    assert scalar(waves, 106, "u64") == 0x5555555555555555
    run(waves, f"v_add_co_u32_dpp v0, vcc, v1, v2 row_shl:1 {_ALL} bound_ctrl:1")
    assert scalar(waves, 106, "u64") == 0x5555555555555555


@pytest.mark.parametrize(
    ("line", "lane", "wanted"),
    [
        ("v_add_f32_dpp v0, -v1, |v2| row_newbcast:3", 20, -20 + 1.5),
        ("v_mul_f32_dpp v0, v1, v2 quad_perm:[3,3,3,3]", 1, 4 * -1.5),
        ("v_max_f32_dpp v0, v1, v2 row_half_mirror", 0, 8.0),
        ("v_fmac_f32_dpp v0, v1, v2 wave_shr:1", 63, 0.25 - 63 * 1.5),
        ("v_fmac_f32_dpp v0, v1, v2 wave_shr:1", 0, 0.25),  # which has no lane to read
    ],
)
def test_operands_may_be_changed(line, lane, wanted):
    waves = make_waves(v0=np.float32(0.25), v1=(LANE + 1).astype(np.float32), v2=np.float32(-1.5))
    run(waves, f"{line} {_ALL}")
    assert get(waves, 0, "f32")[lane] == wanted


def test_pairs_of_registers_move():
    waves = make_waves(v2=(LANE.astype(np.uint64) << np.uint64(33)) + np.uint64(1), v0=np.uint64(0))
    run(waves, f"v_mov_b64_dpp v[0:1], v[2:3] row_newbcast:5 {_ALL}")
    assert get(waves, 0, "u64")[[0, 17]].tolist() == [(5 << 33) + 1, (21 << 33) + 1]


def test_other_sources_are_the_lanes_own():
    waves = make_waves(v1=LANE.astype(np.uint32))
    run(waves, f"v_sub_u32_dpp v0, v1, v1 quad_perm:[3,3,3,3] {_ALL}")
    assert get(waves, 0)[:5].tolist() == [3, 2, 1, 0, 3]


def test_an_unknown_exchange_is_refused():
    with pytest.raises(Unsupported, match="does not support this kind of DPP"):
        bind(instruction(f"v_mov_b32_dpp v0, v1 row_odd:3 {_ALL}"))
