"""python_limits: recursion along deep trees, the paused collector, and both put back."""

import gc
import sys
import weakref
from threading import Barrier, Thread

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.python_limits import (
    MAX_FRAMES,
    collect_young,
    deep_recursion,
    paused_collector,
)
from refcomp.oracle.tensors.evaluate import evaluate


def _depth(count):
    return 0 if count == 0 else 1 + _depth(count - 1)


def test_recursion_goes_deeper_inside_and_the_limit_is_put_back():
    before = sys.getrecursionlimit()
    with deep_recursion():
        assert _depth(before + 1000) == before + 1000
    assert sys.getrecursionlimit() == before


def test_a_higher_limit_of_the_user_stays():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(MAX_FRAMES + 5)
    try:
        with deep_recursion():
            assert sys.getrecursionlimit() == MAX_FRAMES + 5
        assert sys.getrecursionlimit() == MAX_FRAMES + 5
    finally:
        sys.setrecursionlimit(before)


def test_what_is_deeper_still_is_refused_with_advice():
    before = sys.getrecursionlimit()
    with pytest.raises(Unsupported, match="nested too deeply") as caught, deep_recursion():
        _depth(MAX_FRAMES + 1)
    assert "split long expressions" in str(caught.value)
    assert sys.getrecursionlimit() == before


def test_the_limit_is_put_back_by_the_last_of_overlapping_users():
    before, seen = sys.getrecursionlimit(), []
    entered, one_left = Barrier(2), Barrier(2)

    def leave_first():
        with deep_recursion():
            entered.wait(30)
        one_left.wait(30)

    other = Thread(target=leave_first)
    other.start()
    with deep_recursion():
        entered.wait(30)
        one_left.wait(30)
        seen.append(sys.getrecursionlimit())
    other.join(30)
    assert seen == [max(before, MAX_FRAMES)]
    assert sys.getrecursionlimit() == before


def test_the_collector_pauses_and_goes_on_even_after_a_failure():
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), paused_collector():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def _long_sum(terms):
    a = refcomp.placeholder((4,), "int64", name="A")

    def total(i):
        value = a[i]
        for k in range(1, terms):
            value = value + a[i] * k
        return value

    return a, refcomp.compute((4,), total, name="B")


@pytest.mark.search
@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_a_sum_of_a_thousand_terms_runs(target):
    a, b = _long_sum(1000)
    module = refcomp.build(refcomp.create_schedule(b), [a, b], target)
    result = np.zeros(4, np.int64)
    array = refcomp.array(result)
    module(refcomp.array(np.arange(4)), array)
    assert array.asnumpy().tolist() == [x * (1 + 999 * 500) for x in range(4)]


def test_a_sum_of_a_thousand_terms_has_a_value_by_numpy():
    a, b = _long_sum(1000)
    (result,) = evaluate([b], {a: np.arange(4)})
    assert result.tolist() == [x * (1 + 999 * 500) for x in range(4)]


@pytest.mark.search
def test_a_sum_of_too_many_terms_is_refused():
    a, b = _long_sum(20_000)
    with pytest.raises(Unsupported, match="nested too deeply"):
        refcomp.lower(refcomp.create_schedule(b), [a, b])


class _Knot:
    """An object that refers to itself."""

    def __init__(self):
        self.itself = self


def test_young_cycles_are_freed_while_the_collector_is_paused():
    with paused_collector():
        knot = weakref.ref(_Knot())
        assert knot() is not None
        collect_young()
        assert knot() is None
        assert not gc.isenabled()
