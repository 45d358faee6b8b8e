import pytest

import refcomp
from refcomp.foundation.errors import Unsupported, UserError


def _stage(extent=16, is_output=True):
    a = refcomp.placeholder((extent, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    b = refcomp.compute((extent,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    c = refcomp.compute((extent,), lambda i: b[i] + 1.0, name="C")
    s = refcomp.create_schedule(b.op if is_output else c.op)
    return s[b], b.op.axis[0], k


def _threads(tag="threadIdx.x"):
    return refcomp.thread_axis(tag)


def test_a_loop_is_bound_to_a_thread_axis():
    stage, i, _ = _stage()
    outer, inner = stage.split(i, factor=4)
    stage.bind(outer, _threads("blockIdx.x"))
    stage.bind(inner, _threads())
    assert stage.stage.loops.marks == {outer: "blockIdx.x", inner: "threadIdx.x"}


def test_a_bound_loop_may_change_its_place():
    stage, i, k = _stage()
    stage.bind(i, _threads())
    stage.reorder(k, i)
    assert stage.leaf_iter_vars == (k, i)


@pytest.mark.parametrize("primitive", ["split", "vectorize", "unroll", "parallel", "bind"])
def test_a_bound_loop_is_not_changed_any_more(primitive):
    stage, i, _ = _stage()
    stage.bind(i, _threads())
    args = {"split": (i, 4), "bind": (i, _threads("threadIdx.y"))}.get(primitive, (i,))
    with pytest.raises(
        UserError, match=f"cannot {primitive}(ize)? axis i(.|\n)*bound to threadIdx.x"
    ):
        getattr(stage, primitive)(*args)


def test_bound_loops_are_not_fused():
    a = refcomp.placeholder((4, 4), name="A")
    b = refcomp.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="B")
    stage = refcomp.create_schedule(b)[b]
    stage.bind(b.op.axis[1], _threads())
    with pytest.raises(UserError, match=r"cannot fuse axis j(.|\n)*bound to threadIdx.x already"):
        stage.fuse(*b.op.axis)


def test_a_vectorized_loop_is_not_bound():
    stage, i, _ = _stage()
    stage.vectorize(i)
    with pytest.raises(UserError, match="it is vectorized already"):
        stage.bind(i, _threads())


def test_only_a_thread_axis_is_bound_to():
    stage, i, k = _stage()
    with pytest.raises(UserError, match=r"k is not a thread axis(.|\n)*thread_axis"):
        stage.bind(i, k)
    with pytest.raises(UserError, match="'threadIdx.x' is not a thread axis"):
        stage.bind(i, "threadIdx.x")


def test_a_tag_is_used_once_in_a_stage():
    stage, i, _ = _stage()
    outer, inner = stage.split(i, factor=4)
    stage.bind(outer, _threads())
    with pytest.raises(UserError, match=r"axis i.outer of this stage is bound(.|\n)*fuse both"):
        stage.bind(inner, _threads())


def test_a_reduction_axis_of_a_constant_number_of_threads_from_0():
    stage, _, k = _stage()
    with pytest.raises(Unsupported, match=r"bind axis k(.|\n)*groups of threads cannot wait"):
        stage.bind(k, refcomp.thread_axis("blockIdx.x"))
    assert not stage.stage.loops.marks
    with pytest.raises(UserError, match=r"iterations, and threadIdx.x has 64 threads"):
        stage.bind(k, refcomp.thread_axis((0, 64), "threadIdx.x"))
    stage.bind(k, _threads())
    assert stage.stage.loops.marks[k] == "threadIdx.x"


@pytest.mark.parametrize(("begin", "end"), [(0, None), (0, 0), (2, 5)])
def test_reduction_axes_that_no_threads_can_share_out(begin, end):
    end = refcomp.var("m") if end is None else end
    k = refcomp.reduce_axis((begin, end), "k")
    a = refcomp.placeholder((4, end), name="A")
    b = refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    stage = refcomp.create_schedule(b)[b]
    wanted = "must have a constant number" if begin == 0 else "it is a .* that begins at 2"
    with pytest.raises(UserError, match=wanted + r"(.|\n)*split it by a factor"):
        stage.bind(k, _threads())


def test_a_loop_of_another_length_than_the_thread_axis():
    stage, i, _ = _stage()
    with pytest.raises(UserError, match=r"it has 16 iterations, and threadIdx.x has 64 threads"):
        stage.bind(i, refcomp.thread_axis((0, 64), "threadIdx.x"))
    _, inner = stage.split(i, factor=4)
    stage.bind(inner, refcomp.thread_axis((0, 4), "threadIdx.x"))


def test_the_length_of_a_loop_that_compute_at_may_change_is_left_to_lowering():
    stage, i, _ = _stage(is_output=False)
    stage.bind(i, refcomp.thread_axis((0, 64), "threadIdx.x"))
    assert stage.stage.loops.marks[i] == "threadIdx.x"
