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

Requires: nothing. Ensures: no parallel loop is left, and no
pragma of one. Level: any, kept. It refuses nothing.
"""

from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import map_children, with_fields
from refcomp.ir.stmt import PARALLEL, SERIAL, STRIDE_PATTERN, For, Pragma, Stmt
from refcomp.passes.analysis.contents import holds


def serialize_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with its parallel loops run in order."""
    is_needed = holds(func, PARALLEL) or holds(func, Pragma)
    return func.with_body(_visit(func.body)) if is_needed else func


def _visit(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Pragma) and stmt.key == STRIDE_PATTERN:
        return _visit(stmt.body)
    stmt = map_children(stmt, _visit, only=Stmt)
    if isinstance(stmt, For) and stmt.kind == PARALLEL:
        return with_fields(stmt, kind=SERIAL)
    return stmt
