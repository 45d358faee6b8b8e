"""Times by events: contenders take turns, buffers rotate, and rounds last long enough."""

from itertools import pairwise

import pytest

from benchmarks.cuda.timing import COLD_BYTES, MAX_SETS, buffer_sets, interleave_events


class Clock:
    """A clock that counts calls: each takes as long as its contender says."""

    def __init__(self):
        self.now, self.log = 0.0, []

    def call(self, name, seconds):
        def run():
            self.now += seconds
            self.log.append(name)

        return run

    def seconds(self, index, work):
        assert index == 0
        start = self.now
        work()
        return self.now - start


def test_a_round_gives_seconds_per_call():
    clock = Clock()
    contenders = {"ours": [clock.call("a", 2e-3)], "theirs": [clock.call("b", 1e-3)]}
    taken = interleave_events(clock, contenders, rounds=3, least_s=0.01)
    assert taken["ours"] == pytest.approx([2e-3] * 3)
    assert taken["theirs"] == pytest.approx([1e-3] * 3)


def test_buffers_are_taken_in_turn_and_rounds_begin_with_another_contender():
    clock = Clock()
    ours = [clock.call(f"set {k}", 1.0) for k in range(3)]
    interleave_events(clock, {"ours": ours, "theirs": [clock.call("b", 1.0)]}, 2, 3.0)
    rounds = clock.log[-12:]
    sets = [name for name in clock.log if name != "b"]
    assert all(a != b for a, b in pairwise(sets))
    assert (rounds[0] == "b") != (rounds[6] == "b")


def test_a_call_that_takes_no_time_ends():
    clock = Clock()
    taken = interleave_events(clock, {"ours": [clock.call("a", 0.0)]}, rounds=1, least_s=1.0)
    assert taken == {"ours": [0.0]}


@pytest.mark.parametrize(
    ("size", "free", "sets"),
    [
        (COLD_BYTES // 4, 1 << 40, 4),
        (COLD_BYTES * 2, 1 << 40, 2),
        (COLD_BYTES * 2, COLD_BYTES * 9, 1),
        (1, 1 << 40, MAX_SETS),
        (COLD_BYTES, 0, 1),
    ],
)
def test_buffers_exceed_the_caches_as_far_as_memory_allows(size, free, sets):
    assert buffer_sets(size, free) == sets
