import itertools
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.arith.interval import Interval

SMALL = [Interval(low, high) for low in range(-4, 5) for high in range(low, 5)]


def _floordiv(a, b):
    return a // b if b else 0


def _floormod(a, b):
    return a % b if b else 0


OPERATIONS = [
    (Interval.__add__, operator.add, True),
    (Interval.__sub__, operator.sub, True),
    (Interval.__mul__, operator.mul, True),
    (Interval.minimum, min, True),
    (Interval.maximum, max, True),
    (Interval.floordiv, _floordiv, True),
    (Interval.floormod, _floormod, False),
]
OPERATION = pytest.mark.parametrize(
    ("on_intervals", "on_values", "is_least"), OPERATIONS, ids=lambda item: str(item)[:24]
)


def _values(interval):
    return range(interval.low, interval.high + 1)


@OPERATION
def test_holds_all_results_and_the_least_such(on_intervals, on_values, is_least):
    for a, b in itertools.product(SMALL, SMALL):
        results = [on_values(x, y) for x in _values(a) for y in _values(b)]
        found = on_intervals(a, b)
        assert found.low <= min(results) and max(results) <= found.high, (a, b)
        if is_least:
            assert found == Interval(min(results), max(results)), (a, b)


ENDS = st.none() | st.integers(-5, 5)


@st.composite
def intervals(draw):
    low, high = draw(ENDS), draw(ENDS)
    if low is not None and high is not None and low > high:
        low, high = high, low
    return Interval(low, high)


@pytest.mark.search
@OPERATION
@given(intervals(), intervals(), st.integers(-60, 60), st.integers(-60, 60))
def test_sides_without_bounds(on_intervals, on_values, is_least, a, b, x, y):
    if a.contains(x) and b.contains(y):
        assert on_intervals(a, b).contains(on_values(x, y))


def test_a_remainder_by_a_greater_divisor_is_the_value():
    assert Interval(0, 3).floormod(Interval(4, None)) == Interval(0, 3)
    assert Interval(0, None).floormod(Interval(8, 8)) == Interval(0, 7)


def test_scale_and_shift():
    for interval, k in itertools.product(SMALL, range(-3, 4)):
        assert set(_values(interval.shift(k))) == {v + k for v in _values(interval)}
        assert {v * k for v in _values(interval)} <= set(_values(interval.scale(k)))
    assert Interval(None, 3).scale(-2) == Interval(-6, None)
    assert Interval(None, 3).scale(0) == Interval(0, 0)


def test_union_and_intersection():
    assert Interval(0, 1).union(Interval(5, None)) == Interval(0, None)
    assert Interval(0, 7).intersect(Interval(None, 3)) == Interval(0, 3)
    assert Interval(0, 1).intersect(Interval(5, 6)) == Interval(0, 1)  # contradictory facts


def test_predicates():
    assert Interval.point(3).is_point and not Interval(3, 4).is_point
    assert not Interval().is_point and not Interval(0, None).is_finite
    assert Interval(1, 2).lies_in(Interval(1, None)) and not Interval().lies_in(Interval(0, None))
    assert Interval(1, None).lies_in_or_open(Interval(0, 9))
    assert not Interval(-1, None).lies_in_or_open(Interval(0, 9))
    assert Interval(2, None).is_at_least(2) and not Interval(None, 2).is_at_least(0)
    assert Interval(None, 2).is_at_most(2) and not Interval(2, None).is_at_most(9)
