#!/usr/bin/env python3
"""Makes a matrix product fast, one scheduling decision after the other, beside numpy and the peak.

    optimize_gemm.py [512 or 1000x1001x999] [FILE.png]

Computes C[n, m] = A[n, k] B[k, m] in f32; each step is checked against numpy, and says what it is
for. The peak is what one core does on registers alone. Needs LLVM's tools, for the chart pillow.
"""

import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported
sys.path.append(os.path.abspath(f"{__file__}/../../.."))

import numpy as np

import refcomp as rc
from benchmarks.rates import measure_rates, print_rates, save_chart, shape_asked_for
from refcomp.ir.expr import Expr
from refcomp.te.tensor import Tensor

STEPS = {
    "naive": "three loops, as the formula says",
    "blocked": "tiles of C, a few k at a time: what is read again is still in cache",
    "vectorized": "the rows of a tile as vectors",
    "permuted": "k inside of i: a row of C stays in registers; it pays off with packed panels",
    "packed": "B copied into panels first: a tile reads one piece of memory",
    "cached": "a tile's sums in memory of their own over all of k: registers in the next step",
    "unrolled": "a tile so small that its sums are registers, written out",
    "parallel": "panels shared among all threads; n cores have n times the peak",
}


def describe(n: int, m: int, k: int, width: int) -> tuple[Tensor, ...]:
    """Return A, B, C and B in panels of `width` columns. Zeros fill up the last panel."""
    a, b = rc.placeholder((n, k), name="A"), rc.placeholder((k, m), name="B")
    r = rc.reduce_axis((0, k), name="r")

    def element(p: Expr, r: Expr, j: Expr) -> Expr:
        return rc.if_then_else(p * width + j < m, b[r, p * width + j], rc.const(0.0, "float32"))

    panels = rc.compute((-(-m // width), k, width), element, name="panels")
    product = lambda i, j: a[i, r] * panels[j // width, r, j % width]  # noqa: E731
    return a, b, rc.compute((n, m), lambda i, j: rc.sum(product(i, j), axis=r), name="C"), panels


def schedule(size: tuple[int, ...], done: list[str]) -> tuple[rc.Schedule, list[Tensor]]:
    """Return the product with the steps in `done`, and its arguments."""
    rows, columns = 6 if "unrolled" in done else 32, 64
    *args, c, panels = describe(*size, columns)
    sums, s = c, rc.create_schedule(c)
    if "packed" not in done:
        s[panels].compute_inline()
    if "blocked" not in done:
        return s, [*args, c]
    if "cached" in done:
        sums = s.cache_write(c, "local")
    io, jo, i, j = s[c].tile(*c.op.axis, rows, columns)
    s[c].reorder(jo, io, i, j)
    tiles = {c: (i, j)} | ({panels: panels.op.axis[1:]} if "packed" in done else {})
    if sums is not c:
        s[sums].compute_at(s[c], io)
        tiles[sums] = sums.op.axis
    for tensor, (row, column) in tiles.items():
        vectors, lanes = s[tensor].split(column, factor=16)
        if tensor is sums:
            ro, ri = s[sums].split(*sums.op.reduce_axis, factor=1 if "unrolled" in done else 4)
            s[sums].reorder(ro, *((row, ri) if "permuted" in done else (ri, row)), vectors, lanes)
        if "vectorized" in done:
            s[tensor].vectorize(lanes)
        if "unrolled" in done and tensor is not panels:
            s[tensor].unroll(row)
            s[tensor].unroll(vectors)
    if "parallel" in done:
        s[c].parallel(jo)
        s[panels].parallel(panels.op.axis[0])
    return s, [*args, c]


def main(size: str = "512", chart: str = "") -> None:
    """Build, check and time all steps."""
    n, m, k = shape = shape_asked_for(size)
    random = np.random.default_rng(0)  # small integers: every order of summing gives the same
    a, b = (random.integers(-4, 5, s).astype(np.float32) for s in ((n, k), (k, m)))
    calls, c = {"numpy": lambda: a @ b}, np.zeros((n, m), np.float32)
    for number, name in enumerate(STEPS, 1):
        with rc.build_options(contract=True):
            module = rc.build(*schedule(shape, list(STEPS)[:number]), name="gemm")
        calls[name] = module.entry.bind(a, b, c)
        c.fill(0)
        calls[name]()
        np.testing.assert_array_equal(c, a @ b)
    rates = measure_rates(calls, 2e-9 * n * m * k, rounds=5)
    print_rates(rates, STEPS)
    save_chart(chart, f"{n} x {m} x {k}: GFLOP/s", rates)


if __name__ == "__main__":
    main(*sys.argv[1:3])
