import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.schedule.primitives.table import PRIMITIVES
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage_schedule import StageSchedule
from tests.quotations import quoted_call


def _matmul(n=16):
    a, b = (refcomp.placeholder((n, n), name=name) for name in "AB")
    k = refcomp.reduce_axis((0, n), "k")
    return refcomp.compute((n, n), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")


def _scheduled():
    c = _matmul()
    s = refcomp.create_schedule(c.op)
    i, j = s[c].op.axis
    i_outer, j_outer, i_inner, j_inner = s[c].tile(i, j, 4, 8)
    k_outer, k_inner = s[c].split(s[c].op.reduce_axis[0], nparts=4)
    s[c].reorder(i_outer, j_outer, k_outer, i_inner, k_inner, j_inner)
    s[c].vectorize(j_inner)
    s[c].parallel(s[c].fuse(i_outer, j_outer))
    s[c].unroll(k_inner)
    return c, s


def test_loops_after_a_chain_of_primitives():
    c, s = _scheduled()
    assert [axis.name for axis in s[c].leaf_iter_vars] == [
        "i.outer.j.outer.fused",
        "k.outer",
        "i.inner",
        "k.inner",
        "j.inner",
    ]


def test_every_primitive_is_a_method_and_is_recorded():
    assert set(PRIMITIVES) <= {*dir(StageSchedule), *dir(Schedule)}
    _, s = _scheduled()
    assert [str(step) for step in s.steps] == [
        "s[C].tile(i, j, 4, 8)",
        "s[C].split(k, nparts=4)",
        "s[C].reorder(i.outer, j.outer, k.outer, i.inner, k.inner, j.inner)",
        "s[C].vectorize(j.inner)",
        "s[C].fuse(i.outer, j.outer)",
        "s[C].parallel(i.outer.j.outer.fused)",
        "s[C].unroll(k.inner)",
    ]
    assert all(step.line.startswith(__file__) for step in s.steps)


@pytest.mark.parametrize("count", range(8))
def test_every_prefix_replays(count):
    c, s = _scheduled()
    again = refcomp.replay(s.outputs, s.steps[:count])
    assert again.steps == s.steps[:count]
    step_by_step = refcomp.replay(s.outputs, again.steps)
    names = [axis.name for axis in again[c].leaf_iter_vars]
    assert names == [axis.name for axis in step_by_step[c].leaf_iter_vars]
    if count == len(s.steps):
        assert names == [axis.name for axis in s[c].leaf_iter_vars]


def test_a_tensor_of_another_computation_is_refused():
    c, other = _matmul(), _matmul()
    s = refcomp.create_schedule(c.op)
    with pytest.raises(UserError) as caught:
        s[other]
    assert "C is not part of this schedule" in str(caught.value)
    assert "stages A, B, C" in str(caught.value)


def test_a_refused_primitive_names_the_users_line_and_leaves_no_trace():
    c = _matmul()
    s = refcomp.create_schedule(c.op)
    with pytest.raises(UserError) as caught:
        s[c].vectorize(s[c].op.reduce_axis[0])
    assert quoted_call(caught.value) == "s[c].vectorize(s[c].op.reduce_axis[0])"
    assert not s.steps and not s[c].stage.loops.marks


def test_stages_of_one_name_are_told_apart():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="T")
    c = refcomp.compute((4,), lambda i: b[i] + 1.0, name="T")
    s = refcomp.create_schedule(c)
    assert [stage.name for stage in s.stages] == ["A", "T", "T.1"]


def test_several_outputs():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((4,), lambda i: a[i] * 2.0, name="C")
    s = refcomp.create_schedule([b.op, c])
    assert [stage.is_output for stage in s.stages] == [False, True, True]


@pytest.mark.parametrize(("given", "told"), [(None, "None"), ([], "nothing"), ([3], "3")])
def test_only_operations_and_tensors_are_scheduled(given, told):
    with pytest.raises(UserError, match=f"a schedule cannot compute {told}"):
        refcomp.create_schedule(given)


def test_a_stage_is_named_by_its_tensor_or_operation():
    with pytest.raises(UserError, match="is not part of this schedule"):
        refcomp.create_schedule(_matmul())[[0]]


def test_a_copy_without_marks_is_bound_for_another_target():
    a = refcomp.placeholder((32,), name="A")
    b = refcomp.compute((32,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((32,), lambda i: b[i] * 2.0, name="C")
    host = refcomp.create_schedule(c.op)
    outer, inner = host[c].split(c.op.axis[0], factor=8)
    host[b].compute_at(host[c], outer)
    host[c].parallel(outer)
    host[c].vectorize(inner)
    gpu = host.copy(marks=False)
    assert [step.primitive for step in gpu.steps] == ["split", "compute_at"]
    outer, inner = gpu[c].leaf_iter_vars
    gpu[c].bind(outer, refcomp.thread_axis("blockIdx.x"))
    gpu[c].bind(inner, refcomp.thread_axis("threadIdx.x"))
    assert "range(4) blockIdx.x" in refcomp.print_func(refcomp.lower(gpu, [a, c]))
    assert "range(4) parallel" in refcomp.print_func(refcomp.lower(host, [a, c]))
    given = np.arange(32, dtype="float32")
    for s in (host, gpu):
        found = np.zeros(32, "float32")
        refcomp.build(s, [a, c], target="interp")(given, found)
        assert (found == (given + 1) * 2).all()


def test_a_copy_is_a_schedule_of_its_own():
    c = _matmul()
    s = refcomp.create_schedule(c.op)
    s[c].unroll(c.op.axis[1])
    again = s.copy()
    again[c].parallel(c.op.axis[0])
    assert [step.primitive for step in s.steps] == ["unroll"]
    assert [step.primitive for step in again.steps] == ["unroll", "parallel"]
    with pytest.raises(UserError, match="marks is 1(.|\n)*pass True or False"):
        s.copy(marks=1)
