"""Reductions that tests schedule: sums of rows, and the place of the greatest value of each row."""

import numpy as np

import refcomp


def row_sums(n=None, m=None, where=None, begin=0):
    """A schedule of B[i] = sum of A[i, k] from `begin` on where that holds, with A, B and k."""
    n = refcomp.var("n") if n is None else n
    m = refcomp.var("m") if m is None else m
    a = refcomp.placeholder((n, m), name="A")
    k = refcomp.reduce_axis((begin, m), "k")
    b = refcomp.compute(
        (n,), lambda i: refcomp.sum(a[i, k], axis=k, where=where and where(a[i, k])), name="B"
    )
    return refcomp.create_schedule(b.op), a, b, k


def argmax():
    """A schedule of the first place of each row's greatest value and that value, with A, B, k."""
    n, m = refcomp.var("n"), refcomp.var("m")
    a = refcomp.placeholder((n, m), name="A")
    k = refcomp.reduce_axis((0, m), "k")

    def better(x, y):
        is_first = refcomp.any(x[1] > y[1], refcomp.all(x[1] == y[1], x[0] < y[0]))
        return tuple(refcomp.select(is_first, x[q], y[q]) for q in (0, 1))

    combine = refcomp.comm_reducer(
        better, lambda i, v: (refcomp.max_value(i), refcomp.min_value(v)), name="argmax"
    )
    b = refcomp.compute((n,), lambda i: combine((k.as_expr(), a[i, k]), axis=k), name="B")
    return refcomp.create_schedule(b[0].op), a, b, k


def whole_numbers(*shape):
    """Floats without fractions, so that sums are exact in any order; the same on every call."""
    return np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
