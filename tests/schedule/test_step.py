import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.schedule.schedule import replay
from refcomp.schedule.step import AxisName, StageName, Step, resolve, to_name


def _schedule():
    a = refcomp.placeholder((8, 8), name="A")
    b = refcomp.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = refcomp.compute((8, 8), lambda i, j: b[i, j] * 2.0, name="C")
    s = refcomp.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].bind(inner, refcomp.thread_axis((0, 4), "threadIdx.x"))
    copy = s.cache_read(a, "shared", [b])
    s[b].compute_at(s[c], outer)
    s[copy].compute_at(s[b], b.op.axis[1])
    return s, a, b, c


def test_steps_read_as_they_were_called():
    s, *_ = _schedule()
    assert [str(step) for step in s.steps] == [
        "s[C].split(i, factor=4)",
        "s[C].bind(i.inner, threadIdx.x)",
        "s[A].cache_read(0, shared, [s[B]])",
        "s[B].compute_at(s[C], i.outer)",
        "s[A.shared].compute_at(s[B], j)",
    ]


def test_stages_made_by_steps_are_found_by_name():
    s, _, b, c = _schedule()
    again = replay(s.outputs, s.steps)
    assert [stage.name for stage in again.stages] == ["A", "A.shared", "B", "C"]
    copy = again.stages[1]
    assert copy.attach_point.stage is again[b].stage and copy.attach_point.axis is b.op.axis[1]
    assert again[b].stage.attach_point.stage is again[c].stage


def test_axes_belong_to_the_stage_named_before_them():
    s, _, b, c = _schedule()
    step = Step("B", "compute_at", (StageName("C"), AxisName("j")), (), "here:1")
    stage, (consumer, axis) = resolve(step, s.stages)
    assert stage is s[b].stage and consumer is s[c].stage and axis is c.op.axis[1]


def test_what_is_named_by_what():
    s, _, b, _ = _schedule()
    thread = refcomp.thread_axis("threadIdx.x")
    assert to_name(s[b].stage) == StageName("B") and to_name(b.op.axis[0]) == AxisName("i")
    assert to_name(thread) is thread and to_name([s[b].stage]) == (StageName("B"),)
    assert to_name(4) == 4


def test_a_step_of_another_computation():
    s, *_ = _schedule()
    step = Step("X", "split", (AxisName("i"),), (), "here:1")
    with pytest.raises(
        UserError, match=r"names X, which does not exist\n  --> here:1 \(recorded here\)\n"
    ):
        resolve(step, s.stages)
    with pytest.raises(UserError, match="names q, which does not exist"):
        resolve(Step("B", "split", (AxisName("q"),), (), "here:1"), s.stages)


def test_long_texts_are_told_by_their_length():
    step = Step("C", "pragma", (AxisName("i"), "import_llvm", "a\nb\n"), (), "")
    assert str(step) == "s[C].pragma(i, import_llvm, <a text of 2 lines>)"
