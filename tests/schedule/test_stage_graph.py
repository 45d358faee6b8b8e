import refcomp
from refcomp.schedule.stage import Provenance
from refcomp.schedule.stage_graph import (
    add_stage,
    depends_on,
    find_stage,
    make_operation,
    readers_of,
    redirect_reads,
)


def _chain():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((4,), lambda i: b[i] * a[i], name="C")
    d = refcomp.compute((4,), lambda i: c[i] + 1.0, name="D")
    return refcomp.create_schedule(d).stages, a, b, c, d


def _copy(stage, tensor):
    axes = stage.op.axis
    return make_operation("copy", "here:1", axes, [tensor[axes]], [tensor])


def test_stages_are_found_by_tensors_and_by_operations():
    stages, a, b, *_ = _chain()
    assert find_stage(stages, a) is stages[0] and find_stage(stages, b.op) is stages[1]
    assert find_stage(stages, refcomp.placeholder((4,))) is None
    assert find_stage(stages, "B") is None and find_stage(stages, [0]) is None


def test_who_reads_whom():
    stages, *_ = _chain()
    a, b, c, d = stages
    assert readers_of(a) == [b, c] and readers_of(d) == []
    assert depends_on(d, a) and depends_on(c, b)
    assert not depends_on(a, d) and not depends_on(b, c) and not depends_on(b, b)


def test_a_stage_is_added_beside_another():
    stages, a, *_ = _chain()
    call = Provenance("rfactor", "f.py:3")
    added = add_stage(_copy(stages[1], a), "B", stages[1], after=False, provenance=call)
    assert [s.name for s in stages] == ["A", "B.1", "B", "C", "D"]
    assert added.loops.leaves == list(added.op.axis) and added.siblings is stages
    assert added.primitive == "rfactor" and stages[0].primitive == ""
    call = Provenance("cache_read", "f.py:4")
    add_stage(_copy(stages[2], a), "E", stages[2], after=True, provenance=call)
    assert [s.name for s in stages] == ["A", "B.1", "B", "E", "C", "D"]


def test_an_operation_that_reads_something_else_makes_the_same_tensors():
    stages, a, b, c, _ = _chain()
    copy = _copy(stages[1], a)
    redirect_reads(stages[2], a, copy.outputs[0])
    fresh = stages[2].op
    assert fresh is not c.op and fresh.inputs == (b, copy.outputs[0])
    assert fresh.outputs == (c,) and fresh.axis == c.op.axis and c.op.inputs == (b, a)
    assert find_stage(stages, c) is find_stage(stages, fresh) is stages[2]
