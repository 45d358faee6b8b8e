#!/usr/bin/env python3
"""A product of f16 or bf16 on AMD's matrix cores that hardly does anything but multiply.

    tuned_matrix_cores.py [gfx942|gfx90a|gfx1100] [float16|bfloat16]

What a profile asks of such a kernel (profile_gemm.py), and what it does (matrix_core_block.py):
- does it wait for memory? While tiles are multiplied out of shared memory, the next ones come, and
  there are two of each, so that one barrier a tile is enough;
- do lanes wait for banks of shared memory? Rows of tiles are longer than their contents;
- does it do other things than multiply? 80 products a loop or more share the additions of one. The
  last tiles stand behind it: a condition within it has LLVM move all products to its end;
- does it spill? What LLVM writes out behind the loop takes registers in it, so it is little.
Runs it emulated, prints what its loop does. Needs LLVM and lld. Exit code: 1 when it is wrong.
"""

import sys

import numpy as np
from instruction_mix import print_mix
from matrix_core_block import Block
from matrix_core_kinds import CORES, DEPTH, DTYPES, asked

import refcomp as rc


def product(rows, columns, depth, dtype):
    """C = A B^T, added up in f32."""
    a, b = rc.placeholder((rows, depth), dtype, "A"), rc.placeholder((columns, depth), dtype, "B")
    k = rc.reduce_axis((0, depth), "k")
    terms = lambda i, j: a[i, k].astype("float32") * b[j, k].astype("float32")  # noqa: E731
    return a, b, rc.compute((rows, columns), lambda i, j: rc.sum(terms(i, j), axis=k), name="C")


def write_block(ib, cores, dtype, depth, a, b, c):
    """Return statements for a block of C; tiles of A and B alternate between two places."""
    block, tiles = Block(ib, cores, dtype, (a, b)), depth // DEPTH

    def multiply_tiles(first, count):
        for n in range(count):
            block.fetch((first + n + 1) * DEPTH)
            block.multiply(block.tiles[n % 2])
            block.keep(block.tiles[(n + 1) % 2])

    for place in block.places():
        block.sums[place] = 0.0
    block.fetch(0)
    block.keep(block.tiles[0])
    steps, rest = divmod(tiles - 2, many := cores.tiles_a_loop(tiles))
    with ib.for_range(0, steps, "step") as step:
        multiply_tiles(step * many, many)
    with ib.for_range(0, (rest + 1) // 2, "rest") as pair:
        multiply_tiles(steps * many + pair * 2, 2)
    if rest % 2 == 0:
        multiply_tiles(tiles - 2, 1)
    block.multiply(block.tiles[(tiles - 1) % 2])
    block.store(c)
    return ib.get()


def schedule_product(gpu, dtype, n=1024, depth=2048):
    """Use a group for each block of C. The depth is that of at least two tiles."""
    cores = CORES[gpu]
    *inputs, block = product(cores.rows, cores.rows, depth, dtype)
    views = {}
    for tensor in (*inputs, block):
        strides = [rc.var(f"{tensor.name}.row"), 1]
        views[tensor] = rc.decl_buffer(tensor.shape, tensor.dtype, strides=strides, offset_factor=1)

    def body(ins, outs):
        ib = rc.ir_builder.create()
        pointers = map(ib.buffer_ptr, (*ins, *outs))
        return write_block(ib, cores, dtype, depth, *pointers), None, None

    a, b, c = product(n, n, depth, dtype)
    s = rc.create_schedule(c)
    by, bx, i, _ = s[c].tile(*c.op.axis, cores.rows, cores.rows)
    s[c].bind(by, rc.thread_axis("blockIdx.y"))
    s[c].bind(bx, rc.thread_axis("blockIdx.x"))
    s[c].tensorize(i, rc.decl_tensor_intrin(block.op, body, "block", views))
    return s, [a, b, c]


def main(gpu, dtype) -> int:
    """Compile, run and compare it; return the exit code."""
    n, depth = CORES[gpu].rows, 4 * CORES[gpu].unroll * DEPTH
    module = rc.build(*schedule_product(gpu, dtype, n, depth), f"rocm -mcpu={gpu}", name="product")
    code = module.imported_modules[0].get_source("asm")
    share = print_mix(f"{gpu}, {dtype}", code)
    print(f"See that {share:.1f} % multiply: in matrix_cores.py most do something else.")
    device, random = rc.rocm_emulator(gpu), np.random.default_rng(0)
    a, b = (random.integers(-8, 9, (n, depth)).astype(DTYPES[dtype]) for _ in "AB")
    c = rc.array(np.zeros((n, n), np.float32), device)
    module(rc.array(a, device), rc.array(b, device), c)
    is_right = bool((c.asnumpy() == a.astype(np.float32) @ b.astype(np.float32).T).all())
    print(f"equals numpy: {is_right}")
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main(**vars(asked(sys.argv[1:]))))
