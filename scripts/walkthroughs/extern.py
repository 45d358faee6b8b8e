#!/usr/bin/env python3
"""Tensors that somebody else computes: numpy, a C function, or a statement of one's own.

Each comes in a program of computes: what is around it is scheduled and fused as ever. Needs LLVM's
tools. Exit code: 1 when a result is wrong.
"""

import sys

import numpy as np

import refcomp as rc

N, M = 24, 16
Check = dict[str, bool]


@rc.register_func("walkthrough.matmul")
def matmul(a: rc.NDArray, b: rc.NDArray, c: rc.NDArray) -> None:
    """Multiply arrays of the compiled program, which calls this function with copies of them."""
    np.matmul(a.numpy(), b.numpy(), out=c.numpy())


def by_numpy() -> bool:
    """Compute a product by numpy between two computes that are compiled."""
    a, b = rc.placeholder((N, M), name="A"), rc.placeholder((M, N), name="B")
    double = rc.compute((N, M), lambda i, j: a[i, j] * 2.0, name="double")
    c = rc.extern(
        (N, N),
        [double, b],
        lambda ins, outs: rc.call_packed("walkthrough.matmul", ins[0], ins[1], outs[0]),
        name="C",
    )
    d = rc.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    s = rc.create_schedule(d)
    s[d].vectorize(s[d].split(d.op.axis[1], factor=8)[1])
    func = rc.lower(s, [a, b, d], name="by_numpy")
    print(rc.print_func(func))
    x, y = np.ones((N, M), np.float32), np.full((M, N), 0.5, np.float32)
    result = np.zeros((N, N), np.float32)
    rc.build(func)(x, y, result)
    return bool((result == 2 * x @ y + 1).all())


def by_c() -> bool:
    """Copy by memcpy, and take cube roots by libm. Another library: target 'llvm -libs=/a/b.so'."""
    a = rc.placeholder((N,), "float64", "A")
    copy = rc.extern(
        (N,),
        [a],
        lambda ins, outs: rc.call_extern(
            "int32", "memcpy", outs[0].access_ptr("w"), ins[0].access_ptr("r"), N * 8
        ),
        name="copy",
    )
    root = rc.compute((N,), lambda i: rc.call_pure_extern("float64", "cbrt", copy[i]), name="root")
    x, result = np.arange(N) ** 3.0, np.zeros(N)
    rc.build(rc.create_schedule(root), [a, root])(x, result)
    return bool(np.allclose(result, np.arange(N)))


def by_a_statement() -> bool:
    """Prefix sums, which no compute can say: each element needs the one before."""

    def prefix_sums(ins: list, outs: list) -> object:
        ib = rc.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        total = ib.allocate("int64", 1, name="total", scope="local")
        total[0] = 0
        with ib.for_range(0, N, name="i") as i:
            total[0] = total[0] + x[i]
            y[i] = total[0]
        return ib.get()

    a = rc.placeholder((N,), "int64", "A")
    sums = rc.extern((N,), [a], prefix_sums, name="sums")
    func = rc.lower(rc.create_schedule(sums), [a, sums], name="by_a_statement")
    print(rc.print_func(func))
    x, result = np.arange(N), np.zeros(N, np.int64)
    rc.build(func)(x, result)
    return bool((result == np.cumsum(x)).all())


if __name__ == "__main__":
    found: Check = {f.__name__: f() for f in (by_numpy, by_c, by_a_statement)}
    print("right:", found)
    sys.exit(int(not all(found.values())))
