#!/usr/bin/env python3
"""The tiled product of tiled_gemm_rocm.py, tuned until its loop hardly does anything but multiply.

    tuned_gemm_rocm.py [gfx942|gfx90a|gfx1100] [FILE.png]

On gfx942, one of 15 vector instructions of the tiled product moves registers or computes addresses:
- Four elements of A come together. For the fourth one, LLVM copies a register before it multiplies
  two elements of B by it. With 8 x 16 elements of C a thread, a copy serves twice as many products.
- A thread loads its share of a tile from one row. So one address is enough, and the others are
  offsets in the instructions. For this, a tile has as many rows as there are threads down.
- There are two places for each tile (`double_buffer`). The next tile comes while this one is
  multiplied, and one barrier a tile is enough. With more rows, this is worth the addresses.
Prints the registers it takes, and the instructions of its loop beside those of the tiled one; draws
both shares of multiply-adds. Needs LLVM and its lld, but no GPU. Exit code: 1 when it spills.
"""

import sys

import tiled_gemm_rocm
from instruction_mix import draw_shares, print_mix
from tiled_gemm_rocm import describe, finish

import refcomp as rc
from refcomp.driver.amd_resources import resources_of

ROWS, COLUMNS, THREADS, LANES = 128, 256, 16, 4  # of a group; along a side; of vectors


def schedule_tuned(A, B, C):
    """Use tiles with as many rows as there are threads down, in two places each."""
    s = rc.create_schedule(C)
    sums = s.cache_write(C, "local")
    shared = [s.cache_read(tensor, "shared", [sums]) for tensor in (A, B)]
    local = [s.cache_read(tile, "local", [sums]) for tile in shared]
    by, bx, i, j = s[C].tile(*s[C].op.axis, ROWS, COLUMNS)
    vy, i = s[C].split(i, factor=THREADS * LANES)
    vx, j = s[C].split(j, factor=THREADS * LANES)
    ty, i = s[C].split(i, factor=LANES)
    tx, j = s[C].split(j, factor=LANES)
    s[C].reorder(by, bx, vy, vx, ty, tx, i, j)
    for axis, tag in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (vy, "vthread"), (vx, "vthread")):
        s[C].bind(axis, rc.thread_axis(tag))
    finish(s[C], ty, tx, i, j)

    s[sums].compute_at(s[C], tx)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=THREADS)
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
        s[tile].double_buffer()
        row, column = s[tile].op.axis
        column, lane = s[tile].split(column, factor=LANES)
        column, tx = s[tile].split(column, factor=THREADS)
        s[tile].reorder(row, tx, column, lane)
        finish(s[tile], row, tx, column, lane)
    return s


def compile_kernel(target, n=1024):
    """Compile the kernel with contraction: a product and a sum round once, as one instruction."""
    A, B, C = describe(n)
    with rc.build_options(contract=True):
        module = rc.build(schedule_tuned(A, B, C), [A, B, C], target, name="gemm")
    return module


def main(gpu="gfx942", chart="") -> int:
    """Compile both kernels, print and draw what their loops do, and return the exit code."""
    target = f"rocm -mcpu={gpu}"
    kernel = compile_kernel(target).imported_modules[0]
    (taken,) = resources_of(kernel.code)
    codes = {"tiled": tiled_gemm_rocm.compile_kernel(target).get_source("asm")}
    codes["tuned"] = kernel.get_source("asm")
    shares = {name: print_mix(f"{gpu}, {name}", code) for name, code in codes.items()}
    print("See how few vector instructions do anything but multiply and add: the GPU's peak counts")
    print(
        f"these alone. Their share was {shares['tiled']:.1f} %, it is {shares['tuned']:.1f} % now."
    )
    print(f"The tuned kernel takes {taken.vgprs} vector registers of a lane, ", end="")
    print(f"{taken.shared_bytes} bytes of shared memory, {taken.private_bytes} bytes of spills.")
    draw_shares(chart, shares)
    return int(taken.spilled_vgprs > 0 or taken.private_bytes > 0)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:3]))
    except rc.RefcompError as error:
        sys.exit(f"tuned_gemm_rocm.py: {error}")
