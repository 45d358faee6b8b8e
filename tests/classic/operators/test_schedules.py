"""Schedules that take further classic arguments, and inlining by a walk over operations."""

import pytest

import refcomp as rc
from refcomp.classic import topi
from refcomp.foundation.errors import UserError


def calls(schedule: rc.Schedule) -> list[object]:
    return [(s.stage, s.primitive, s.args, s.options) for s in schedule.steps]


def test_further_arguments_change_nothing() -> None:
    A = rc.placeholder((1, 2, 4, 4), name="A")
    pooled = topi.nn.pool(A, 2, 2, 0, "max")
    steps = calls(rc.topi.schedule_pool(pooled))
    assert steps
    assert calls(topi.generic.schedule_pool(pooled, "NCHW")) == steps
    assert calls(topi.generic.schedule_pool([pooled], layout="NCHW")) == steps
    relu = topi.nn.relu(A)
    steps = calls(rc.topi.schedule_injective(relu))
    assert calls(topi.generic.default_schedule([relu], False)) == steps


def test_injective_stages_are_inlined_up_to_the_first_other_operation() -> None:
    A = rc.placeholder((4,), name="A")
    B = topi.exp(A)
    total = topi.sum(B)
    C = topi.add(total, 1.0)
    D = topi.multiply(C, C)
    s = rc.create_schedule(D)
    visited = []
    topi.util.traverse_inline(s, D.op, visited.append)
    assert visited == [total.op, C.op, D.op]
    assert [s[op].attach_type for op in (B, total, C, D)] == ["root", "root", "inline", "root"]


def test_a_walk_begins_at_an_operation() -> None:
    B = topi.exp(rc.placeholder((4,), name="A"))
    with pytest.raises(UserError, match="is not an operation") as info:
        topi.util.traverse_inline(rc.create_schedule(B), B, print)
    assert info.value.remedy == "pass tensor.op of an output"
