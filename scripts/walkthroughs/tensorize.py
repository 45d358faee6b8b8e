#!/usr/bin/env python3
"""tensorize: a block of a matrix product done by a function of one's own.

The intrinsic says by a compute what it does, and by statements how: here 8 x 8 x 8 blocks, reset
and then updated, on parts of larger matrices whose strides each use fills in. Needs LLVM's tools.
Exit code: 1 when a result is wrong, or what does not match is not refused.
"""

import sys

import numpy as np

import refcomp as rc
from refcomp.te.tensor import Tensor

BLOCK, ROWS, COLUMNS, DEPTH = 8, 32, 24, 40


def product(rows: object, columns: object, depth: object) -> tuple[Tensor, Tensor, Tensor]:
    """C = A B of any extents."""
    a, b = rc.placeholder((rows, depth), name="A"), rc.placeholder((depth, columns), name="B")
    k = rc.reduce_axis((0, depth), "k")
    c = rc.compute((rows, columns), lambda i, j: rc.sum(a[i, k] * b[k, j], axis=k), name="C")
    return a, b, c


def block_product() -> object:
    """Return the intrinsic: a product of three eights, by loops that vectorize well."""
    a, b, c = product(BLOCK, BLOCK, BLOCK)
    views = {}
    for t in (a, b, c):
        strides = [rc.var(f"{t.name}.row"), 1]
        views[t] = rc.decl_buffer(t.shape, t.dtype, t.name, strides=strides, offset_factor=1)

    def reset(outs: list) -> object:
        ib = rc.ir_builder.create()
        z = ib.buffer_ptr(outs[0])
        with ib.for_range(0, BLOCK, "i") as i, ib.for_range(0, BLOCK, "j", "vectorize") as j:
            z[i, j] = 0.0
        return ib.get()

    def update(ins: list, outs: list) -> object:
        ib = rc.ir_builder.create()
        x, y, z = (ib.buffer_ptr(view) for view in (*ins, *outs))
        rows, depths = ib.for_range(0, BLOCK, "i", "unroll"), ib.for_range(0, BLOCK, "k", "unroll")
        with rows as i, depths as k, ib.for_range(0, BLOCK, "j", "vectorize") as j:
            z[i, j] = z[i, j] + x[i, k] * y[k, j]
        return ib.get()

    return rc.decl_tensor_intrin(
        c.op, lambda ins, outs: (None, reset(outs), update(ins, outs)), "block_product", views
    )


def in_blocks() -> bool:
    """Replace the loops over a block by the intrinsic's statements; the result is the same."""
    a, b, c = product(ROWS, COLUMNS, DEPTH)
    s = rc.create_schedule(c)
    i, j, ii, jj = s[c].tile(*c.op.axis, BLOCK, BLOCK)
    k, kk = s[c].split(c.op.reduce_axis[0], factor=BLOCK)
    s[c].reorder(i, j, k, ii, jj, kk)
    s[c].tensorize(ii, block_product())
    func = rc.lower(s, [a, b, c], name="in_blocks")
    print(rc.print_func(func))
    random = np.random.default_rng(0)
    x = random.integers(-8, 9, (ROWS, DEPTH)).astype(np.float32)
    y = random.integers(-8, 9, (DEPTH, COLUMNS)).astype(np.float32)
    result = np.zeros((ROWS, COLUMNS), np.float32)
    rc.build(func)(x, y, result)
    return bool((result == x @ y).all())


def refused() -> bool:
    """Show that another computation is refused, with its first difference from the product."""
    a, b = rc.placeholder((BLOCK, BLOCK), name="A"), rc.placeholder((BLOCK, BLOCK), name="B")
    k = rc.reduce_axis((0, BLOCK), "k")
    c = rc.compute((BLOCK, BLOCK), lambda i, j: rc.sum(a[i, k] + b[k, j], axis=k), name="C")
    s = rc.create_schedule(c)
    try:
        s[c].tensorize(c.op.axis[0], block_product())
        rc.lower(s, [a, b, c])
    except rc.UserError as error:
        print(error)
        return True
    return False


if __name__ == "__main__":
    found = {"in_blocks": in_blocks(), "refused": refused()}
    print("right:", found)
    sys.exit(int(not all(found.values())))
