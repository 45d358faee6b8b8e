"""Loops over reduction axes whose ranges depend on other axes, or on elements of tensors."""

import numpy as np
import pytest

import refcomp
from refcomp import oracle
from refcomp.foundation.errors import UserError
from refcomp.ir.printer import print_func
from refcomp.passes.insert_barriers import insert_barriers

A = refcomp.placeholder((10, 10), name="A")
P = refcomp.placeholder((11,), "int32", name="P")
X = refcomp.placeholder((30,), name="X")
POINTERS = np.array([0, 3, 3, 7, 8, 6, 12, 15, 20, 29, 30], "int32")  # row 4 has -2 elements


def _lower_triangle():
    def row(i):
        k = refcomp.reduce_axis((0, i + 1), name="k")
        return refcomp.sum(A[i, k], axis=k)

    return refcomp.compute((10,), row, name="C"), [A]


def _upper_triangle():
    def row(i):
        k = refcomp.reduce_axis((i, 10), name="k")
        return refcomp.sum(A[i, k], axis=k)

    return refcomp.compute((10,), row, name="C"), [A]


def _triangle_of_pairs():
    def row(i):
        k = refcomp.reduce_axis((0, i + 1), name="k")
        j = refcomp.reduce_axis((k, i + 1), name="j")
        return refcomp.sum(A[k, j], axis=[k, j])

    return refcomp.compute((10,), row, name="C"), [A]


def _rows():
    def row(i):
        k = refcomp.reduce_axis((P[i], P[i + 1]), name="k")
        return refcomp.sum(X[k], axis=k)

    return refcomp.compute((10,), row, name="C"), [P, X]


def _lengths():
    def row(i):
        k = refcomp.reduce_axis((0, P[i + 1] - P[i]), name="k")
        return refcomp.sum(X[P[i] + k], axis=k)

    return refcomp.compute((10,), row, name="C"), [P, X]


TRIANGLES = (_lower_triangle, _upper_triangle, _triangle_of_pairs)
MAKERS = (*TRIANGLES, _rows, _lengths)


def _split(s, c):
    s[c].split(c.op.reduce_axis[0], 4)


def _parts(s, c):
    s[c].split(c.op.reduce_axis[0], nparts=3)


def _tiled(s, c):
    outer, inner = s[c].split(c.op.axis[0], 4)
    last = c.op.reduce_axis[-1]
    k = s[c].split(last, 3)[0]
    s[c].unroll(inner)
    s[c].parallel(outer)
    return k


def _factored(s, c):
    _, inner = s[c].split(c.op.reduce_axis[-1], 4)
    made = s.rfactor(c, inner)
    s[made].compute_at(s[c], s[c].op.axis[0])


def _cached(s, c):
    (made,) = [s.cache_write(c, "local")]
    outer, _ = s[c].split(c.op.axis[0], 3)
    s[made].compute_at(s[c], outer)
    s[made].split(made.op.reduce_axis[0], 2)


def _copied(s, c):
    outer, _ = s[c].split(c.op.axis[0], 4)
    source = c.op.inputs[-1]
    copy = s.cache_read(source, "global", [c])
    s[copy].compute_at(s[c], outer)


def _copied_inside(s, c):
    s[c].split(c.op.axis[0], 4)
    outer, _ = s[c].split(c.op.reduce_axis[0], 3)
    copy = s.cache_read(c.op.inputs[0] if c.op.inputs[0] in (A, X) else X, "global", [c])
    s[copy].compute_at(s[c], outer)


STEPS = (_split, _parts, _tiled, _factored, _cached, _copied, _copied_inside)


def _outside(s, c):
    s[c].reorder(c.op.reduce_axis[0], c.op.axis[0])


def _between(s, c):
    outer, inner = s[c].split(c.op.axis[0], 4)
    s[c].reorder(outer, c.op.reduce_axis[0], inner)
    s[c].vectorize(inner)


def _factored_outer(s, c):
    outer, _ = s[c].split(c.op.reduce_axis[0], 4)
    s.rfactor(c, outer)


def _factored_whole(s, c):
    s.rfactor(c, c.op.reduce_axis[0])


WIDENED = (_outside, _between, _factored_outer, _factored_whole)


def _hold(maker, schedule, target=None):
    c, inputs = maker()
    s = refcomp.create_schedule(c)
    schedule(s, c)
    feeds = {
        A: np.arange(100, dtype="float32").reshape(10, 10),
        P: POINTERS,
        X: np.arange(30, dtype="float32"),
    }
    arrays = [feeds[tensor] for tensor in inputs]
    (expected,) = oracle.evaluate([c], dict(zip(inputs, arrays, strict=True)))
    made = np.full(10, 99, "float32")
    if target is None:
        oracle.interpret(refcomp.lower(s, [*inputs, c]), [*arrays, made])
    else:
        refcomp.build(s, [*inputs, c], target)(*arrays, made)
    assert made.tolist() == expected.tolist()
    return s, [*inputs, c]


@pytest.mark.parametrize("schedule", STEPS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_schedule_changes_nothing(maker, schedule):
    _hold(maker, schedule)


@pytest.mark.llvm
@pytest.mark.parametrize("schedule", STEPS)
@pytest.mark.parametrize("maker", MAKERS)
def test_machine_code(maker, schedule):
    _hold(maker, schedule, "llvm")


@pytest.mark.parametrize("schedule", WIDENED)
@pytest.mark.parametrize("maker", TRIANGLES)
def test_a_loop_outside_of_the_axis_that_bounds_it_goes_over_all_ranges(maker, schedule):
    _hold(maker, schedule)


def _text(maker, schedule):
    c, inputs = maker()
    s = refcomp.create_schedule(c)
    schedule(s, c)
    return print_func(refcomp.lower(s, [*inputs, c], "f"))


def test_a_loop_inside_has_as_many_iterations_as_its_range():
    assert "for k in range(i + 1) {" in _text(_lower_triangle, lambda s, c: None)
    assert "for k in range(i, extent=10 - i) {" in _text(_upper_triangle, lambda s, c: None)
    text = _text(_lower_triangle, _split)
    assert "for k.outer in range((i + 4) // 4) {" in text and "if (k.outer * 4 +" in text
    assert "if" not in _text(_lower_triangle, lambda s, c: None)


def test_a_loop_outside_has_a_guard():
    text = _text(_lower_triangle, _outside)
    assert "for k in range(10) {" in text and "if (k <= i) {" in text
    text = _text(_lower_triangle, _between)
    assert "for k in range(" in text and "i.outer * 4 + 4" in text  # not more than the tile needs


def test_a_bound_that_is_read_is_read_once_for_each_loop():
    text = _text(_lengths, _split)
    assert "let k.extent: i64 = max(i64(P[i + 1] - P[i]), 0) {" in text
    assert "for k.outer in range((k.extent + 3) // 4) {" in text


def test_a_bound_is_not_read_where_a_guard_inside_of_the_loop_fails():
    text = _text(_rows, _copied_inside)
    assert "= if_then_else(i.outer * 4 + i.inner < 10, i64(P[" in text


@pytest.mark.parametrize("schedule", [_outside, _between])
def test_a_loop_outside_of_the_axis_that_reads_its_bounds_is_refused(schedule):
    with pytest.raises(UserError, match="loop k of stage C has an unknown number of it") as caught:
        _text(_rows, schedule)
    assert "reorder so that i" in str(caught.value) and "is outside of k" in str(caught.value)


@pytest.mark.parametrize("schedule", [_factored_outer, _factored_whole])
def test_rfactor_of_a_loop_whose_extent_is_read_is_refused(schedule):
    with pytest.raises(UserError, match="cannot factor the reduction of stage C") as caught:
        _text(_rows, schedule)
    assert "split it by a factor, and call rfactor for the inner loop" in str(caught.value)


def test_what_bounds_a_loop_is_computed_outside_of_it():
    def inside(s, c):
        copy = s.cache_read(P, "global", [c])
        s[copy].compute_at(s[c], c.op.reduce_axis[0])

    with pytest.raises(UserError, match="a range that is read from P.global, which is computed i"):
        _text(_rows, inside)

    def around(s, c):
        copy = s.cache_read(P, "global", [c])
        s[copy].compute_at(s[c], c.op.axis[0])

    _hold(_rows, around)


def test_fused_axes_of_a_triangle():
    def fused(s, c):
        s[c].fuse(*c.op.reduce_axis)

    _hold(_triangle_of_pairs, fused)


def test_a_loop_of_a_range_that_depends_on_an_axis_has_no_constant_extent():
    with pytest.raises(UserError, match="the number of iterations is not a constant"):
        _text(_lower_triangle, lambda s, c: s[c].unroll(c.op.reduce_axis[0]))


def test_the_result_is_initialised_where_the_reduction_is_empty():
    """The loop over k has an iteration only where i < 10, but that says nothing outside of it."""
    text = _text(_upper_triangle, lambda s, c: s[c].split(c.op.axis[0], 4))
    assert text.index("if (i.outer * 4 + i.inner < 10) {") < text.index("= 0.0f32")


def _shared_inside(s, c):
    """Threads compute rows of their own, and fill shared memory together in each step of k."""
    block, thread = s[c].split(c.op.axis[0], 4)
    s[c].bind(block, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(thread, refcomp.thread_axis("threadIdx.x"))
    k, _ = s[c].split(c.op.reduce_axis[-1], 2)
    copy = s.cache_read(c.op.inputs[0], "shared", [c])
    s[copy].compute_at(s[c], k)
    _, inner = s[copy].split(copy.op.axis[-1], 4)
    s[copy].bind(inner, refcomp.thread_axis("threadIdx.x"))


def test_all_threads_of_a_group_run_a_loop_with_shared_memory_equally_often():
    text = _text(_lower_triangle, _shared_inside)
    (line,) = [line for line in text.splitlines() if "for k.outer in" in line]
    assert "threadIdx" not in line and "blockIdx.x" in line


def test_kernels_with_shared_memory():
    c, inputs = _lower_triangle()
    s = refcomp.create_schedule(c)
    _shared_inside(s, c)
    func = refcomp.lower(s, [*inputs, c])
    made = insert_barriers(func)
    a, found = np.arange(100, dtype="float32").reshape(10, 10), np.full(10, 99, "float32")
    oracle.interpret(made, [a, found])
    assert found.tolist() == [a[i, : i + 1].sum() for i in range(10)]


def _local_sums(s, c):
    """Each thread computes a row in local memory, in loops of a stage of its own."""
    local = s.cache_write(c, "local")
    block, thread = s[c].split(c.op.axis[0], 4)
    s[c].bind(block, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(thread, refcomp.thread_axis("threadIdx.x"))
    s[local].compute_at(s[c], thread)
    s[local].split(local.op.reduce_axis[-1], 2)


@pytest.mark.parametrize("maker", MAKERS)
def test_threads_around_a_stage_decide_how_often_its_loops_run(maker):
    _hold(maker, _local_sums)
    text = _text(maker, _local_sums)
    (line,) = [line for line in text.splitlines() if ".outer in" in line]
    assert "threadIdx.x" in line or "k.extent" in line


def test_shared_memory_in_a_loop_whose_bounds_are_read_is_refused():
    def shared(s, c):
        s[c].bind(c.op.axis[0], refcomp.thread_axis("threadIdx.x"))
        copy = s.cache_read(X, "shared", [c])
        s[copy].compute_at(s[c], c.op.reduce_axis[0])

    with pytest.raises(UserError, match="loop k of stage C has an unknown number") as caught:
        _text(_rows, shared)
    assert "all threads of a group fill shared memory inside of the loop" in str(caught.value)
