"""split, fuse, reorder and marks on the loops of hybrid functions: texts and refusals."""

# ruff: noqa: F821

import re
from functools import partial

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.hybrid import script

N = refcomp.var("n")
A = refcomp.placeholder((N,), name="a")


@script
def outer(a):
    c = output_tensor((a.shape[0], 10), "float32")
    for i in range(a.shape[0]):
        for j in range(2, 10):
            c[i, j] = a[i] * j
    return c


@script
def sums(a):
    s = output_tensor((4,), "float32")
    for i in range(4):
        for k in range(1, 8):
            for m in range(i):
                s[i] = s[i] * 2.0 + a[k] + m
    return s


@script
def orders(a):
    s = output_tensor((1,), "float32")
    for k in range(4):
        for m in range(4):
            s[0] = s[0] + a[k] * a[m]
    for p in range(4):
        s[0] = s[0] + a[p]
        for q in range(4):
            s[0] = s[0] * a[q]
    return s


def stage_of(tensor):
    return refcomp.create_schedule(tensor)[tensor]


def text(stage):
    return str(stage.stage.loops.statement)


def refused(call, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        call()
    return caught.value


def test_split_guards_inside_of_directly_nested_loops():
    c = outer(A)
    stage = stage_of(c)
    i, j = c.op.axis
    io, ii = stage.split(i, factor=4)
    jo, ji = stage.split(j, nparts=4)  # 8 iterations: no guard
    assert [axis.name for axis in stage.leaf_iter_vars] == [
        *("i.outer", "i.inner", "j.outer", "j.inner")
    ]
    assert (
        text(stage)
        == """\
for i.outer in range((n + 3) // 4) {
  for i.inner in range(4) {
    for j.outer in range(4) {
      for j.inner in range(2) {
        if (i.outer * 4 + i.inner < n) {
          c[i.outer * 4 + i.inner, 2 + (j.outer * 2 + j.inner)] = \
a[i.outer * 4 + i.inner] * f32(2 + (j.outer * 2 + j.inner))
        }
      }
    }
  }
}"""
    )
    stage.reorder(jo, io, ji, ii)
    heads = re.findall(r"for (\S+) in", text(stage))
    assert heads == ["j.outer", "i.outer", "j.inner", "i.inner"]
    fused = stage.fuse(jo, io)
    assert fused.name == "j.outer.i.outer.fused"
    assert "for j.outer.i.outer.fused in range((n + 3) // 4 * 4)" in text(stage)


def test_tile_and_a_single_iteration():
    c = outer(A)
    stage = stage_of(c)
    stage.tile(*c.op.axis, 2, 3)
    assert re.findall(r"for (\S+) in", text(stage)) == ["i.outer", "j.outer", "i.inner", "j.inner"]
    single = stage.fuse()
    assert text(stage).startswith("for single in range(1) {")
    assert single.name == "single"


def test_ordered_loops_keep_their_order():
    s = orders(A)
    k, m, p, q = s.op.axis
    stage = stage_of(s)
    said = refused(lambda: stage.reorder(m, k), "it is ordered, and would come before k")
    assert "data-parallel loops may stand anywhere" in said.remedy
    refused(lambda: stage.tile(k, m, 2, 2), "it is ordered, and would come before k")
    refused(lambda: stage.reorder(q, p), "it is not nested directly with p")
    refused(lambda: stage.reorder(p, k), "it is not nested directly with k")
    refused(lambda: stage.fuse(p, q), "it is not nested directly with p")
    fused = stage.fuse(k, m)
    stage.unroll(stage.split(fused, 3)[1])
    for mark in (stage.vectorize, stage.parallel):
        said = refused(partial(mark, p), "its iterations may depend on each other")
        assert "no index of s keeps apart what they access" in said.why
        assert "in the hybrid function" in said.remedy
    outer_part = stage.leaf_iter_vars[0]
    refused(lambda: stage.parallel(outer_part), "no index of s keeps apart")
    thread = refcomp.thread_axis("threadIdx.x")
    refused(lambda: stage.bind(q, thread), "its iterations may depend on each other")


def test_data_parallel_loops_move_past_ordered_ones():
    s = sums(A)
    i, k, m = s.op.axis
    stage = stage_of(s)
    assert [str(axis.kind) for axis in (i, k, m)] == ["data_parallel", "ordered", "ordered"]
    said = refused(
        lambda: stage.reorder(k, m, i), "its iterations depend on i, which would be inside"
    )
    assert said.remedy == "keep it inside i"
    stage.reorder(k, i)
    assert re.findall(r"for (\S+) in", text(stage)) == ["k", "i", "m"]
    refused(lambda: stage.fuse(i, m), "it is an ordered axis and i a data_parallel axis")


def test_loops_that_read_how_often_they_run():
    @script
    def counted(a):
        c = output_tensor((4, 9), "float32")
        for i in range(4):
            for j in range(int64(a[i])):
                c[i, j] = 1.0
        return c

    c = counted(A)
    i, j = c.op.axis
    stage = stage_of(c)
    refused(lambda: stage.fuse(i, j), "its iterations depend on i")
    stage.split(i, 3)
    # A skipped iteration does not read a[i].
    assert """\
    if (i.outer * 3 + i.inner < 4) {
      for j in range(i64(a[i.outer * 3 + i.inner])) {""" in text(stage)


def test_split_guards_iterations_that_depend_on_a_negative_index():
    @script
    def halves(a):
        c = output_tensor((6, 8), "float32")
        for p in range(6):
            for q in range(8):
                c[p, q] = 0.0
        for i in range(-3, 3):
            for j in range(8 if i >= 0 else 5):
                c[i + 3, j] = a[j]
        return c

    a = refcomp.placeholder((8,), name="a")
    c = halves(a)
    schedule = refcomp.create_schedule(c)
    schedule[c].split(c.op.axis[3], factor=4)
    values = np.arange(1, 9, dtype="float32")
    got = np.ones((6, 8), "float32")
    refcomp.build(schedule, [a, c], "interp")(values, got)
    np.testing.assert_array_equal(got, halves(values))


def test_fused_loops_of_negative_extents_do_not_run():
    @script
    def counts(a, n):
        c = output_tensor((1,), "float32")
        c[0] = a[0]
        for _i in range(n - 5):
            for _j in range(n - 4):
                for _k in range(n - 3):
                    c[0] = c[0] + 1.0
        return c

    a = refcomp.placeholder((1,), name="a")
    n = refcomp.var("n")
    c = counts(a, n)
    schedule = refcomp.create_schedule(c)
    schedule[c].fuse(*c.op.axis)
    module = refcomp.build(schedule, [a, n, c], "interp")
    for number, wanted in [(1, 7), (4, 7), (5, 7), (7, 31)]:
        got = np.zeros(1, "float32")
        module(np.full(1, 7, "float32"), number, got)
        assert got[0] == wanted


@pytest.mark.parametrize("primitive", ["prefetch", "compute_at", "rfactor", "tensorize"])
def test_other_primitives_are_refused(primitive):
    c = outer(A)
    d = refcomp.compute((4,), lambda x: c[x, 0], name="d")
    schedule = refcomp.create_schedule(d)
    i = c.op.axis[0]
    calls = {
        "prefetch": lambda: schedule[c].prefetch(A, i, 1),
        "compute_at": lambda: schedule[d].compute_at(schedule[c], i),
        "rfactor": lambda: schedule.rfactor(c, i),
        "tensorize": lambda: schedule[c].tensorize(i, None),
    }
    with pytest.raises(UserError) as caught:
        calls[primitive]()
    assert caught.value.remedy
    if primitive == "prefetch":
        assert caught.value.why.startswith("it is a loop of a hybrid function")


@script
def counted(n, a):
    c = output_tensor((4, 8), "float32")
    for i in range(a.shape[0]):
        for j in range(n[0]):
            c[i, j] = a[i] * j
    return c


@script
def counted_last(n, a):
    c = output_tensor((4, 8), "float32")
    for i in range(a.shape[0]):
        for j in range(n[n.shape[0] - 1]):
            c[i, j] = a[i] * j
    return c


@script
def counted_by_itself(n):
    c = output_tensor((8,), "int32")
    c[0] = n[0]
    for _i in range(3):
        for j in range(c[0]):
            c[j] = c[j] + 1
    return c


COUNTS = refcomp.placeholder((N,), "int32", name="n")
COUNT = refcomp.placeholder((1,), "int32", name="n")
FOUR = refcomp.placeholder((4,), name="a")


def test_an_extent_that_exists_without_the_loops_around_it_moves_out():
    """There is always an element 0 of one, and 4 iterations read what a shape of n may have."""
    for made in (counted(COUNT, A), counted_last(COUNTS, FOUR)):
        stage = stage_of(made)
        i, j = made.op.axis
        stage.reorder(j, i)
        assert text(stage).startswith("for j")


@pytest.mark.parametrize("move", ["reorder", "tile"])
def test_an_extent_is_not_read_outside_of_loops_that_may_not_run(move):
    made = counted_last(COUNTS, A)
    stage = stage_of(made)
    i, j = made.op.axis
    before = text(stage)
    call = partial(stage.reorder, j, i) if move == "reorder" else partial(stage.tile, i, j, 2, 2)
    refused(call, "which may lie outside of n_1 if i has no iterations")
    assert text(stage) == before


def test_an_extent_that_the_loops_write_is_not_read_before_them():
    made = counted_by_itself(COUNT)
    stage = stage_of(made)
    i, j = made.op.axis
    error = refused(
        partial(stage.reorder, j, i), "its number of iterations is read from c, which _i writes"
    )
    assert error is None or "keep it inside _i" in str(error)


def test_refusals_say_what_to_write_instead():
    stage = stage_of(outer(A))
    i, j = stage.op.axis
    with pytest.raises(UserError) as caught:
        stage.tensorize(j, None)
    assert "tensorize that; or call the intrinsic in extern(...)" in caught.value.remedy
    with pytest.raises(UserError) as caught:
        stage.prefetch(A, i, 1)
    assert "prefetch in a stage that computes" in caught.value.remedy
    with pytest.raises(UserError) as caught:
        stage.schedule.rfactor(stage.op.outputs[0], i)
    assert "keep partial results in an array of the hybrid function" in caught.value.remedy
