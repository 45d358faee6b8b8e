#!/usr/bin/env python3
"""The classic first tutorial: two vectors are added, on the host or on a GPU.

Written in the words of the system that made them known; only the import says otherwise. Usage:
vector_add.py [llvm | opencl | rocm]; without an argument, all three. `rocm` needs no GPU: without
one, its code is compiled and printed, and the library says why it cannot run.
"""

import sys

import numpy as np

import refcomp as tvm


def describe(tgt: str):
    """Describe the sum for any length n, and schedule it: on a GPU, 64 elements a group."""
    n = tvm.var("n")
    A = tvm.placeholder((n,), name="A")
    B = tvm.placeholder((n,), name="B")
    C = tvm.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = tvm.create_schedule(C.op)
    bx, tx = s[C].split(C.op.axis[0], factor=64)
    if tgt != "llvm":
        s[C].bind(bx, tvm.thread_axis("blockIdx.x"))
        s[C].bind(tx, tvm.thread_axis("threadIdx.x"))
    return s, A, B, C


def run(fadd, ctx, A, B, C) -> None:
    """Add 1,024 and then 1,000 numbers on the device `ctx`."""
    for n in (1024, 1000):
        a = tvm.nd.array(np.random.uniform(size=n).astype(A.dtype), ctx)
        b = tvm.nd.array(np.random.uniform(size=n).astype(B.dtype), ctx)
        c = tvm.nd.array(np.zeros(n, dtype=C.dtype), ctx)
        fadd(a, b, c)
        tvm.testing.assert_allclose(c.asnumpy(), a.asnumpy() + b.asnumpy())
        print(f"{n} sums on {ctx} agree with numpy")


def show(title: str, text: str) -> None:
    """Print a source under a title."""
    print(f"\n----- {title} -----\n{text.rstrip()}")


def add_on(tgt: str) -> None:
    """Build the function for the target, run it if there is a device, print its sources."""
    s, A, B, C = describe(tgt)
    fadd = tvm.build(s, [A, B, C], tgt, target_host="llvm", name="myadd")
    ctx = tvm.context(tgt, 0)
    if ctx.exist:
        run(fadd, ctx, A, B, C)
    else:
        try:
            tvm.nd.array(np.zeros(4, dtype=C.dtype), ctx)
        except tvm.RefcompError as error:
            print(f"compiled for {tgt}, but not run: {error}")
    show("host code", fadd.get_source())
    for device_module in fadd.imported_modules:
        show(f"{tgt} code", device_module.get_source())


def main(targets: list[str]) -> None:
    """Add on each of the targets."""
    for tgt in targets or ["llvm", "opencl", "rocm"]:
        print(f"\n===== {tgt} =====")
        add_on(tgt)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except tvm.RefcompError as error:
        sys.exit(f"vector_add.py: {error}")
