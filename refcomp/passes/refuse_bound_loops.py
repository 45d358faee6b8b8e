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

Requires: nothing. Ensures: the function has no bound loop. Level: any, kept. It refuses
(UserError) a bound loop.
"""

from refcomp.foundation.errors import UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernels_in
from refcomp.ir.stmt import THREAD_TAGS, line_of, place_of
from refcomp.passes.analysis.contents import holds


def refuse_bound_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` itself, or raise UserError if it has a bound loop."""
    loops = kernels_in(func.body) if holds(func, *THREAD_TAGS) else ()
    for loop in loops:
        origin = loop.origin
        subject = f"loop {loop.var.name}"
        if origin:
            subject = f"axis {origin.axis} of stage {origin.stage}"
        raise UserError(
            f"{subject} is bound to {loop.kind}, but the host has no such threads",
            where=place_of(origin),
            at=line_of(origin),
            why="bind shares a loop among the threads of a GPU",
            remedy='build for a target that is a GPU ("opencl", "rocm"), or mark the '
            "loop parallel, vectorize or unroll in place of bind",
        )
    return func
