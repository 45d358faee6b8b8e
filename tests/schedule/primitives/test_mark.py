import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError


def _stage(extent=16):
    a = refcomp.placeholder((extent, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    b = refcomp.compute((extent,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    return refcomp.create_schedule(b.op)[b], b.op.axis[0], k


@pytest.mark.parametrize(
    ("primitive", "mark"),
    [("vectorize", "vectorized"), ("unroll", "unrolled"), ("parallel", "parallel")],
)
def test_marks(primitive, mark):
    stage, i, _ = _stage()
    getattr(stage, primitive)(i)
    assert stage.stage.loops.marks[i] == mark
    with pytest.raises(UserError, match=f"it is {mark} already"):
        getattr(stage, primitive)(i)


def test_a_second_mark_is_refused_and_offers_a_copy_for_the_other_target():
    stage, i, _ = _stage()
    stage.parallel(i)
    offer = r"for another target, mark a copy: schedule\.copy\(marks=False\)"
    with pytest.raises(UserError, match=rf"it is parallel already(.|\n)*{offer}"):
        stage.bind(i, refcomp.thread_axis("blockIdx.x"))
    with pytest.raises(UserError) as caught:
        stage.split(i, 4)  # no mark
    assert "schedule.copy" not in str(caught.value)


@pytest.mark.parametrize("primitive", ["vectorize", "parallel"])
def test_reduction_axes_are_refused(primitive):
    stage, _, k = _stage()
    with pytest.raises(UserError, match="its iterations all update the same elements"):
        getattr(stage, primitive)(k)


def test_a_reduction_axis_may_be_unrolled():
    stage, _, k = _stage()
    stage.unroll(k)
    assert stage.stage.loops.marks[k] == "unrolled"


@pytest.mark.parametrize("primitive", ["vectorize", "unroll"])
def test_symbolic_extents_are_refused_with_a_remedy(primitive):
    stage, i, _ = _stage(refcomp.var("n"))
    with pytest.raises(
        UserError, match=rf"not a constant(.|\n)*split it by a factor and {primitive}"
    ):
        getattr(stage, primitive)(i)


def test_a_symbolic_extent_may_be_parallel():
    stage, i, _ = _stage(refcomp.var("n"))
    stage.parallel(i)
    assert stage.stage.loops.marks[i] == "parallel"


def test_the_vector_length_is_bounded():
    stage, i, _ = _stage(1025)
    with pytest.raises(UserError, match="the vector length 1025 is more than 1024"):
        stage.vectorize(i)


@pytest.mark.llvm
@pytest.mark.parametrize("target", ["llvm", "interp"])
def test_a_loop_without_iterations_may_be_vectorized(target):
    a = refcomp.placeholder((0,), name="A")
    b = refcomp.compute((0,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((0,), lambda i: b[i] * 2.0, name="C")
    s = refcomp.create_schedule(c)
    s[c].vectorize(c.op.axis[0])
    refcomp.build(s, [a, c], target)(np.zeros(0, np.float32), np.zeros(0, np.float32))
