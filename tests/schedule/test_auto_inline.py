"""What is inlined without being asked for by name."""

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.schedule import AutoInlineElemWise, AutoInlineInjective
from refcomp.schedule.auto_inline import is_elementwise, is_injective


def chain():
    a = rc.placeholder((8, 8), name="A")
    k = rc.reduce_axis((0, 8), name="k")
    plus = rc.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="plus")
    turned = rc.compute((8, 8), lambda i, j: plus[j, i], name="turned")
    total = rc.compute((8,), lambda i: rc.sum(turned[i, k], axis=k), name="total")
    out = rc.compute((8,), lambda i: total[i] * 2.0, name="out")
    return rc.create_schedule(out), [a, plus, turned, total, out]


def inlined(s):
    return [stage.name for stage in s.stages if stage.placement == "inline"]


def test_elementwise_stages_are_inlined_and_recorded():
    s, tensors = chain()
    AutoInlineElemWise(s)
    assert inlined(s) == ["plus"]
    assert [str(step) for step in s.steps] == ["s[plus].compute_inline()"]
    assert rc.certify(s, [tensors[0], tensors[-1]]).holds


def test_injective_stages_are_inlined_but_no_reduction_and_no_output():
    s, tensors = chain()
    AutoInlineInjective(s)
    assert inlined(s) == ["plus", "turned"]
    assert rc.certify(s, [tensors[0], tensors[-1]]).holds


def test_kinds_of_operations():
    _, (a, plus, turned, total, out) = chain()
    assert [is_elementwise(t.op) for t in (a, plus, turned, total, out)] == [
        *(False, True, False, False, True)
    ]
    assert [is_injective(t.op) for t in (a, plus, turned, total, out)] == [
        *(False, True, True, False, True)
    ]


def test_what_is_no_schedule_is_refused():
    with pytest.raises(UserError, match="3 is not a schedule"):
        AutoInlineInjective(3)
