#!/usr/bin/env python3
"""Recurrences: tensors computed row by row, each row from the rows before.

A running sum, then a cell of two states with a product in it. What a row needs is computed in the
loop of the scan, and scheduled there like anything else. Needs LLVM's tools. Exit code: 1 when a
result is wrong.
"""

import sys

import numpy as np

import refcomp as rc

ROWS, COLUMNS = rc.var("m"), rc.var("n")


def running_sum() -> bool:
    """S[0] = X[0], S[t] = S[t - 1] + X[t]."""
    x = rc.placeholder((ROWS, COLUMNS), name="X")
    state = rc.placeholder((ROWS, COLUMNS), name="state")
    init = rc.compute((1, COLUMNS), lambda _, i: x[0, i], name="init")
    update = rc.compute((ROWS, COLUMNS), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    total = rc.scan(init, update, state, inputs=[x], name="S")
    s = rc.create_schedule(total)
    _, inner = s[update].split(update.op.axis[1], factor=8)
    s[update].vectorize(inner)
    func = rc.lower(s, [x, total], name="running_sum")
    print(rc.print_func(func))
    given = np.arange(60, dtype=np.float32).reshape(5, 12)
    result = np.zeros_like(given)
    rc.build(func)(given, result)
    return bool((result == np.cumsum(given, axis=0)).all())


def recurrent_cell() -> bool:
    """h[t] = max(h[t - 1] W + X[t], 0) and c[t] = c[t - 1] + h[t], in one scan."""
    x, w = rc.placeholder((ROWS, COLUMNS), name="X"), rc.placeholder((COLUMNS, COLUMNS), name="W")
    h = rc.placeholder((ROWS, COLUMNS), name="h")
    c = rc.placeholder((ROWS, COLUMNS), name="c")
    k = rc.reduce_axis((0, COLUMNS), "k")
    first = rc.compute((1, COLUMNS), lambda _, i: x[0, i], name="first")
    zero = rc.compute((1, COLUMNS), lambda _, i: 0.0, name="zero")
    dense = rc.compute(
        (ROWS, COLUMNS), lambda t, i: rc.sum(h[t - 1, k] * w[k, i], axis=k), name="dense"
    )
    to_h = rc.compute(
        (ROWS, COLUMNS), lambda t, i: rc.maximum(dense[t, i] + x[t, i], 0.0), name="to_h"
    )
    to_c = rc.compute((ROWS, COLUMNS), lambda t, i: c[t - 1, i] + to_h[t, i], name="to_c")
    hs, cs = rc.scan([first, zero], [to_h, to_c], [h, c], inputs=[x, w], name="cell")
    s = rc.create_schedule(hs)
    s[dense].parallel(dense.op.axis[1])  # the columns of one row at once
    func = rc.lower(s, [x, w, hs, cs], name="cell")
    print(rc.print_func(func))
    random = np.random.default_rng(0)
    a = random.integers(-3, 4, (6, 9)).astype(np.float32)
    b = random.integers(-1, 2, (9, 9)).astype(np.float32)
    got = [np.zeros_like(a), np.zeros_like(a)]
    rc.build(func)(a, b, *got)
    wanted_h, wanted_c = a.copy(), np.zeros_like(a)
    for t in range(1, len(a)):
        wanted_h[t] = np.maximum(wanted_h[t - 1] @ b + a[t], 0)
        wanted_c[t] = wanted_c[t - 1] + wanted_h[t]
    return bool((got[0] == wanted_h).all() and (got[1] == wanted_c).all())


if __name__ == "__main__":
    found = {"running_sum": running_sum(), "recurrent_cell": recurrent_cell()}
    print("right:", found)
    sys.exit(int(not all(found.values())))
