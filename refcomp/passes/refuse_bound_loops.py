"""Refuses loops that are bound to threads of a GPU, for targets that have none.

Before::

    func copy(A: f32[n], B: f32[n] out) {
      for i in range(n) {
        B[i] = A[i]
      }
    }

After::

    func copy(A: f32[n], B: f32[n] out) {
      for i in range(n) {
        B[i] = A[i]
      }
    }

Requires: nothing. Ensures: no bound loop is in the function. Level: any, kept. It refuses
(UserError) a bound loop.
"""

from refcomp.foundation.errors import UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernels_in
from refcomp.ir.stmt import For


def refuse_bound_loops(func: PrimFunc) -> PrimFunc:
    """`func` itself, when it has no bound loop."""
    for loop in kernels_in(func.body):
        raise _no_threads(loop)
    return func


def _no_threads(loop: For) -> UserError:
    origin = loop.origin
    subject = (
        f"axis {origin.axis} of stage {origin.stage}"
        if origin
        else f"loop {loop.var.name}"
    )
    return UserError(
        f"{subject} is bound to {loop.kind}, but the host has no such threads",
        where=str(origin) if origin else None,
        why="bind shares a loop among the threads of a GPU",
        remedy='build for a target that is a GPU ("opencl", "rocm"), or mark the loop parallel, '
        "vectorize or unroll in place of bind",
    )
