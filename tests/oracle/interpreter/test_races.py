"""Which pairs of accesses are races, and what is told of them."""

import itertools

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from refcomp.oracle.interpreter.interpret import InterpretError, interpret

READ, WRITE, UPDATE = "O[t, g] = A[0]", "A[0] = 1", "atomic add A[0] with 1"
OTHER_UPDATE = "atomic max A[0] with 1"  # max(x, 1) + 1 is not max(x + 1, 1)
ACCESSES = (READ, WRITE, UPDATE, OTHER_UPDATE)
PAIRS = list(itertools.product(ACCESSES, repeat=2))
RACING = {frozenset(pair) for pair in PAIRS if pair[0] != pair[1]} | {frozenset((WRITE,))}


def _run(body, groups=1, threads=2):
    text = f"""
    func f(A: i64[8] out, O: i64[8, 8] out) {{
      for g in range({groups}) blockIdx.x {{
        for t in range({threads}) threadIdx.x {{
          {body}
        }}
      }}
    }}
    """
    interpret(parse_func(text), [np.zeros(8, np.int64), np.zeros((8, 8), np.int64)])


def _is_race(*args, **kwargs):
    try:
        _run(*args, **kwargs)
    except InterpretError as error:
        assert error.what.startswith("a race on element 0 of A")
        return True
    return False


@pytest.mark.parametrize("between", ["", "barrier"])
@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_two_threads_of_a_group(one, two, between):
    body = f"if (t == 0) {{ {one} }} {between} if (t == 1) {{ {two} }}"
    assert _is_race(body) == (not between and frozenset((one, two)) in RACING)


@pytest.mark.parametrize("between", ["", "barrier"])
@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_two_groups_never_wait_for_each_other(one, two, between):
    body = f"if (g == 0) {{ {one} }} {between} if (g == 1) {{ {two} }}"
    assert _is_race(body, groups=2, threads=1) == (frozenset((one, two)) in RACING)


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_one_thread_does_not_race_with_itself(one, two):
    assert not _is_race(f"if (t == 1) {{ {one} {two} }}")


def test_a_race_is_found_whoever_came_in_between():
    """Many threads read before the one that writes, which itself was the first to read."""
    for writer in range(5):
        assert _is_race(f"O[t, g] = A[0] if (t == {writer}) {{ A[0] = 1 }}", threads=5)
        assert _is_race(f"O[g, t] = A[0] if (g == {writer}) {{ A[0] = 1 }}", groups=5, threads=1)


def test_a_barrier_ends_no_race_with_another_group():
    """The group that reads has passed barriers since, and so has the one that writes."""
    body = "if (g == 0) { O[t, g] = A[0] } barrier barrier if (g == 1) { if (t == 0) { A[0] = 1 } }"
    assert _is_race(body, groups=2)


def test_each_interval_between_barriers_is_checked():
    body = "for k in range(3) { if (t == k) { A[0] = k } BETWEEN O[k, t] = A[0] AFTER }"
    assert not _is_race(body.replace("BETWEEN", "barrier").replace("AFTER", "barrier"))
    assert _is_race(body.replace("BETWEEN", "barrier").replace("AFTER", ""))
    assert _is_race(body.replace("BETWEEN", "").replace("AFTER", "barrier"))


def test_different_elements_do_not_race():
    _run("A[t] = t O[t, g] = A[t]")


def test_a_race_within_a_group_tells_both_sides():
    with pytest.raises(InterpretError) as caught:
        _run("for k in range(2) { A[t + k] = k }")
    assert str(caught.value).splitlines() == [
        "a race on element 1 of A: thread (blockIdx.x = 0, threadIdx.x = 0) writes it, "
        "and thread (blockIdx.x = 0, threadIdx.x = 1) writes it",
        "  where: A[t + k] = k with g = 0, t = 0, k = 1",
        "  why: no barrier lies between the two; "
        "the other is at A[t + k] = k with g = 0, t = 1, k = 0",
    ]


def test_a_race_of_groups_tells_both_sides():
    with pytest.raises(InterpretError) as caught:
        _run("if (g == 0) { atomic max A[4] with g } else { A[g] = A[4] }", groups=2, threads=1)
    assert str(caught.value).splitlines() == [
        "a race on element 4 of A: thread (blockIdx.x = 0, threadIdx.x = 0) updates it by max, "
        "and thread (blockIdx.x = 1, threadIdx.x = 0) reads it",
        "  where: atomic max A[4] with g with g = 0, t = 0",
        "  why: groups do not wait for each other; the other is at A[g] = A[4] with g = 1, t = 0",
    ]
