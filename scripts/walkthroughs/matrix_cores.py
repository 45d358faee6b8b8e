#!/usr/bin/env python3
"""tensorize on AMD GPUs: blocks of a product by the instructions for matrices, one wave a block.

The threads of a wave hold a block's elements together. Each asks for the elements of the result
that are its own, and LLVM makes one instruction of these questions. Needs LLVM and its lld, but no
GPU. Prints the matrix instruction of each kernel and how many vector instructions stand beside it;
with FILE.png, draws that. Exit code: 1 when a kernel has no matrix instruction.

    matrix_cores.py [FILE.png]
"""

import sys
from collections import namedtuple

# house: allow-long (seven instructions of four GPUs side by side)
from instruction_mix import draw_shares, print_products

import refcomp as rc

# Rows and columns, steps of k, a thread's elements of each factor and of the result, threads.
Instruction = namedtuple("Instruction", "name dtype size step factors sums wave")
INSTRUCTIONS = [
    ("gfx90a", Instruction("mfma.f32.16x16x4f32", "float32", 16, 4, 1, 4, 64)),
    ("gfx90a", Instruction("mfma.f32.32x32x8bf16.1k", "bfloat16", 32, 8, 4, 16, 64)),
    ("gfx942", Instruction("mfma.f32.32x32x8f16", "float16", 32, 8, 4, 16, 64)),
    ("gfx942", Instruction("mfma.f32.16x16x16bf16.1k", "bfloat16", 16, 16, 4, 4, 64)),
    ("gfx1100", Instruction("wmma.f32.16x16x16.f16", "float16", 16, 16, 16, 8, 32)),
    ("gfx1100", Instruction("wmma.f32.16x16x16.bf16", "bfloat16", 16, 16, 16, 8, 32)),
    ("gfx1200", Instruction("wmma.f32.16x16x16.bf16.v8f32.v8i16", "bfloat16", 16, 16, 8, 8, 32)),
]


def depth_of(one, thread, number):
    """Where along k a thread's element of a factor lies."""
    has_all = one.factors == one.step
    return number if has_all else thread // one.size * one.factors + number


def row_of(one, thread, number):
    """Return the row of a thread's element of the result."""
    part = thread // one.size
    if one.wave == 32:
        return number * 2 + part if one.factors == one.step else part * one.sums + number
    return number // 4 * (one.size // 4) + part * 4 + number % 4


def product(rows, columns, depth, dtype):
    """C = A B, added up in f32."""
    a, b = rc.placeholder((rows, depth), dtype, "A"), rc.placeholder((depth, columns), dtype, "B")
    k = rc.reduce_axis((0, depth), "k")
    terms = lambda i, j: a[i, k].astype("float32") * b[k, j].astype("float32")  # noqa: E731
    return a, b, rc.compute((rows, columns), lambda i, j: rc.sum(terms(i, j), axis=k), name="C")


def write_block(one, depth, x, y, z, ib):
    """Return statements for a block of C, z, from whole rows of A, x, and columns of B, y."""
    t, numbers = rc.thread_axis((0, one.wave), "threadIdx.x"), range(one.sums)
    ib.scope_attr(t, "thread_extent", one.wave)
    sums, more = (ib.allocate("float32", (one.sums,), n, scope="local") for n in ("sums", "more"))
    for v in numbers:
        sums[v] = 0.0
    with ib.for_range(0, depth // one.step, "step") as step:
        at = [step * one.step + depth_of(one, t, n) for n in range(one.factors)]
        operands = [x[t % one.size, k] for k in at] + [y[k, t % one.size] for k in at]
        operands += [sums[v] for v in numbers]
        for v in numbers:
            which = rc.const(v, "int32")
            more[v] = rc.call_llvm_intrin("float32", f"llvm.amdgcn.{one.name}", *operands, which)
        for v in numbers:
            sums[v] = more[v]
    for v in numbers:
        z[row_of(one, t, v), t % one.size] = sums[v]
    return ib.get()


def schedule_product(one, n=64, depth=64):
    """Return a schedule in which each group computes a block of C by one wave."""
    *inputs, block = product(one.size, one.size, depth, one.dtype)
    views = {}
    for tensor in (*inputs, block):
        strides = [rc.var(f"{tensor.name}.row"), 1]
        views[tensor] = rc.decl_buffer(tensor.shape, tensor.dtype, strides=strides, offset_factor=1)

    def body(ins, outs):
        ib = rc.ir_builder.create()
        return write_block(one, depth, *map(ib.buffer_ptr, (*ins, *outs)), ib), None, None

    a, b, c = product(n, n, depth, one.dtype)
    s = rc.create_schedule(c)
    by, bx, i, _ = s[c].tile(*c.op.axis, one.size, one.size)
    s[c].bind(by, rc.thread_axis("blockIdx.y"))
    s[c].bind(bx, rc.thread_axis("blockIdx.x"))
    s[c].tensorize(i, rc.decl_tensor_intrin(block.op, body, "matrix", views))
    return s, [a, b, c]


if __name__ == "__main__":
    shares = {}
    for gpu, one in INSTRUCTIONS:
        module = rc.build(*schedule_product(one), f"rocm -mcpu={gpu}", name="product")
        assembly = module.imported_modules[0].get_source("asm")
        name = f"{gpu} {one.dtype}"
        shares[name] = print_products(name, assembly, "multiply matrices")
        if not shares[name]:
            sys.exit(1)
    print("See that each kernel has few of them: one does what hundreds of multiply-adds do. The")
    print(
        "others compute addresses and bring factors; tuned_matrix_cores.py has few of these, too."
    )
    draw_shares("".join(sys.argv[1:2]), shares)
