"""Marks, pragmas and threads on the loops of hybrid functions, as lowering writes them."""

# ruff: noqa: F821

import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.hybrid import script

A = refcomp.placeholder((6,), "int32", name="a")
DATA = np.array([3, -1, 4, 1, -5, 9], np.int32)


@script
def scaled(a):
    c = output_tensor((6, 8), "int32")
    for i in range(6):
        for k in range(2, 4):
            for j in range(8):
                c[i, j] = a[i] * k + j
    for x in range(6):
        for y in range(1, 8):
            c[x, y] = c[x, y] - x
        c[x, 0] = 7
    return c


def scheduled():
    c = scaled(A)
    return c, refcomp.create_schedule(c)


def thread(tag):
    return refcomp.thread_axis(tag)


def bound():
    c, schedule = scheduled()
    i, _, j, x, y = c.op.axis
    schedule[c].bind(i, thread("threadIdx.x"))
    schedule[c].bind(j, thread("blockIdx.y"))
    schedule[c].bind(x, thread("blockIdx.x"))
    schedule[c].vectorize(y)
    return c, schedule


def test_marks_and_pragmas():
    c, schedule = scheduled()
    i, k, j, *_ = c.op.axis
    schedule[c].parallel(i)
    schedule[c].pragma(k, "auto_unroll_max_step", 16)
    schedule[c].vectorize(j)
    lines = str(refcomp.lower(schedule, [A, c]).body).splitlines()
    assert [line.strip() for line in lines[1:5]] == [
        "for i in range(6) parallel {",
        "pragma auto_unroll_max_step 16 {",
        "for k in range(2, extent=2) {",
        "for j in range(8) vectorized {",
    ]


def test_bound_loops_stand_at_the_top_of_a_kernel():
    c, schedule = bound()
    heads = re.findall(r"for (\S+) in \S+ ?\S* ?(\S*) {", str(refcomp.lower(schedule, [A, c])))
    loops = [name for name, _ in heads]
    assert loops == ["j", "i", "k", "x", "y"]


@pytest.mark.parametrize(
    "target",
    [
        "interp",
        pytest.param("opencl", marks=pytest.mark.pocl),
    ],
)
def test_kernels_compute_what_python_does(target):
    c, schedule = bound()
    device = refcomp.cpu() if target == "interp" else refcomp.device(target)
    given = refcomp.array(DATA, device)
    got = refcomp.array(np.zeros((6, 8), np.int32), device)
    refcomp.build(schedule, [A, c], target)(given, got)
    np.testing.assert_array_equal(got.asnumpy(), scaled(DATA))


def refused(marks, message):
    c, schedule = scheduled()
    axes = dict(zip("ikjxy", c.op.axis, strict=True))
    with pytest.raises(UserError, match=message) as caught:
        for name, tag in marks:
            schedule[c].bind(axes[name], thread(tag))
        refcomp.lower(schedule, [A, c])
    return str(caught.value)


def test_kernels_that_no_gpu_runs():
    both = [("i", "threadIdx.x"), ("j", "threadIdx.x")]
    said = refused(both, "another loop of the nest is bound to threadIdx.x")
    assert "bind loops that are directly nested" in said
    assert "axis j" in said
    refused([("x", "blockIdx.x"), ("y", "threadIdx.x")], "a bound loop lies deeper in a kernel")
    refused([("k", "threadIdx.x")], "its iterations may depend on each other: no index of c")
    refused([("k", "vthread")], "its iterations may depend on each other: no index of c")
    c, schedule = scheduled()
    with pytest.raises(UserError, match="it has 6 iterations, and threadIdx.x has 4 threads"):
        schedule[c].bind(c.op.axis[0], refcomp.thread_axis((0, 4), "threadIdx.x"))


def test_numbers_of_threads_that_depend_on_the_kernel():
    @script
    def triangle(a):
        c = output_tensor((6, 6), "int32")
        for i in range(6):
            for j in range(i):
                c[i, j] = a[j]
        return c

    c = triangle(A)
    schedule = refcomp.create_schedule(c)
    schedule[c].bind(c.op.axis[0], thread("blockIdx.x"))
    schedule[c].bind(c.op.axis[1], thread("threadIdx.x"))
    with pytest.raises(UserError, match="its iterations depend on a loop of the kernel"):
        refcomp.lower(schedule, [A, c])


def test_a_function_that_binds_its_own_threads():
    @script
    def own(a):
        c = output_tensor((6, 2), "int32")
        for t in bind("threadIdx.x", 6):
            for k in range(2):
                c[t, k] = a[t]
        return c

    c = own(A)
    schedule = refcomp.create_schedule(c)
    with pytest.raises(UserError, match="the hybrid function binds a loop to threadIdx.x itself"):
        schedule[c].bind(c.op.axis[0], thread("threadIdx.y"))
    schedule[c].unroll(c.op.axis[0])
    assert "unrolled" in str(refcomp.lower(schedule, [A, c]))


def virtual(order):
    """Bind loops to threads and virtual threads, the outer ones first or last."""
    c, schedule = scheduled()
    i, _k, j, x, y = c.op.axis
    tags = {i: "vthread", j: "threadIdx.x", x: "threadIdx.x", y: "vthread"}
    for axis in (i, j, x, y) if order == "forward" else (y, x, j, i):
        schedule[c].bind(axis, thread(tags[axis]))
    return c, schedule


def test_virtual_threads_stand_inside_of_the_kernel():
    c, schedule = virtual("forward")
    lowered = str(refcomp.lower(schedule, [A, c]).body)
    heads = re.findall(r"for (\S+) in (\S+ ?\S*) (\S+) {", lowered)
    assert heads == [
        ("j", "range(8)", "threadIdx.x"),
        ("i", "range(6)", "vthread"),
        ("k", "range(2,", "extent=2)"),
        ("x", "range(6)", "threadIdx.x"),
        ("y", "range(7)", "vthread"),
    ]
    assert "scaled[x, 1 + y] =" in lowered


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize(
    "target",
    [
        "interp",
        pytest.param("opencl", marks=pytest.mark.pocl),
        pytest.param("rocm -mcpu=gfx942", marks=pytest.mark.rocm),
        pytest.param("rocm -mcpu=gfx1100", marks=pytest.mark.rocm),
    ],
)
def test_virtual_threads_compute_what_python_does(target, order):
    c, schedule = virtual(order)
    device = refcomp.cpu()
    if target.startswith("rocm"):
        device = refcomp.rocm_emulator(target.rpartition("=")[2])
    elif target != "interp":
        device = refcomp.device(target)
    given = refcomp.array(DATA, device)
    got = refcomp.array(np.zeros((6, 8), np.int32), device)
    refcomp.build(schedule, [A, c], target)(given, got)
    np.testing.assert_array_equal(got.asnumpy(), scaled(DATA))


@pytest.mark.llvm
def test_virtual_threads_of_a_host_are_unrolled():
    c, schedule = scheduled()
    schedule[c].bind(c.op.axis[0], thread("vthread"))
    got = np.zeros((6, 8), np.int32)
    refcomp.build(schedule, [A, c], "llvm")(DATA, got)
    np.testing.assert_array_equal(got, scaled(DATA))


def test_the_number_of_virtual_threads_is_a_constant():
    n = refcomp.var("n")
    plain = refcomp.placeholder((n,), name="p")

    @script
    def doubled(p):
        d = output_tensor((p.shape[0],), "float32")
        for i in range(p.shape[0]):
            d[i] = p[i] * 2.0
        return d

    d = doubled(plain)
    schedule = refcomp.create_schedule(d)
    with pytest.raises(UserError, match="the number of virtual threads is not a constant"):
        schedule[d].bind(d.op.axis[0], thread("vthread"))
