#!/usr/bin/env python3
"""A product of f16 or bf16 on AMD's matrix cores that hardly does anything but multiply.

    tuned_matrix_cores.py [gfx942|gfx90a] [float16|bfloat16]

What a profile asks of such a kernel (profile_gemm.py), and what it does (matrix_core_block.py):
- does it wait for memory? While tiles are multiplied out of shared memory, the next ones come from
  global memory, and there are two of each, so that one barrier a tile is enough;
- do lanes wait for banks of shared memory? Rows of tiles are 32 bytes longer than their contents;
- does it do other things than multiply? Four tiles a loop share the additions of one. The last
  four stand behind the loop: a condition within it has LLVM move all products to its end.
Runs it on an emulated GPU and prints the vector instructions of its loop. Needs LLVM and its lld,
but no GPU. Exit code: 1 when the result is wrong.
"""

import re
import sys
from collections import Counter

import ml_dtypes
import numpy as np
from matrix_core_block import DEPTH, ROWS, UNROLL, Block

import refcomp as rc

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def product(rows, columns, depth, dtype):
    """C = A B^T, added up in f32."""
    a, b = rc.placeholder((rows, depth), dtype, "A"), rc.placeholder((columns, depth), dtype, "B")
    k = rc.reduce_axis((0, depth), "k")
    terms = lambda i, j: a[i, k].astype("float32") * b[j, k].astype("float32")  # noqa: E731
    return a, b, rc.compute((rows, columns), lambda i, j: rc.sum(terms(i, j), axis=k), name="C")


def write_block(ib, dtype, depth, a, b, c):
    """Statements for a block of C; tiles of A and B alternate between two places."""
    block, loops = Block(ib, dtype, (a, b)), depth // (DEPTH * UNROLL)

    def multiply_tiles(step, is_last):
        for n in range(UNROLL):
            here, there = block.tiles[n % 2], block.tiles[(n + 1) % 2]
            is_more_to_come = not is_last or n + 1 < UNROLL
            if is_more_to_come:
                block.fetch((step * UNROLL + n + 1) * DEPTH)
            block.multiply(here)
            if is_more_to_come:
                block.keep(there)

    for place, _ in block.places():
        block.sums[place] = 0.0
    block.fetch(0)
    block.keep(block.tiles[0])
    with ib.for_range(0, loops - 1, "step") as step:
        multiply_tiles(step, is_last=False)
    multiply_tiles(loops - 1, is_last=True)
    for place, at in block.places():
        c[at] = block.sums[place]
    return ib.get()


def schedule_product(dtype, n=1024, depth=1024):
    """A group for each block of C."""
    *inputs, block = product(ROWS, ROWS, depth, dtype)
    views = {}
    for tensor in (*inputs, block):
        strides = [rc.var(f"{tensor.name}.row"), 1]
        views[tensor] = rc.decl_buffer(tensor.shape, tensor.dtype, strides=strides, offset_factor=1)

    def body(ins, outs):
        ib = rc.ir_builder.create()
        return write_block(ib, dtype, depth, *map(ib.buffer_ptr, (*ins, *outs))), None, None

    a, b, c = product(n, n, depth, dtype)
    s = rc.create_schedule(c)
    by, bx, i, _ = s[c].tile(*c.op.axis, ROWS, ROWS)
    s[c].bind(by, rc.thread_axis("blockIdx.y"))
    s[c].bind(bx, rc.thread_axis("blockIdx.x"))
    s[c].tensorize(i, rc.decl_tensor_intrin(block.op, body, "block", views))
    return s, [a, b, c]


def main(gpu="gfx942", dtype="float16") -> int:
    """Runs it; the exit code."""
    n, depth = ROWS, 2 * UNROLL * DEPTH
    module = rc.build(*schedule_product(dtype, n, depth), f"rocm -mcpu={gpu}", name="product")
    names = re.findall(r"^\s+(v_\w+)", module.imported_modules[0].get_source("asm"), re.MULTILINE)
    print(gpu, dtype, Counter(names).most_common(4))
    device, random = rc.rocm_emulator(gpu), np.random.default_rng(0)
    a, b = (random.integers(-8, 9, (n, depth)).astype(DTYPES[dtype]) for _ in "AB")
    c = rc.array(np.zeros((n, n), np.float32), device)
    module(rc.array(a, device), rc.array(b, device), c)
    is_right = bool((c.asnumpy() == a.astype(np.float32) @ b.astype(np.float32).T).all())
    print(f"equals numpy: {is_right}")
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
