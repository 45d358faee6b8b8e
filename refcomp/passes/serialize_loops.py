"""Turns parallel loops into serial ones, for kernels: only bound loops have threads.

Before::

    func scale(A: f32[n], B: f32[n] out) {
      for i in range(n) blockIdx.x {
        for j in range(4) parallel {
          B@[i * 4 + j] = A@[i * 4 + j] * 2.0f32
        }
      }
    }

After::

    func scale(A: f32[n], B: f32[n] out) {
      for i in range(n) blockIdx.x {
        for j in range(4) {
          B@[i * 4 + j] = A@[i * 4 + j] * 2.0f32
        }
      }
    }

Requires: nothing. Ensures: no parallel loop is left. Level: any, kept. It refuses nothing.
"""

from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import map_children, with_fields
from refcomp.ir.stmt import PARALLEL, SERIAL, For, Stmt
from refcomp.passes.analysis.contents import holds


def serialize_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with its parallel loops run in order."""
    return func.with_body(_visit(func.body)) if holds(func, PARALLEL) else func


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _visit, only=Stmt)
    if isinstance(stmt, For) and stmt.kind == PARALLEL:
        return with_fields(stmt, kind=SERIAL)
    return stmt
