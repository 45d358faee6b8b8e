#!/usr/bin/env python3
"""Reductions: sums over axes, their schedules, several axes, conditions, and one's own reducers.

Needs LLVM's tools. Exit code: 1 when a result is wrong.
"""

import sys

import numpy as np

import refcomp as rc

ROWS, COLUMNS = rc.var("n"), rc.var("m")


def row_sums() -> bool:
    """B[i] = sum over k of A[i, k]: a loop that begins with 0, and one that adds."""
    a = rc.placeholder((ROWS, COLUMNS), name="A")
    k = rc.reduce_axis((0, COLUMNS), "k")
    b = rc.compute((ROWS,), lambda i: rc.sum(a[i, k], axis=k), name="B")
    s = rc.create_schedule(b)
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
    """A convolution sums over two axes of a window; a tiled loop keeps its tails right."""
    size, window = 13, 3
    a = rc.placeholder((size, size), "int32", "A")
    w = rc.placeholder((window, window), "int32", "W")
    p, q = rc.reduce_axis((0, window), "p"), rc.reduce_axis((0, window), "q")
    out = size - window + 1
    b = rc.compute(
        (out, out), lambda i, j: rc.sum(a[i + p, j + q] * w[p, q], axis=[p, q]), name="B"
    )
    s = rc.create_schedule(b)
    s[b].tile(b.op.axis[0], b.op.axis[1], 4, 4)
    s[b].unroll(q)
    random = np.random.default_rng(0)
    x, y = (random.integers(-5, 6, (k, k)).astype(np.int32) for k in (size, window))
    result = np.zeros((out, out), np.int32)
    rc.build(s, [a, w, b])(x, y, result)
    windows = np.lib.stride_tricks.sliding_window_view(x, (window, window))
    return bool((result == (windows * y).sum(axis=(2, 3))).all())


def reducers_of_ones_own() -> bool:
    """The product of the positive elements: a combiner, its identity, and a condition."""
    product = rc.comm_reducer(lambda x, y: x * y, lambda t: rc.const(1, t), name="product")
    a = rc.placeholder((ROWS, COLUMNS), "int64", "A")
    k = rc.reduce_axis((0, COLUMNS), "k")
    b = rc.compute((ROWS,), lambda i: product(a[i, k], axis=k, where=a[i, k] > 0), name="B")
    x = np.random.default_rng(0).integers(-3, 4, (9, 5))
    result = np.zeros(9, np.int64)
    rc.build(rc.create_schedule(b), [a, b])(x, result)
    return bool((result == np.where(x > 0, x, 1).prod(axis=1)).all())


if __name__ == "__main__":
    found = {f.__name__: f() for f in (row_sums, several_axes, reducers_of_ones_own)}
    print("right:", found)
    sys.exit(int(not all(found.values())))
