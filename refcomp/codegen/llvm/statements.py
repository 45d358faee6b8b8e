"""Prints statements as LLVM: one function per node class.

A parallel region becomes a function of its own, called directly where one thread is asked for
and through libgomp else; it tells its lack of memory by a flag that its caller owns.
"""

from __future__ import annotations

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.llvm.function import LlvmFunction, StatementPrinters
from refcomp.codegen.llvm.memory import print_prefetch, print_store
from refcomp.foundation.dtype import I64
from refcomp.foundation.names import to_identifier
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import as_constant, element_count

STACK_ARRAY_BYTES = 16 * 1024  # more in one array, or
STACK_BYTES = 256 * 1024  # more in one function, is taken from the heap
_CACHE_LINE = 64


def _block(out: LlvmFunction, block: st.Block) -> None:
    for stmt in block.stmts:
        out.statement(stmt)


def _for(out: LlvmFunction, loop: st.For) -> None:
    dtype = loop.var.dtype
    minimum, extent = out.value(loop.minimum), out.value(loop.extent)
    type_, end = out.module.type_of(dtype), extent
    if as_constant(loop.minimum) != 0:
        end, opcode = out.fresh(), out.module.tables["opcode"]["Add"][dtype.kind]
        out.emit(out.say.binary(end, opcode, type_, minimum, extent))
    less = out.module.tables["opcode"]["LT"][dtype.kind]
    number, name = out.number(), out.name(loop.var)
    body = out.capture(lambda: out.statement(loop.body))
    out.emit_around(out.say.loop(name, number, type_, minimum, end, less, BODY), body)


def _if_then_else(out: LlvmFunction, stmt: st.IfThenElse) -> None:
    condition, number = out.value(stmt.condition), out.number()
    then_body, else_case = (
        out.capture(lambda: out.statement(stmt.then_case)),
        stmt.else_case,
    )
    if else_case is None:
        out.emit_around(out.say.if_then(number, condition, BODY), then_body)
        return
    else_body = out.capture(lambda: out.statement(else_case))
    out.emit_around(
        out.say.if_then_else(number, condition, BODY, BODY), then_body, else_body
    )


# Memory.


def _allocate(out: LlvmFunction, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    count = element_count(buffer.shape)
    size = None if count is None else count * buffer.dtype.bytes
    if size is None or size > STACK_ARRAY_BYTES or out.stack_bytes + size > STACK_BYTES:
        _allocate_on_heap(out, allocate)
        return
    out.stack_bytes += size
    element, alignment = out.module.memory_type_of(buffer.dtype), _alignment(buffer)
    out.stack.append(out.say.stack_array(out.name(buffer), count, element, alignment))
    out.statement(allocate.body)


def _alignment(buffer: Buffer) -> int:
    return max(_CACHE_LINE, buffer.alignment)


def _allocate_on_heap(out: LlvmFunction, allocate: st.Allocate) -> None:
    size, alignment = _print_bytes(out, allocate.buffer), _alignment(allocate.buffer)
    out.module.declarations.add("heap", out.say.declare_heap)
    out.fails, number = True, out.number()
    name = out.name(allocate.buffer)
    body = out.capture(lambda: out.statement(allocate.body))
    text = out.say.heap_array(name, number, size, alignment, out.failure(), BODY)
    out.emit_around(text, body)


def _print_bytes(out: LlvmFunction, buffer: Buffer) -> str:
    dims: list[tuple[str, str, str, str]] = []
    product = str(buffer.dtype.bytes)
    for dim in buffer.shape:
        extent, name, after = out.value(ir.Cast(I64, dim)), out.fresh(), out.fresh()
        dims.append((name, extent, product, after))
        product = after
    result = out.fresh()
    out.emit(out.say.heap_bytes(result, dims, product, _alignment(buffer)))
    return result


# Parallel regions.


def _parallel_region(out: LlvmFunction, region: st.ParallelRegion) -> None:
    inner, function = (
        out.begin_region(),
        out.module.take_symbol(to_identifier(region.name)),
    )
    task_type = out.module.type_of(region.task.dtype)
    captures = [
        (_capture_type(out, item), out.name_of(item)) for item in region.captures
    ]
    params = [_region_param(inner, item) for item in region.captures]
    for var in (region.task, region.num_tasks):
        params.append(out.say.value_param(task_type, inner.name(var)))
    body = inner.capture(lambda: inner.statement(region.body))
    if inner.fails:
        out.fails = True
        captures.append((out.say.pointer(), out.say.status()))
        params.insert(len(region.captures), out.say.status_param())
    types = [type_ for type_, _ in captures]
    struct = out.say.struct(types)
    inner.emit_around(
        out.say.region_function(function, params, BODY, BODY), inner.entry_block(), body
    )
    inner.emit(out.say.region_entry(function, struct, types, task_type))
    out.module.functions.extend(inner.chunks)
    out.module.declarations.add("regions", out.say.declare_regions)
    out.module.bring("regions")
    packed = out.fresh()
    out.stack.append(out.say.packed_captures(packed, struct))
    text = out.say.region_call(
        out.number(), function, struct, captures, packed, task_type
    )
    out.emit(text)


def _capture_type(out: LlvmFunction, item: ir.Var | Buffer) -> str:
    if isinstance(item, Buffer):
        pointer: str = out.say.pointer()
        return pointer
    return out.module.type_of(item.dtype)


def _region_param(inner: LlvmFunction, item: ir.Var | Buffer) -> str:
    name = inner.name(item)
    text: str = (
        inner.say.buffer_param(name)
        if isinstance(item, Buffer)
        else inner.say.value_param(inner.module.type_of(item.dtype), name)
    )
    return text


# Of every LLVM target, and of the host alone.
STATEMENTS: StatementPrinters = {
    st.For: _for,
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
