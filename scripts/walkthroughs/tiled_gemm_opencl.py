#!/usr/bin/env python3
"""A product of matrices on a GPU: tiles in shared memory, a few elements of C for each thread.

Each group of 8 x 8 threads computes 32 x 32 elements of C. It loads a tile of A and a tile of B
into shared memory, to which each thread contributes a part. It waits at a barrier until the tiles
are complete, and sums the products in registers, 4 x 4 a thread. Needs OpenCL (PoCL will do). Exit
code: 1 when the result is not numpy's.
"""

import sys

import numpy as np

import refcomp as rc

N = 128
TILE, STEP, THREADS = 32, 8, 8  # elements of C a group, of k at a time; threads along each side


def describe():
    """Describe C = A B."""
    A, B = rc.placeholder((N, N), name="A"), rc.placeholder((N, N), name="B")
    k = rc.reduce_axis((0, N), name="k")
    C = rc.compute((N, N), lambda i, j: rc.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def schedule_tiles(A, B, C):
    """Schedule it: groups and threads, registers for the sums, shared memory for what is read."""
    s = rc.create_schedule(C)
    sums = s.cache_write(C, "local")
    tile_a, tile_b = s.cache_read(A, "shared", [sums]), s.cache_read(B, "shared", [sums])
    i, j = s[C].op.axis
    by, i = s[C].split(i, factor=TILE)
    bx, j = s[C].split(j, factor=TILE)
    ty, i = s[C].split(i, nparts=THREADS)
    tx, j = s[C].split(j, nparts=THREADS)
    s[C].reorder(by, bx, ty, tx, i, j)
    for axis, tag in (
        (by, "blockIdx.y"),
        (bx, "blockIdx.x"),
        (ty, "threadIdx.y"),
        (tx, "threadIdx.x"),
    ):
        s[C].bind(axis, rc.thread_axis(tag))
    s[sums].compute_at(s[C], tx)
    (k,) = s[sums].op.reduce_axis
    outer, inner = s[sums].split(k, factor=STEP)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for tile in (tile_a, tile_b):
        s[tile].compute_at(s[sums], outer)
        fused = s[tile].fuse(*s[tile].op.axis)
        ty, rest = s[tile].split(fused, nparts=THREADS)
        tx, _ = s[tile].split(rest, nparts=THREADS)
        s[tile].bind(ty, rc.thread_axis("threadIdx.y"))
        s[tile].bind(tx, rc.thread_axis("threadIdx.x"))
    return s


def main() -> int:
    """Build, run, compare and time; return the exit code."""
    A, B, C = describe()
    s = schedule_tiles(A, B, C)
    print(rc.print_func(rc.lower(s, [A, B, C], name="gemm")))
    gemm = rc.build(s, [A, B, C], target="opencl", name="gemm")
    print(gemm.imported_modules[0].get_source())
    ctx = rc.opencl(0)
    random = np.random.default_rng(0)  # small integers: every order of summing gives the same
    a, b = (random.integers(-8, 8, (N, N)).astype(np.float32) for _ in "AB")
    there = [rc.nd.array(x, ctx) for x in (a, b, np.zeros((N, N), np.float32))]
    gemm(*there)
    agrees = bool((there[2].asnumpy() == a @ b).all())
    seconds = gemm.time_evaluator("gemm", ctx, number=3)(*there).mean
    print(f"{ctx.name}: {seconds * 1e3:.2f} ms for {N} x {N} x {N}; equals numpy: {agrees}")
    return int(not agrees)


if __name__ == "__main__":
    sys.exit(main())
