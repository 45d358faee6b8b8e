#!/usr/bin/env python3
"""Computes of several outputs, and reductions of tuples: where the greatest element is.

Needs LLVM's tools. Exit code: 1 when a result is wrong.
"""

import sys

import numpy as np

import refcomp as rc

N, M = rc.var("n"), rc.var("m")


def several_outputs() -> bool:
    """Compute both tensors by one loop nest."""
    a, b = rc.placeholder((N, M), name="A"), rc.placeholder((N, M), name="B")
    total, product = rc.compute(
        (N, M), lambda i, j: (a[i, j] + b[i, j], a[i, j] * b[i, j]), name="T"
    )
    s = rc.create_schedule(total.op)
    s[total].parallel(total.op.axis[0])
    func = rc.lower(s, [a, b, total, product], name="several_outputs")
    print(rc.print_func(func))
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.full((3, 4), 2, np.float32)
    got = [np.zeros_like(x), np.zeros_like(x)]
    rc.build(func)(x, y, *got)
    return bool((got[0] == x + y).all() and (got[1] == x * y).all())


def argmax() -> bool:
    """Reduce pairs (index, value) to the first pair with the greatest value.

    Both parts are computed together.
    """

    def combine(x: tuple, y: tuple) -> tuple:
        first = rc.any(x[1] > y[1], rc.all(x[1] == y[1], x[0] < y[0]))
        return rc.select(first, x[0], y[0]), rc.select(first, x[1], y[1])

    def identity(index: object, value: object) -> tuple:
        return rc.max_value(index), rc.min_value(value)

    greatest = rc.comm_reducer(combine, identity, name="argmax")
    index = rc.placeholder((N, M), "int32", "index")
    value = rc.placeholder((N, M), "float32", "value")
    k = rc.reduce_axis((0, M), "k")
    where, most = rc.compute((N,), lambda i: greatest((index[i, k], value[i, k]), axis=k), name="R")
    s = rc.create_schedule(where.op)
    rows, row = s[where].split(where.op.axis[0], factor=4)
    s[where].reorder(rows, k, row)
    func = rc.lower(s, [index, value, where, most], name="argmax")
    print(rc.print_func(func))
    values = np.random.default_rng(1).integers(0, 6, (10, 7)).astype(np.float32)
    places = np.broadcast_to(np.arange(7, dtype=np.int32), (10, 7)).copy()
    got = [np.zeros(10, np.int32), np.zeros(10, np.float32)]
    rc.build(func)(places, values, *got)
    return bool((got[0] == values.argmax(axis=1)).all() and (got[1] == values.max(axis=1)).all())


def tuples_to_further_stages() -> bool:
    """Pass the outputs of one operation to other stages like any tensors; both are inlined here."""
    a = rc.placeholder((N,), name="A")
    low, high = rc.compute((N,), lambda i: (a[i] - 1.0, a[i] + 1.0), name="B")
    c = rc.compute((N,), lambda i: low[i] * high[i], name="C")
    s = rc.create_schedule(c)
    s[low].compute_inline()
    func = rc.lower(s, [a, c], name="inlined")
    print(rc.print_func(func))
    x, result = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
    rc.build(func)(x, result)
    return bool((result == x * x - 1).all())


if __name__ == "__main__":
    found = {f.__name__: f() for f in (several_outputs, argmax, tuples_to_further_stages)}
    print("right:", found)
    sys.exit(int(not all(found.values())))
