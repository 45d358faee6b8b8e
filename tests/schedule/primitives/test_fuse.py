import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError


def _stage():
    a = refcomp.placeholder((4, 5, 6), name="A")
    k = refcomp.reduce_axis((0, 6), "k")
    b = refcomp.compute((4, 5), lambda i, j: refcomp.sum(a[i, j, k], axis=k), name="B")
    return refcomp.create_schedule(b.op)[b], *b.op.axis, k


def test_fuse_makes_one_loop_of_the_product():
    stage, i, j, _ = _stage()
    fused = stage.fuse(i, j)
    assert [axis.name for axis in stage.leaf_iter_vars] == ["i.j.fused", "k"]
    assert fused.extent.value == 20 and fused.kind == "data_parallel"


def test_more_than_two_axes():
    a = refcomp.placeholder((2, 3, 4), name="A")
    b = refcomp.compute((2, 3, 4), lambda x, y, z: a[x, y, z] + 1.0, name="B")
    stage = refcomp.create_schedule(b.op)[b]
    assert stage.fuse(*b.op.axis).extent.value == 24


def test_one_loop_is_itself():
    stage, i, _, _ = _stage()
    assert stage.fuse(i) is i
    assert [axis.name for axis in stage.leaf_iter_vars] == ["i", "j", "k"]


def test_no_loops_make_one_of_a_single_iteration_around_all_others():
    a = refcomp.placeholder((6,), name="A")
    k = refcomp.reduce_axis((0, 6), "k")
    b = refcomp.compute((), lambda: refcomp.sum(a[k], axis=k), name="B")
    schedule = refcomp.create_schedule(b.op)
    single = schedule[b].fuse()
    assert [axis.name for axis in schedule[b].leaf_iter_vars] == ["single", "k"]
    schedule[b].split(single, factor=4)
    replayed = refcomp.replay([b.op], schedule.steps)
    for each in (schedule, replayed):
        x, y = np.arange(6, dtype="float32"), np.zeros((), "float32")
        refcomp.oracle.interpret(refcomp.lower(each, [a, b]), [x, y])
        assert y == 15


def test_axes_must_be_adjacent_and_in_order():
    stage, i, j, _ = _stage()
    with pytest.raises(UserError, match=r"not directly inside j(.|\n)*reorder first"):
        stage.fuse(j, i)


def test_kinds_do_not_mix():
    stage, _, j, k = _stage()
    with pytest.raises(UserError, match="it is a reduction axis and j a data_parallel axis"):
        stage.fuse(j, k)


def test_a_marked_loop_cannot_be_fused():
    stage, i, j, _ = _stage()
    stage.unroll(j)
    with pytest.raises(UserError, match=r"it is unrolled already(.|\n)*fuse first"):
        stage.fuse(i, j)
