"""Print statements as LLVM IR: one function per node class.

A parallel region becomes a function of its own. It is called directly if one thread is asked for,
else by the pool of threads (`templates/llvm/threads.j2`). If memory is lacking, it sets the status
of its caller.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.llvm.function import LlvmFunction, StatementPrinters, TypedValue
from refcomp.codegen.llvm.memory import print_prefetch, print_store
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.names import to_identifier
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import as_constant, element_count

STACK_ARRAY_BYTES = 16 * 1024  # of one array; a larger one is taken from the heap
STACK_BYTES = 256 * 1024  # of all stack arrays of a function
_CACHE_LINE = 64  # bytes


@dataclass(frozen=True, slots=True)
class DimProduct:
    """One dimension in the computation of an array's size. All fields are operands."""

    name: str  # a fresh name, for the dimension without negative values
    extent: str
    before: str  # product of the element's bytes and the dimensions before
    after: str  # the same, with this dimension


def print_dims(out: LlvmFunction, buffer: Buffer) -> tuple[list[DimProduct], str]:
    """Print the extents of `buffer`. Return its dimensions, and the operand of its bytes."""
    dims: list[DimProduct] = []
    product = str(buffer.dtype.bytes)
    for dim in buffer.shape:
        extent = out.value(ir.Cast(I64, dim))
        name = out.fresh()
        after = out.fresh()
        dims.append(DimProduct(name, extent, product, after))
        product = after
    return dims, product


def _block(out: LlvmFunction, block: st.Block) -> None:
    for stmt in block.stmts:
        out.statement(stmt)


def print_for(out: LlvmFunction, loop: st.For, note: str = "") -> None:
    """Print a loop. `note` is metadata of its last branch."""
    dtype = loop.var.dtype
    minimum = out.value(loop.minimum)
    end = out.value(loop.extent)
    if as_constant(loop.minimum) != 0:
        end = out.binary("Add", dtype, minimum, end)
    number = out.number()
    name = out.name(loop.var)
    body = out.capture(lambda: out.statement(loop.body))
    text = out.say.loop(
        variable=name,
        id=number,
        type=out.type_of(dtype),
        minimum=minimum,
        end=end,
        less=out.module.opcode("LT", dtype),
        note=note,
        body=BODY,
    )
    out.emit_around(text, body)


def _if_then_else(out: LlvmFunction, stmt: st.IfThenElse) -> None:
    condition = out.value(stmt.condition)
    number = out.number()
    else_case = stmt.else_case
    then_body = out.capture(lambda: out.statement(stmt.then_case))
    if else_case is None:
        text = out.say.if_then(id=number, condition=condition, then_body=BODY)
        out.emit_around(text, then_body)
        return
    else_body = out.capture(lambda: out.statement(else_case))
    text = out.say.if_then_else(
        id=number, condition=condition, then_body=BODY, else_body=BODY
    )
    out.emit_around(text, then_body, else_body)


# Memory.


def _allocate(out: LlvmFunction, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    count = element_count(buffer.shape)
    size = None if count is None else count * buffer.dtype.bytes
    if size is None or size > STACK_ARRAY_BYTES or out.stack_bytes + size > STACK_BYTES:
        _allocate_on_heap(out, allocate)
        return
    out.stack_bytes += size
    array = out.say.stack_array(
        name=out.name(buffer),
        count=count,
        element=out.module.memory_type_of(buffer.dtype),
        alignment=_alignment(buffer),
    )
    out.stack.append(array)
    out.statement(allocate.body)


def _alignment(buffer: Buffer) -> int:
    return max(_CACHE_LINE, buffer.alignment)


def _allocate_on_heap(out: LlvmFunction, allocate: st.Allocate) -> None:
    alignment = _alignment(allocate.buffer)
    dims, product = print_dims(out, allocate.buffer)
    size = out.instruction(
        out.say.heap_bytes, dims=dims, product=product, alignment=alignment
    )
    c_size = out.type_of(out.module.c_size)
    out.declare("heap", out.say.declare_heap, size=c_size)
    out.fails = True
    number = out.number()
    name = out.name(allocate.buffer)
    body = out.capture(lambda: out.statement(allocate.body))
    text = out.say.heap_array(
        name=name,
        id=number,
        bytes=size,
        alignment=alignment,
        size=c_size,
        failure=out.failure(),
        body=BODY,
    )
    out.emit_around(text, body)


# Parallel regions.


def _parallel_region(out: LlvmFunction, region: st.ParallelRegion) -> None:
    inner = out.begin_region()
    function = out.module.take_symbol(to_identifier(region.name))
    task_type = out.type_of(region.task.dtype)
    captures = [_capture(out, item) for item in region.captures]
    params = [_region_param(inner, item) for item in region.captures]
    for var in (region.task, region.num_tasks):
        params.append(out.say.value_param(type=task_type, name=inner.name(var)))
    body = inner.capture(lambda: inner.statement(region.body))
    if inner.fails:
        out.fails = True
        captures.append(TypedValue(out.say.pointer(), out.say.status()))
        params.insert(len(region.captures), out.say.status_param())
    types = [capture.type for capture in captures]
    struct = out.say.struct(types=types)
    text = out.say.region_function(
        name=function, params=params, allocas=BODY, body=BODY
    )
    inner.emit_around(text, inner.entry_block(), body)
    entry = out.say.region_entry(
        function=function, struct=struct, types=types, task_type=task_type
    )
    inner.emit(entry)
    out.module.functions.extend(inner.chunks)
    _declare_pool(out)
    packed = out.fresh()
    out.stack.append(out.say.packed_captures(packed=packed, struct=struct))
    call = out.say.region_call(
        id=out.number(),
        function=function,
        struct=struct,
        captures=captures,
        packed=packed,
        task_type=task_type,
    )
    out.emit(call)


def _declare_pool(out: LlvmFunction) -> None:
    architecture = out.module.architecture
    futex = out.tables["futex"].get(architecture)
    if futex is None:
        raise Unsupported(
            f"a parallel loop cannot be compiled for the architecture {architecture}",
            why="templates/llvm/threads.toml does not know how its threads wait",
            remedy="remove parallel from the schedule, or add the architecture there",
        )
    pause = out.tables["pause"].get(architecture, "")
    pool = out.tables["pool"]
    out.declare("regions", out.say.declare_regions, pool=pool, futex=futex, pause=pause)


def _capture(out: LlvmFunction, item: ir.Var | Buffer) -> TypedValue:
    if isinstance(item, Buffer):
        return TypedValue(out.say.pointer(), out.name_of(item))
    return TypedValue(out.type_of(item.dtype), out.name_of(item))


def _region_param(inner: LlvmFunction, item: ir.Var | Buffer) -> str:
    name = inner.name(item)
    if isinstance(item, Buffer):
        return inner.say.buffer_param(name=name)
    return inner.say.value_param(type=inner.type_of(item.dtype), name=name)


# Of every LLVM target.
STATEMENTS: StatementPrinters = {
    st.For: print_for,
    st.Store: print_store,
    st.IfThenElse: _if_then_else,
    st.Block: _block,
}
HOST_STATEMENTS: StatementPrinters = {
    **STATEMENTS,
    st.Allocate: _allocate,
    st.ParallelRegion: _parallel_region,
    st.Prefetch: print_prefetch,
}
