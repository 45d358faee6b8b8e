"""The loops of hybrid functions as axes: which are data-parallel, and why others are not."""

# ruff: noqa: F821

import pytest

import refcomp
from refcomp.hybrid import script
from refcomp.te.hybrid_operation import HybridOp

A = refcomp.placeholder((8,), "int64", name="a")


@script
def shifted(a):
    c = output_tensor((20,), "int64")
    for i in range(2, 8):
        t = i * 2
        c[t + 1] = c[2 * i + 1] + a[i]
    return c


@script
def neighbours(a):
    c = output_tensor((9,), "int64")
    for i in range(8):
        c[i] = a[i]
        c[i + 1] = a[i]
    return c


@script
def scattered(a):
    c = output_tensor((8,), "int64")
    for i in range(8):
        c[a[i]] = i
    return c


@script
def halves(a):
    c = output_tensor((8,), "int64")
    for i in range(8):
        c[i // 2] = a[i]
    return c


@script
def one_local(a):
    c = output_tensor((8,), "int64")
    t = a[0]
    for i in range(8):
        t = a[i]
        c[i] = t
    return c


@script
def own_local(a):
    c = output_tensor((8,), "int64")
    for i in range(8):
        t = allocate((2,), "int64", "local")
        for u in range(2):
            t[u] = a[i] + u
        c[i] = t[0] * t[1]
    return c


@script
def by_outer(a):
    c = output_tensor((8, 8), "int64")
    for i in range(4):
        for j in range(4):
            c[i + j, 0] = a[i]
    return c


@pytest.mark.parametrize(
    ("function", "conflicts"),
    [
        (shifted, [""]),
        (neighbours, ["no index of c keeps apart what they access"]),
        (scattered, ["no index of c keeps apart what they access"]),
        (halves, ["no index of c keeps apart what they access"]),
        (one_local, ["no index of t keeps apart what they access"]),
        (own_local, ["", ""]),
        (by_outer, ["no index of c keeps apart what they access"] * 2),
    ],
)
def test_a_loop_is_data_parallel_if_an_index_keeps_its_iterations_apart(function, conflicts):
    op = function(A).op
    assert isinstance(op, HybridOp)
    assert list(op.conflicts) == conflicts
    kinds = ["ordered" if conflict else "data_parallel" for conflict in conflicts]
    assert [str(axis.kind) for axis in op.axis] == kinds


def test_loops_of_one_name_get_numbers():
    @script
    def twice(a):
        c = output_tensor((8,), "int64")
        for i in range(8):
            c[i] = a[i]
        for i in range(1, 8):
            c[i] = c[i] + 1
        return c

    first, second = twice(A).op.axis
    assert (first.name, second.name) == ("i", "i.1")
    assert (second.minimum.value, second.extent.value) == (1, 7)


def test_loops_over_threads_are_no_axes():
    @script
    def bound(a):
        c = output_tensor((8, 2), "int64")
        for t in bind("threadIdx.x", 8):
            for k in range(2):
                c[t, k] = a[t]
        return c

    assert [axis.name for axis in bound(A).op.axis] == ["k"]
