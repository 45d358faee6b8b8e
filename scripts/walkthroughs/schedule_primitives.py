#!/usr/bin/env python3
"""The primitives of a schedule, one after the other: what each makes of the same loops.

A schedule changes how something is computed, never what: after each primitive the program is
lowered, run and compared. Needs LLVM's tools. Exit code: 1 when a result changes.
"""

import sys
from collections.abc import Callable

import numpy as np

import refcomp as rc

ROWS, COLUMNS = rc.var("m"), rc.var("n")
A = rc.placeholder((ROWS, COLUMNS), name="A")
B = rc.compute((ROWS, COLUMNS), lambda i, j: A[i, j] * 2.0, name="B")
C = rc.compute((ROWS, COLUMNS), lambda i, j: B[i, j] + A[i, j], name="C")
ROW, COLUMN = C.op.axis


def split(s: rc.Schedule) -> None:
    """Split a loop in two; iterations beyond the end are guarded."""
    s[C].split(COLUMN, factor=4)


def tile(s: rc.Schedule) -> None:
    """Two loops become four: tiles, and what is in one."""
    s[C].tile(ROW, COLUMN, 2, 4)


def fuse(s: rc.Schedule) -> None:
    """Two nested loops become one, here shared among threads."""
    s[C].parallel(s[C].fuse(ROW, COLUMN))


def reorder(s: rc.Schedule) -> None:
    """Let loops change places."""
    s[C].reorder(COLUMN, ROW)


def vectorize(s: rc.Schedule) -> None:
    """Make vectors of the inner loop; its tail is masked."""
    s[C].vectorize(s[C].split(COLUMN, factor=8)[1])


def compute_at(s: rc.Schedule) -> None:
    """Compute B row by row, where C needs it."""
    s[B].compute_at(s[C], ROW)


def compute_inline(s: rc.Schedule) -> None:
    """Give B no memory: its expression stands where it was read."""
    s[B].compute_inline()


def cache_read(s: rc.Schedule) -> None:
    """Let C read a copy of A's row."""
    copy = s.cache_read(A, "global", [C])
    s[copy].compute_at(s[C], ROW)


def cache_write(s: rc.Schedule) -> None:
    """Compute C into memory of its own first, a tile at a time, and then write it."""
    local = s.cache_write(C, "local")
    _, _, inner, _ = s[C].tile(ROW, COLUMN, 2, 4)
    s[local].compute_at(s[C], inner)


def bind(s: rc.Schedule) -> None:
    """Make the threads of a GPU of loops; the interpreter runs them as such."""
    for tensor in (B, C):
        s[tensor].bind(tensor.op.axis[0], rc.thread_axis("blockIdx.x"))
        s[tensor].bind(tensor.op.axis[1], rc.thread_axis("threadIdx.x"))


def is_kept(primitive: Callable[[rc.Schedule], None]) -> bool:
    """Print the loops that the primitive makes, and run them."""
    s = rc.create_schedule(C)
    primitive(s)
    func = rc.lower(s, [A, C], name=primitive.__name__)
    print(f"# {primitive.__doc__}\n# {'; '.join(map(str, s.steps))}\n{rc.print_func(func)}")
    x = np.arange(5 * 11, dtype=np.float32).reshape(5, 11)
    result = np.zeros_like(x)
    rc.build(func, target="interp" if primitive is bind else "llvm")(x, result)
    return bool((result == 3 * x).all())


if __name__ == "__main__":
    hosts = (split, tile, fuse, reorder, vectorize, compute_at, compute_inline)
    found = {f.__name__: is_kept(f) for f in (*hosts, cache_read, cache_write, bind)}
    print("right:", found)
    sys.exit(int(not all(found.values())))
