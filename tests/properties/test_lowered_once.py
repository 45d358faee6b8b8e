"""What is lowered once is what lowering again would give, for as long as nothing changes."""

import gc
import weakref

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.printer import print_func
from tests.strategies import lowered_once as module
from tests.strategies.lowered_once import lowered_once


@pytest.fixture
def counts(monkeypatch):
    """The names of the functions that were lowered."""
    names, lower = [], refcomp.lower

    def counted(schedule, args, name):
        names.append(name)
        return lower(schedule, args, name)

    monkeypatch.setattr(module.refcomp, "lower", counted)
    return names


def _scheduled():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i] + 1, name="B")
    c = refcomp.compute((8,), lambda i: b[i] * 2, name="C")
    return refcomp.create_schedule(c), [a, c], b, c


def test_a_schedule_is_lowered_again_after_each_step(counts):
    s, args, b, c = _scheduled()
    for step in (lambda: None, s[b].compute_inline, lambda: s[c].split(c.op.axis[0], 4)):
        step()
        first, again = lowered_once(s, args), lowered_once(s, args)
        assert first is again
        assert print_func(first) == print_func(refcomp.lower(s, args, "case"))
    assert len(counts) == 2 * 3


def test_each_function_has_the_name_and_the_arguments_that_were_asked_for(counts):
    s, args, b, _ = _scheduled()
    assert print_func(lowered_once(s, args, "f")) == print_func(refcomp.lower(s, args, "f"))
    assert [p.name for p in lowered_once(s, [*args, b]).params] == ["A", "C", "B"]
    assert [p.name for p in lowered_once(s, args).params] == ["A", "C"]
    assert len(counts) == 4


def test_a_refusal_is_raised_each_time(counts):
    s, args, _, _ = _scheduled()
    for _ in range(2):
        with pytest.raises(UserError):
            lowered_once(s, args[:1])
    assert len(counts) == 2


def test_what_was_lowered_goes_with_its_schedule():
    s, args, _, _ = _scheduled()
    lowered_once(s, args)
    gone = weakref.ref(s)
    del s
    gc.collect()
    assert gone() is None
