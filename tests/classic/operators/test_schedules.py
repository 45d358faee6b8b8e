"""Schedules that take further classic arguments, and inlining by a walk over operations."""

import refcomp as rc
from refcomp.classic import topi


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


def test_injective_stages_are_inlined_and_all_operations_are_visited_once() -> None:
    A = rc.placeholder((4,), name="A")
    B = topi.exp(A)
    total = topi.sum(topi.multiply(B, B))
    C = topi.add(total, 1.0)
    s = rc.create_schedule(C)
    visited = []
    topi.util.traverse_inline(s, C.op, visited.append)
    assert visited[0] is B.op
    assert visited[-1] is C.op
    assert len(visited) == len(set(visited)) == 4  # exp, multiply, sum, add
    inlined = {op.name for op in visited if s[op].attach_type == s[B].attach_type}
    assert {B.op.name} <= inlined
    assert total.op.name not in inlined
    assert C.op.name not in inlined
