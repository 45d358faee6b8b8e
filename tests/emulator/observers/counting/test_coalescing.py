"""Segments of memory that waves touch, beside a count in plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from refcomp.emulator.observers.counting.coalescing import (
    TouchedSegments,
    count_segments,
    least_segments,
    requested_bytes,
)

_LANE = np.arange(64)[None, :]


def test_lanes_side_by_side_share_segments():
    assert count_segments(4 * _LANE, None, 4, 64) == 4
    assert count_segments(4 * _LANE, None, 4, 128) == 2
    assert count_segments(16 * _LANE, None, 16, 128) == 8


def test_an_offset_start_touches_one_more():
    assert count_segments(4 * _LANE + 4, None, 4, 128) == 3


def test_lanes_far_apart_touch_one_each():
    assert count_segments(1024 * _LANE, None, 4, 128) == 64
    assert count_segments(8 * _LANE, None, 4, 128) == 4


def test_the_order_of_the_lanes_does_not_matter():
    assert count_segments(4 * _LANE[:, ::-1], None, 4, 128) == 2


def test_equal_addresses_are_one_segment():
    assert count_segments(0 * _LANE, None, 4, 128) == 1


def test_an_access_over_a_border_touches_both():
    assert count_segments(np.array([[126]]), None, 4, 128) == 2


def test_each_wave_counts_for_itself():
    both = np.concatenate([4 * _LANE, 4 * _LANE])
    assert count_segments(both, None, 4, 128) == 4


@given(
    st.lists(st.tuples(st.integers(0, 2000), st.booleans()), min_size=1, max_size=16),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([64, 128]),
)
def test_counts_are_those_of_sets(lanes, size, segment):
    index, active = (np.array([column]) for column in zip(*lanes, strict=True))
    touched = {(n + k) // segment for n, on in lanes if on for k in (0, size - 1)}
    assert count_segments(index, active, size, segment) == len(touched)
    asked = {n + k for n, on in lanes if on for k in range(size)}
    assert requested_bytes(index, active, size).tolist() == [len(asked)]
    marks = TouchedSegments(segment)
    marks.add(index[active], size)
    assert marks.bytes == len(touched) * segment


def test_the_least_is_what_lanes_fill():
    assert least_segments(4 * np.array([64, 1, 0, 33]), 128) == 2 + 1 + 0 + 2


def test_bytes_that_several_lanes_request_count_once():
    assert requested_bytes(0 * _LANE, None, 4).tolist() == [4]
    assert requested_bytes(2 * _LANE[:, ::-1], None, 4).tolist() == [2 * 64 + 2]
    rows = np.concatenate([4 * _LANE, 8 * _LANE, 4 * (_LANE // 2)])
    assert requested_bytes(rows, None, 4).tolist() == [256, 256, 128]
    active = np.concatenate([_LANE < 3, _LANE < 0, _LANE > 61])
    assert requested_bytes(rows, active, 4).tolist() == [12, 0, 4]
    shifted = np.concatenate([4 * _LANE, 4 * _LANE + 6])
    assert requested_bytes(shifted, None, 4).tolist() == [256, 256]


def test_what_is_touched_twice_counts_once():
    marks = TouchedSegments(128)
    marks.add(np.array([0, 4, 1000]), 4)
    marks.add(np.array([0]), 16)
    assert marks.bytes == 256


def test_waves_that_lie_alike_are_counted_as_each_for_itself():
    begins = np.array([[0], [4], [128], [252]])
    assert count_segments(4 * _LANE + begins, None, 4, 128) == 2 + 3 + 2 + 3
    assert count_segments(4 * _LANE[:, ::-1] + begins, None, 4, 128) == 10
    assert count_segments(np.concatenate([4 * _LANE, 128 * _LANE]), None, 4, 128) == 66
