"""Prints statements as C: one function per node class.

Shared arrays stand at the top of the kernel, where C's dialects want them, or are parameters where
their size is known only at the launch; local ones stand where they are allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.c_family.atomics import print_atomic
from refcomp.codegen.c_family.expressions import define, from_ring, print_ring
from refcomp.codegen.c_family.function import CExpr, CFunction
from refcomp.codegen.c_family.memory import element, print_store
from refcomp.foundation.errors import CompilerBug
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.constants import as_constant, element_count
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk

_WIDEST_VECTOR = 16  # bytes of what vector loads of shared memory are best aligned to


def print_stmt(out: CFunction, stmt: st.Stmt) -> None:
    """Prints `stmt` and what is in it."""
    # A chain of lets may be longer than Python's stack is deep.
    while isinstance(stmt, st.LetStmt):
        out.source = stmt
        define(out, stmt.var, stmt.value, _is_truth_across_barrier(stmt))
        stmt = stmt.body
    out.source = stmt
    _STATEMENTS[type(stmt)](out, stmt)


def _is_truth_across_barrier(let: st.LetStmt) -> bool:
    return let.var.dtype.is_bool and _has_barrier(let.body)


def _block(out: CFunction, block: st.Block) -> None:
    for stmt in block.stmts:
        print_stmt(out, stmt)


def _for(out: CFunction, loop: st.For) -> None:
    if loop.kind in st.THREAD_TAGS:
        _bound_loop(out, loop)
        return
    dtype = loop.var.dtype
    minimum, end = out.value(loop.minimum), _end(out, loop)
    type_ = out.module.type_of(dtype)
    names: list[str] = []

    def print_body() -> None:
        names.append(out.name(loop.var))
        print_stmt(out, loop.body)

    is_kept = _is_in_nest_that_may_pass_barrier_by(out, loop)
    body = out.capture_block(print_body)
    say_loop = out.say.loop_kept if is_kept else out.say.loop
    text = say_loop(type_, names[0], minimum.text, end.text, BODY)
    out.emit_around(text, body)


def _is_in_nest_that_may_pass_barrier_by(out: CFunction, loop: st.For) -> bool:
    """Return True if `loop` is an inner one that may pass a barrier by, or lies around such."""
    if not _has_barrier(loop.body):  # most loops
        return False
    if out.is_inside_block and as_constant(loop.extent) is None:
        return True
    return any(
        isinstance(n, st.For) and _may_pass_barrier_by(n) for n in walk(loop.body)
    )


def _may_pass_barrier_by(loop: st.For) -> bool:
    """Return True if a barrier is in `loop`, and an extent of 0 is possible."""
    return as_constant(loop.extent) is None and _has_barrier(loop.body)


def _has_barrier(stmt: Node) -> bool:
    return any(isinstance(item, st.Barrier) for item in walk(stmt))


def _end(out: CFunction, loop: st.For) -> CExpr:
    """Where the loop ends, evaluated once."""
    dtype = loop.var.dtype
    if as_constant(loop.minimum) == 0:
        return out.atom(out.value(loop.extent), dtype)
    end = from_ring(out, print_ring(out, ir.Add(loop.minimum, loop.extent)), dtype)
    return out.atom(end, dtype)


def _bound_loop(out: CFunction, loop: st.For) -> None:
    """The variable of a bound loop: which thread or group this is. Ends in the kernel's body."""
    index = out.module.tables["thread_index"][loop.kind]
    out.emit(
        out.say.define(out.module.type_of(loop.var.dtype), out.name(loop.var), index)
    )
    print_stmt(out, loop.body)


def _if_then_else(out: CFunction, stmt: st.IfThenElse) -> None:
    condition = out.value(stmt.condition).text
    then_body = out.capture_block(lambda: print_stmt(out, stmt.then_case))
    else_case = stmt.else_case
    if else_case is None:
        out.emit_around(out.say.if_then(condition, BODY), then_body)
        return
    else_body = out.capture_block(lambda: print_stmt(out, else_case))
    out.emit_around(out.say.if_then_else(condition, BODY, BODY), then_body, else_body)


def _allocate(out: CFunction, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    type_ = out.module.memory_type_of(buffer.dtype)
    elements = element_count(buffer.shape)
    is_constant, count = elements is not None, max(1, elements or 0)
    if buffer.scope == "local" and is_constant:
        out.emit(out.say.array(type_, out.name(buffer), count))
    elif buffer.scope == "shared" and is_constant:
        alignment = max(_WIDEST_VECTOR, buffer.alignment)
        name = out.name_of_kernel(buffer)
        out.declare_above(out.say.shared_array(type_, name, count, alignment))
    elif buffer.scope == "shared":
        space = out.module.tables["scope"]["shared"]
        param = out.say.buffer_param(space, type_, out.name_of_kernel(buffer), False)
        out.shared_params.append(param)
    else:
        raise CompilerBug(
            f"{buffer.name}, a {buffer.scope} buffer, is allocated in a kernel",
            why="split_host_device leaves global ones to the host; local ones have constant shapes",
        )
    print_stmt(out, allocate.body)


def _barrier(out: CFunction, _barrier: st.Barrier) -> None:
    out.emit(out.say.barrier())


def _prefetch(out: CFunction, prefetch: st.Prefetch) -> None:
    if prefetch.buffer.scope == "global":  # the others are near already
        place = element(out, prefetch.buffer, prefetch.indices[0])
        out.emit(out.say.prefetch(out.say.address(place.text)))


_STATEMENTS: dict[type[Any], Callable[[CFunction, Any], None]] = {
    st.For: _for,
    st.Store: print_store,
    st.Allocate: _allocate,
    st.IfThenElse: _if_then_else,
    st.Block: _block,
    st.Barrier: _barrier,
    st.AtomicUpdate: print_atomic,
    st.Prefetch: _prefetch,
}


# Note [Loops that PoCL does not leave]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# This kernel is right: n is the same for all work-items, so all of them pass each barrier equally
# often (OpenCL C 3.0, 6.15.8). Oclgrind and Intel's runtime run it; PoCL 3.1 never ends it, and
# computes wrong sums where B[t] is set to 0 first:
#
#     for (long i = 0; i < 2; ++i) {
#       for (long k = 0; k < n; ++k) barrier(CLK_LOCAL_MEM_FENCE);
#       for (long j = 0; j < n; ++j)
#         if (t < 2) B[t] += j;
#     }
#
# LLVM sees that both inner loops ask 0 < n, and goes from the first past the second. So the barrier
# becomes a conditional one inside the loop over i, and PoCL forms wrong regions of work-items. A k
# that is kept in memory hides that both ask the same. To keep i alone does not help: PoCL crashes.
# To keep k alone helps here, but not where the loop over k holds conditional copies into shared
# memory: PoCL's compiler aborts the process (`exit != NULL` in ParallelRegion.cc). So each loop
# around a kept one is kept too.
# PoCL's developers have a report of the kind (pocl/pocl issue 1990, versions 3 to 6).
# `tests/codegen/opencl/test_pocl_faults.py` runs such kernels each way, on each device.
#
# Not all that seems to hang does: what follows a conditional barrier PoCL copies for each way
# through it, so that kernels of many nested loops around barriers take it minutes to compile.
