#!/usr/bin/env python3
"""A product of matrices for AMD GPUs, as fast code is written, and the resources that it takes.

Each group of 16 x 16 threads computes 128 x 128 elements of C. It loads 8 rows of A and of B at a
time into shared memory, 16 bytes an access. Each thread sums four tiles of 4 x 4 elements in
registers. The tiles of a thread are 64 elements apart (virtual threads), so that neighbouring
threads access neighbouring 16 bytes. So no two of them wait for the same bank of shared memory. A
is given with its columns as rows, which makes all this the same for A and B.

Needs LLVM and its lld, but no GPU. Prints the resources of the kernel and its most frequent
instructions. Exit code: 1 when it does not stay in registers.
"""

import re
import sys
from collections import Counter

import refcomp as rc
from refcomp.driver.amd_resources import resources_of

N = 1024
TILE, STEP, THREADS, LANES = 128, 8, 16, 4  # of a group; of k at a time; along a side; of vectors


def describe(n=N):
    """Describe C = A^T B."""
    A, B = rc.placeholder((n, n), name="A"), rc.placeholder((n, n), name="B")
    k = rc.reduce_axis((0, n), name="k")
    C = rc.compute((n, n), lambda i, j: rc.sum(A[k, i] * B[k, j], axis=k), name="C")
    return A, B, C


def schedule_tiles(A, B, C):
    """Schedule groups, virtual threads and threads; registers for operands; 16-byte moves."""
    s = rc.create_schedule(C)
    sums = s.cache_write(C, "local")
    shared = [s.cache_read(tensor, "shared", [sums]) for tensor in (A, B)]
    local = [s.cache_read(tile, "local", [sums]) for tile in shared]
    by, bx, i, j = s[C].tile(*s[C].op.axis, TILE, TILE)
    vy, i = s[C].split(i, nparts=TILE // (THREADS * LANES))
    vx, j = s[C].split(j, nparts=TILE // (THREADS * LANES))
    ty, i = s[C].split(i, factor=LANES)
    tx, j = s[C].split(j, factor=LANES)
    s[C].reorder(by, bx, vy, vx, ty, tx, i, j)
    for axis, tag in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (vy, "vthread"), (vx, "vthread")):
        s[C].bind(axis, rc.thread_axis(tag))
    finish(s[C], ty, tx, i, j)

    s[sums].compute_at(s[C], tx)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=STEP)
    i, j = s[sums].op.axis
    s[sums].reorder(outer, inner, i, j)
    for axis in (inner, i):
        s[sums].unroll(axis)
    s[sums].vectorize(j)
    for operand in local:
        s[operand].compute_at(s[sums], inner)
        s[operand].vectorize(s[operand].op.axis[1])
    for tile in shared:
        s[tile].compute_at(s[sums], outer)
        rest, lane = s[tile].split(s[tile].fuse(*s[tile].op.axis), factor=LANES)
        rest, tx = s[tile].split(rest, factor=THREADS)
        rest, ty = s[tile].split(rest, factor=THREADS)
        finish(s[tile], ty, tx, rest, lane)
    return s


def finish(stage, ty, tx, unrolled, vectorized):
    """Bind the loops of threads, unroll one loop and vectorize another."""
    stage.bind(ty, rc.thread_axis("threadIdx.y"))
    stage.bind(tx, rc.thread_axis("threadIdx.x"))
    stage.unroll(unrolled)
    stage.vectorize(vectorized)


def compile_kernel(target, n=N):
    """Compile the kernel with contraction: a product and a sum round once, as one instruction."""
    A, B, C = describe(n)
    with rc.build_options(contract=True):
        module = rc.build(schedule_tiles(A, B, C), [A, B, C], target, name="gemm")
    return module.imported_modules[0]


def main(target="rocm -mcpu=gfx942") -> int:
    """Compile, and print the outcome; return the exit code."""
    kernel = compile_kernel(target)
    (taken,) = resources_of(kernel.code)
    print(f"{target}: {taken.vgprs} vector registers of a lane, {taken.waves} waves of a SIMD")
    found = re.findall(r"^\s+([sv]_\w+|ds_\w+|global_\w+)", kernel.get_source("asm"), re.MULTILINE)
    for mnemonic, count in Counter(found).most_common(12):
        print(f"{count:6} {mnemonic}")
    return int(taken.spilled_vgprs > 0 or taken.private_bytes > 0)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:2]))
    except rc.RefcompError as error:
        sys.exit(f"tiled_gemm_rocm.py: {error}")
