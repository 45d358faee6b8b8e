import itertools
import operator

import pytest

from refcomp.arith.modular import Modular

RANGE = range(-24, 25)
FACTS = [Modular(c, b) for c in range(0, 7) for b in range(-2, 7)]


@pytest.mark.parametrize(
    ("on_facts", "on_values"),
    [(Modular.__add__, operator.add), (Modular.__mul__, operator.mul)],
)
def test_binary_operations_hold_all_results(on_facts, on_values):
    for a, b in itertools.product(FACTS, FACTS):
        found = on_facts(a, b)
        for x, y in itertools.product(RANGE[::5], RANGE[::7]):
            if a.contains(x) and b.contains(y):
                assert found.contains(on_values(x, y)), (a, b, x, y)


@pytest.mark.parametrize("k", range(-4, 5))
def test_operations_with_a_number_hold_all_results(k):
    for fact, x in itertools.product(FACTS, RANGE):
        if fact.contains(x):
            assert fact.shift(k).contains(x + k)
            assert fact.scale(k).contains(x * k)
            assert fact.floordiv(k).contains(x // k if k else 0)
            assert fact.floormod(k).contains(x % k if k else 0)


def test_union_holds_what_either_holds():
    for a, b in itertools.product(FACTS, FACTS):
        assert all(a.union(b).contains(x) for x in RANGE if a.contains(x) or b.contains(x))


def test_strength():
    assert Modular(4, 1) + Modular(6, 2) == Modular(2, 1)
    assert Modular(8, 4).floordiv(4) == Modular(2, 1)
    assert Modular(8, 5).floormod(4) == Modular(0, 1)
    assert Modular.point(3) * Modular(4, 2) == Modular(12, 6)
    assert Modular.point(2).union(Modular.point(8)) == Modular(6, 2)


@pytest.mark.parametrize("coefficient", range(1, 13))
def test_what_survives_a_wrap(coefficient):
    fact = Modular(coefficient, 3)
    for x in RANGE:
        if fact.contains(x):
            assert all(fact.wrapped(4).contains(x + 16 * turn) for turn in range(-2, 3))
