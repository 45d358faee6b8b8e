#!/usr/bin/env python3
"""Reductions: over one axis and several, in parts (rfactor), across threads, by one's own reducer.

Needs LLVM's tools and OpenCL (PoCL will do). Exit code: 1 when a result is wrong.
"""

import sys

import numpy as np

import refcomp as rc

ROWS, COLUMNS = rc.var("n"), rc.var("m")


def sums_of_rows():
    """B[i] = sum over k of A[i, k]."""
    a, k = rc.placeholder((ROWS, COLUMNS), name="A"), rc.reduce_axis((0, COLUMNS), "k")
    b = rc.compute((ROWS,), lambda i: rc.sum(a[i, k], axis=k), name="B")
    return rc.create_schedule(b), a, b, k


def row_sums() -> bool:
    """Sum rows: one loop begins with 0, and one adds."""
    s, a, b, k = sums_of_rows()
    print("by default:", rc.print_func(rc.lower(s, [a, b], name="row_sums")), sep="\n")
    rows, row = s[b].split(b.op.axis[0], factor=8)
    s[b].reorder(rows, k, row)  # eight sums at once, each in its order
    s[b].vectorize(row)
    s[b].parallel(rows)
    func = rc.lower(s, [a, b], name="row_sums")
    print("eight at once:", rc.print_func(func), sep="\n")
    x, result = np.arange(20 * 7, dtype=np.float32).reshape(20, 7), np.zeros(20, np.float32)
    rc.build(func)(x, result)
    return bool((result == x.sum(axis=1)).all())


def several_axes() -> bool:
    """Sum over the two axes of a convolution's window. A tiled loop keeps its tails right."""
    size, window, out = 13, 3, 11
    a, w = (rc.placeholder((k, k), "int32", name) for k, name in ((size, "A"), (window, "W")))
    p, q = (rc.reduce_axis((0, window), name) for name in "pq")
    b = rc.compute((out, out), lambda i, j: rc.sum(a[i + p, j + q] * w[p, q], axis=[p, q]))
    s = rc.create_schedule(b)
    s[b].tile(b.op.axis[0], b.op.axis[1], 4, 4)
    s[b].unroll(q)
    x, y = (np.arange(k * k, dtype=np.int32).reshape(k, k) % 7 for k in (size, window))
    result = np.zeros((out, out), np.int32)
    rc.build(s, [a, w, b])(x, y, result)
    windows = np.lib.stride_tricks.sliding_window_view(x, (window, window))
    return bool((result == (windows * y).sum(axis=(2, 3))).all())


def factored() -> bool:
    """Sum a long vector, which has no output axis to vectorize: rfactor makes eight sums of it."""
    a, k = rc.placeholder((COLUMNS,), "int64", "A"), rc.reduce_axis((0, COLUMNS), "k")
    b = rc.compute((1,), lambda i: rc.sum(a[k], axis=k), name="B")
    s = rc.create_schedule(b)
    _, inner = s[b].split(k, factor=8)
    parts = s.rfactor(b, inner)
    s[parts].reorder(*reversed(s[parts].leaf_iter_vars))
    s[parts].vectorize(s[parts].leaf_iter_vars[-1])
    func = rc.lower(s, [a, b], name="factored")
    print("in eight parts:", rc.print_func(func), sep="\n")
    x, result = np.arange(1003), np.zeros(1, np.int64)
    rc.build(func)(x, result)
    return bool(result[0] == x.sum())


def across_threads() -> bool:
    """On a GPU, 16 threads take a part of each row, and combine what they have found in a tree."""
    s, a, b, k = sums_of_rows()
    parts = s.rfactor(b, s[b].split(k, factor=16)[1])
    group, thread = rc.thread_axis("blockIdx.x"), rc.thread_axis("threadIdx.x")
    s[b].bind(b.op.axis[0], group)
    s[b].bind(s[b].op.reduce_axis[0], thread)
    s[parts].compute_at(s[b], s[b].op.reduce_axis[0])
    s[b].set_store_predicate(thread.var == 0)
    print("across threads:", rc.print_func(rc.lower(s, [a, b], name="across")), sep="\n")
    x = np.arange(20 * 37, dtype=np.float32).reshape(20, 37)
    arrays = [rc.array(values, rc.opencl(0)) for values in (x, np.zeros(20, np.float32))]
    rc.build(s, [a, b], "opencl")(*arrays)
    return bool((arrays[1].asnumpy() == x.sum(axis=1)).all())


def reducers_of_ones_own() -> bool:
    """Multiply the positive elements: a combiner, its identity, and a condition."""
    product = rc.comm_reducer(lambda x, y: x * y, lambda t: rc.const(1, t), name="product")
    a, k = rc.placeholder((ROWS, COLUMNS), "int64", "A"), rc.reduce_axis((0, COLUMNS), "k")
    b = rc.compute((ROWS,), lambda i: product(a[i, k], axis=k, where=a[i, k] > 0), name="B")
    x, result = np.random.default_rng(0).integers(-3, 4, (9, 5)), np.zeros(9, np.int64)
    rc.build(rc.create_schedule(b), [a, b])(x, result)
    return bool((result == np.where(x > 0, x, 1).prod(axis=1)).all())


if __name__ == "__main__":
    functions = (row_sums, several_axes, factored, across_threads, reducers_of_ones_own)
    found = {f.__name__: f() for f in functions}
    print("right:", found)
    sys.exit(int(not all(found.values())))
