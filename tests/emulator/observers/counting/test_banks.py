"""Clocks of shared memory, counted by hand and beside a count in plain Python."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.emulator.observers.counting.banks import alike, count_clocks, phases

_LANE = np.arange(64)[None, :]


@pytest.mark.parametrize("size", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("is_paired", [False, True])
@pytest.mark.parametrize("lanes", [32, 64])
def test_each_lane_goes_in_one_phase(size, is_paired, lanes):
    order = phases(size, lanes, is_paired)
    assert sorted(order.reshape(-1)) == list(range(lanes))
    assert order.shape[1] * max(size, 4) <= 128


def test_reads_of_16_bytes_pair_fours_of_lanes():
    assert phases(16, 64, is_paired=True)[0].tolist() == [0, 1, 2, 3, 20, 21, 22, 23]
    assert phases(16, 64, is_paired=True)[5].tolist() == [36, 37, 38, 39, 48, 49, 50, 51]
    assert phases(16, 64, is_paired=False)[1].tolist() == list(range(8, 16))


@pytest.mark.parametrize("size", [4, 8, 12, 16])
def test_lanes_side_by_side_have_no_conflicts(size):
    clocks, least = count_clocks(size * _LANE, None, size)
    assert clocks == least == len(phases(size, 64, False))


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (3, 1), (4, 4), (32, 32), (33, 1)])
def test_strides_of_dwords(stride, ways):
    # Two half waves; lanes of one collide as often as the stride shares factors with 32 banks.
    assert count_clocks(4 * stride * _LANE, None, 4) == (2 * ways, 2)


def test_the_same_dword_is_shared_but_not_updated_together():
    assert count_clocks(0 * _LANE, None, 4) == (2, 2)
    assert count_clocks(0 * _LANE, None, 4, is_atomic=True) == (64, 2)


def test_lanes_whose_items_move_together_share_all_banks():
    """64 lanes of 16 bytes are 256 dwords: 8 for each bank; in phases, lanes are 8 together."""
    assert count_clocks(16 * _LANE, None, 16, is_whole=True) == (8, 8)
    assert count_clocks(8 * _LANE, None, 4) == (4, 2)
    assert count_clocks(8 * _LANE, None, 4, is_whole=True) == (4, 2)
    # Four half rows of 16 lanes, in two halves of the banks.
    rows = np.concatenate([4 * _LANE[:, :16] + start for start in (0, 64, 128, 192)], axis=1)
    assert count_clocks(rows, None, 4, is_whole=True) == (2, 2)
    assert count_clocks(128 * _LANE, None, 4, is_whole=True) == (64, 2)
    assert count_clocks(0 * _LANE, None, 4, is_whole=True) == (1, 1)


def test_lanes_that_are_not_active_ask_for_nothing():
    active = _LANE < 1
    assert count_clocks(128 * _LANE, active, 4) == (1, 1)
    assert count_clocks(128 * _LANE, np.zeros_like(active), 4) == (0, 0)


def test_a_row_of_33_floats_has_a_column_without_conflicts():
    assert count_clocks(4 * 32 * _LANE, None, 4)[0] == 64
    assert count_clocks(4 * 33 * _LANE, None, 4)[0] == 2


@pytest.mark.search
@given(
    st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=64, max_size=64),
    st.sampled_from([4, 8, 16]),
    st.booleans(),
    st.booleans(),
)
def test_clocks_are_those_of_a_plain_count(lanes, size, is_paired, is_atomic):
    index = np.array([[size * n for n, _ in lanes]])
    active = np.array([[on for _, on in lanes]])
    clocks = least = 0
    for phase in phases(size, 64, is_paired):
        banks = defaultdict(list)
        for lane in phase:
            if active[0, lane]:
                for dword in range(index[0, lane] // 4, (index[0, lane] + size) // 4):
                    banks[dword % 32].append(dword)
        turns = [len(b) if is_atomic else len(set(b)) for b in banks.values()]
        clocks += max(turns, default=0)
        least += bool(turns)
    got = count_clocks(index, active, size, is_paired=is_paired, is_atomic=is_atomic)
    assert got == (clocks, least)


def test_waves_that_lie_alike_are_counted_as_each_for_itself():
    """Moved by whole banks, or with lanes that lie before the first one."""
    rows = np.concatenate([4 * _LANE, 4 * _LANE + 64, 4 * _LANE + 4096])
    assert count_clocks(rows, None, 4) == (6, 6)
    assert [n for n, _ in alike(rows, None, 4)] == [3]
    assert [n for n, _ in alike(rows + np.array([[0], [0], [2]]), None, 4)] == [2, 1]
    assert [*alike(np.concatenate([4 * _LANE, 8 * _LANE]), None, 4)] == []
    assert [*alike(rows, np.ones(rows.shape, np.bool_), 4)] == []
    backwards = np.concatenate([128 * _LANE[:, ::-1], 128 * _LANE[:, ::-1] + 128])
    assert count_clocks(backwards, None, 4) == (128, 4)
    assert count_clocks(np.concatenate([4 * _LANE, 128 * _LANE]), None, 4) == (66, 4)
    # All lanes but the first one lie a dword before it.
    before = np.where(_LANE == 0, 4, 0)
    assert count_clocks(before, None, 4, is_atomic=True) == (31 + 32, 2)
