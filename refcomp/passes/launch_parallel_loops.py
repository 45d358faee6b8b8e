"""Launches parallel loops that stand outside of kernels: each iteration becomes a thread.

An extern operation writes such loops, since a schedule cannot bind them.

Before::

    func double(A: f32[n], B: f32[n] out) {
      for i in range(n) parallel {
        B[i] = A[i] * 2.0f32
      }
    }

After::

    func double(A: f32[n], B: f32[n] out) {
      for blockIdx.x in range((n + 63) // 64) blockIdx.x {
        for threadIdx.x in range(64) threadIdx.x {
          pragma independent_threads 1 {
            if (blockIdx.x * 64 + threadIdx.x < n) {
              let i: i64 = blockIdx.x * 64 + threadIdx.x {
                B[i] = A[i] * 2.0f32
              }
            }
          }
        }
      }
    }

A loop that begins at another number than 0 adds this number to `i`. A loop of one iteration is a
launch of one thread. The iterations of a parallel loop are independent. The pragma says so: no
thread reads what another thread writes. Therefore `insert_barriers` adds no barriers, which are
illegal in the loops and branches of a single thread.

Requires: nothing. Ensures: outside of kernels, no parallel loop is left that a kernel could be.
Level: nested, kept. Parallel loops stay if kernels or calls of functions are inside of them, or if
their extent is read from memory. `split_host_device` refuses those that the host cannot run.
It refuses global memory that an iteration allocates, since kernels cannot allocate it.
"""

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import GLOBAL, BufferLoad, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, FloorDiv, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import INDEPENDENT_THREADS, is_bound
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import map_children, statements_in, walk
from refcomp.ir.stmt import (
    BLOCK_TAGS,
    CALLS,
    PARALLEL,
    STRIDE_PATTERN,
    THREADS_IN_BLOCK_TAGS,
    Allocate,
    For,
    IfThenElse,
    LetStmt,
    Pragma,
    Stmt,
    line_of,
    place_of,
)
from refcomp.passes.analysis.contents import holds

_THREADS = 64  # of a group: the width of the widest waves


def launch_parallel_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with a kernel for each parallel loop that stands outside of kernels."""
    return func.with_body(_visit(func.body)) if holds(func, PARALLEL) else func


def _visit(stmt: Stmt) -> Stmt:
    if is_bound(stmt):
        return stmt
    # Neighbouring threads run neighbouring iterations, as the pragma wants.
    if isinstance(stmt, Pragma) and stmt.key == STRIDE_PATTERN:
        return _visit(stmt.body)
    if isinstance(stmt, For) and stmt.kind == PARALLEL and _can_be_launched(stmt):
        _check_memory(stmt)
        return _launched(stmt)
    return map_children(stmt, _visit, only=Stmt)


def _can_be_launched(loop: For) -> bool:
    inner = statements_in(loop.body)
    if any(is_bound(stmt) or isinstance(stmt, CALLS) for stmt in inner):
        return False
    parts = (*walk(loop.minimum), *walk(loop.extent))
    return not any(isinstance(part, BufferLoad | Load) for part in parts)


def _check_memory(loop: For) -> None:
    for stmt in statements_in(loop.body):
        if isinstance(stmt, Allocate) and stmt.buffer.scope == GLOBAL:
            raise UserError(
                f"the parallel loop {loop.var.name} allocates {stmt.buffer.name} "
                "in global memory, which a kernel cannot do",
                where=place_of(stmt.origin),
                at=line_of(stmt.origin),
                why="each iteration of the loop is a thread of a kernel",
                remedy="allocate it outside of the loop with a part for each "
                'iteration, or in the scope "local"',
            )


def _launched(loop: For) -> Stmt:
    """Return the kernel whose threads are the iterations of `loop`."""
    extent = cast(I64, loop.extent)
    count = as_int(simplify(extent))
    size = _THREADS if count is None else max(1, min(count, _THREADS))
    groups = simplify(FloorDiv(extent + (size - 1), IntImm(size, I64)))
    block_tag = BLOCK_TAGS[0]
    thread_tag = THREADS_IN_BLOCK_TAGS[0]
    block = Var(block_tag, I64)
    thread = Var(thread_tag, I64)
    place: Expr = block * size + thread
    value = cast(loop.var.dtype, place)
    if as_int(loop.minimum) != 0:
        value = loop.minimum + value
    body: Stmt = LetStmt(loop.var, value, loop.body, loop.origin)
    if count is None or count % size:
        body = IfThenElse(place < extent, body, None, loop.origin)
    body = Pragma(INDEPENDENT_THREADS, IntImm(1, I64), body, loop.origin)
    zero = IntImm(0, I64)
    threads = For(thread, zero, IntImm(size, I64), thread_tag, body, loop.origin)
    return For(block, zero, groups, block_tag, threads, loop.origin)
