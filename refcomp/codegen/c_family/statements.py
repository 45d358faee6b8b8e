"""Print statements as C: one function per node class.

Shared arrays of constant size are declared at the top of the kernel, as C's dialects demand. A
shared array whose size is known only at the launch is a parameter. Local arrays are declared where
they are allocated.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.c_family.atomics import print_atomic
from refcomp.codegen.c_family.expressions import define, from_wrapping, print_wrapping
from refcomp.codegen.c_family.function import CExpr, CFunction, StatementPrinters
from refcomp.codegen.c_family.memory import WIDEST_ACCESS, element, print_store
from refcomp.foundation.errors import CompilerBug
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.constants import as_constant, element_count
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk


def print_stmt(out: CFunction, stmt: st.Stmt) -> None:
    """Print `stmt` and the statements in it."""
    # A chain of lets may be longer than Python's stack is deep.
    while isinstance(stmt, st.LetStmt):
        out.source = stmt
        is_volatile = stmt.var.dtype.is_bool and _has_barrier(stmt.body)
        define(out, stmt.var, stmt.value, is_volatile=is_volatile)
        stmt = stmt.body
    out.source = stmt
    print_it = out.statements.get(type(stmt)) or _STATEMENTS[type(stmt)]
    print_it(out, stmt)


def _block(out: CFunction, block: st.Block) -> None:
    for stmt in block.stmts:
        print_stmt(out, stmt)


def _for(out: CFunction, loop: st.For) -> None:
    if loop.kind in st.THREAD_TAGS:
        _bound_loop(out, loop)
        return
    minimum = out.value(loop.minimum)
    end = _end(out, loop)
    type_ = out.type_of(loop.var.dtype)
    is_volatile = _has_volatile_variable(out, loop)

    def print_body() -> None:
        out.name(loop.var)
        print_stmt(out, loop.body)

    body = out.capture_block(print_body)
    macro: Callable[..., str] = out.say.loop
    if is_volatile:
        macro = out.say.loop_volatile
    elif loop.kind == st.UNROLLABLE:
        macro = out.say.loop_to_unroll
    name = out.names[loop.var]
    text = macro(
        type=type_,
        name=name,
        minimum=minimum,
        end=end,
        body=BODY,
    )
    out.emit_around(text, body)


def _end(out: CFunction, loop: st.For) -> CExpr:
    """Return the end of the loop's range, evaluated once."""
    dtype = loop.var.dtype
    if as_constant(loop.minimum) == 0:
        return out.atom(out.value(loop.extent), dtype)
    end = print_wrapping(out, ir.Add(loop.minimum, loop.extent))
    return out.atom(from_wrapping(out, end, dtype), dtype)


def _has_volatile_variable(out: CFunction, loop: st.For) -> bool:
    """Return True if the variable is kept in memory: Note [Loops that PoCL does not leave].

    Either `loop` is inside a block and may skip its barrier, or it contains such a loop.
    """
    if not _has_barrier(loop.body):  # most loops
        return False
    if out.is_inside_block and as_constant(loop.extent) is None:
        return True
    inner = [node for node in walk(loop.body) if isinstance(node, st.For)]
    return any(as_constant(f.extent) is None and _has_barrier(f.body) for f in inner)


def _has_barrier(stmt: Node) -> bool:
    return any(isinstance(item, st.Barrier) for item in walk(stmt))


def _bound_loop(out: CFunction, loop: st.For) -> None:
    """Print the index of the thread or group as a constant, and the body, without a loop."""
    index = out.tables["thread_index"][loop.kind]
    type_ = out.type_of(loop.var.dtype)
    out.emit(
        out.say.define(
            type=type_,
            name=out.name(loop.var),
            value=index,
        )
    )
    print_stmt(out, loop.body)


def _if_then_else(out: CFunction, stmt: st.IfThenElse) -> None:
    condition = out.value(stmt.condition)
    else_case = stmt.else_case
    then_body = out.capture_block(lambda: print_stmt(out, stmt.then_case))
    if else_case is None:
        text = out.say.if_then(condition=condition, then_body=BODY)
        out.emit_around(text, then_body)
        return
    else_body = out.capture_block(lambda: print_stmt(out, else_case))
    text = out.say.if_then_else(
        condition=condition,
        then_body=BODY,
        else_body=BODY,
    )
    out.emit_around(text, then_body, else_body)


def _allocate(out: CFunction, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    type_ = out.module.memory_type_of(buffer.dtype)
    elements = element_count(buffer.shape)
    count = max(1, elements or 0)
    alignment = max(WIDEST_ACCESS, buffer.alignment)
    if buffer.scope == "local" and elements is not None:
        out.emit(
            out.say.array(
                type=type_,
                name=out.name(buffer),
                count=count,
                alignment=alignment,
            )
        )
    elif buffer.scope == "shared" and elements is not None:
        name = out.name_of_kernel(buffer)
        out.declare_above(
            out.say.shared_array(
                type=type_,
                name=name,
                count=count,
                alignment=alignment,
            )
        )
    elif buffer.scope == "shared":
        space = out.tables["scope"]["shared"]
        name = out.name_of_kernel(buffer)
        param = out.say.shared_param(scope=space, type=type_, name=name)
        out.shared_params.append(param)
        # Not every dialect has pointers to shared memory as parameters.
        out.declare_above(out.say.shared_pointer(type=type_, name=name))
    else:
        raise CompilerBug(
            f"{buffer.name}, a {buffer.scope} buffer, is allocated in a kernel",
            why="split_host_device leaves global ones to the host; local ones have constant shapes",
        )
    print_stmt(out, allocate.body)


def _barrier(out: CFunction, _barrier: st.Barrier) -> None:
    out.emit(out.say.barrier())


def _prefetch(out: CFunction, prefetch: st.Prefetch) -> None:
    if prefetch.buffer.scope == "global":  # shared and local memory are near already
        place = element(out, prefetch.buffer, prefetch.indices[0])
        out.emit(out.say.prefetch(place=place))


_STATEMENTS: StatementPrinters = {
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
# often (OpenCL C 3.0, 6.15.8). Oclgrind and Intel's runtime run it. PoCL 3.1 never ends it, and
# computes wrong sums where B[t] is set to 0 first.
#
# | for (long i = 0; i < 2; ++i) {
# |   for (long k = 0; k < n; ++k) barrier(CLK_LOCAL_MEM_FENCE);
# |   for (long j = 0; j < n; ++j)
# |     if (t < 2) B[t] += j;
# | }
#
# LLVM sees that both inner loops test 0 < n, and jumps from the first past the second. So the
# barrier becomes conditional inside the loop over i, and PoCL forms wrong regions of work-items. If
# k is kept in memory (volatile), LLVM does not see that both tests are the same.
#
# Which variables must be volatile? i alone does not help: PoCL crashes. k alone helps here, but not
# if the loop over k has conditional copies into shared memory: then PoCL's compiler aborts the
# process (`exit != NULL` in ParallelRegion.cc). So each loop around a volatile one is volatile too.
#
# PoCL's developers have a report of the kind (pocl/pocl issue 1990, versions 3 to 6).
# `tests/codegen/opencl/test_pocl_faults.py` runs such kernels each way, on each device.
#
# Not every kernel that seems to hang does. PoCL copies the code after a conditional barrier for
# each way through it, so kernels of many nested loops around barriers take it minutes to compile.
