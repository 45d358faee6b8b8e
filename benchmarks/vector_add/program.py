"""A program as a user would write it: C[i] = A[i] + B[i] of symbolic length, in vectors.

It imports nothing but refcomp, since a row counts what a process takes that runs it.
"""

from __future__ import annotations

import refcomp as rc

_LANES = 16


def build_add(name: str) -> rc.runtime.Module:
    """Return the module with a function `name`. Another name is another build."""
    n = rc.var("n")
    a, b = (rc.placeholder((n,), name=letter) for letter in "AB")
    c = rc.compute((n,), lambda i: a[i] + b[i], name="C")
    schedule = rc.create_schedule(c)
    _, inner = schedule[c].split(c.op.axis[0], factor=_LANES)
    schedule[c].vectorize(inner)
    return rc.build(schedule, [a, b, c], "llvm", name=name)
