"""Pragmas of parallel loops: what they mean on each target, and where they are refused."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError

N = rc.var("n")
A = rc.placeholder((N,), name="A")
B = rc.compute((N,), lambda i: A[i] * 2.0, name="B")
C = rc.compute((N,), lambda i: B[i] + A[i], name="C")


def scheduled():
    schedule = rc.create_schedule(C)
    (i,) = B.op.axis
    schedule[B].pragma(i, "parallel_barrier_when_finish")
    schedule[B].pragma(i, "parallel_stride_pattern")
    schedule[B].parallel(i)
    outer, inner = schedule[C].split(C.op.axis[0], 8)
    schedule[C].parallel(outer)
    schedule[C].vectorize(inner)
    schedule[C].pragma(outer, "parallel_stride_pattern")
    return schedule


def test_a_barrier_is_the_end_of_every_parallel_loop():
    text = str(rc.lower(scheduled(), [A, C]))
    assert "barrier" not in text
    assert text.count("pragma parallel_stride_pattern 1 {") == 2


@pytest.mark.parametrize("size", [0, 1, 5, 1000])
@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_results_are_the_same(target, size):
    given = np.arange(size, dtype=np.float32)
    got = np.zeros(size, np.float32)
    rc.build(scheduled(), [A, C], target)(given, got)
    np.testing.assert_array_equal(got, given * 3)


@pytest.mark.pocl
def test_threads_of_a_gpu_are_neighbours_anyway():
    device = rc.device("opencl")
    given = rc.array(np.arange(100, dtype=np.float32), device)
    got = rc.array(np.zeros(100, np.float32), device)
    rc.build(scheduled(), [A, C], "opencl")(given, got)
    np.testing.assert_array_equal(got.asnumpy(), np.arange(100) * 3)


def test_a_parallel_loop_inside_of_another_keeps_no_pragma():
    b = rc.compute((4, 4), lambda i, j: A[i] + j, name="B")
    schedule = rc.create_schedule(b)
    for axis in b.op.axis:
        schedule[b].parallel(axis)
        schedule[b].pragma(axis, "parallel_stride_pattern")
    got = np.zeros((4, 4), np.float32)
    rc.build(schedule, [A, b], "interp")(np.zeros(4, np.float32), got)
    assert got[3].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("key", ["parallel_stride_pattern", "parallel_barrier_when_finish"])
def test_they_are_for_parallel_loops(key):
    schedule = rc.create_schedule(C)
    schedule[C].pragma(C.op.axis[0], key)
    with pytest.raises(UserError, match=f"{key} is for parallel loops") as caught:
        rc.lower(schedule, [A, C])
    assert caught.value.remedy == "call s[C].parallel(i), or leave the pragma out"
