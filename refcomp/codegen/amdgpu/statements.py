"""Prints the statements of kernels that no function of the host has, for AMD GPUs.

A local buffer is a stack array, a shared one of constant size a variable of the file in the memory
of a group, and the others lie behind it, one after the other, from where the launch gives bytes.
An update without an instruction of its own is tried until no other thread came between.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.codegen.accumulator import BODY
from refcomp.codegen.llvm.function import LlvmFunction, StatementPrinters
from refcomp.codegen.llvm.memory import LEAST_ALIGNMENT, LaneAddresses, place_of
from refcomp.codegen.llvm.statements import STATEMENTS
from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.names import to_identifier
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import element_count
from refcomp.ir.expr import Expr
from refcomp.ir.rewrite import walk

SHARED_ALIGNMENT = LEAST_ALIGNMENT  # of every array in the memory of a group
_LOCAL_ALIGNMENT = LEAST_ALIGNMENT
_UPDATES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": ir.Add,
    "min": ir.Min,
    "max": ir.Max,
    "and": ir.BitAnd,
    "or": ir.BitOr,
    "xor": ir.BitXor,
}
# LLVM 15 makes instructions of updates of fewer bits, and then finds none.
_NARROW, _FIRST_LLVM_WITH_NARROW = 32, 16


# Memory.


def print_dynamic_shared(out: LlvmFunction, body: st.Stmt) -> None:
    """Prints where each shared buffer without a constant size begins, in order of allocation."""
    shared = [
        item
        for item in walk(body)
        if isinstance(item, st.Allocate) and _is_dynamic(item)
    ]
    offset = "0"
    for number, allocate in enumerate(shared):
        out.source = allocate
        _print_place(out, allocate.buffer, offset)
        if number + 1 < len(shared):
            offset = _print_end(out, allocate.buffer, offset)


def _is_dynamic(allocate: st.Allocate) -> bool:
    return (
        allocate.buffer.scope == "shared"
        and element_count(allocate.buffer.shape) is None
    )


def _print_place(out: LlvmFunction, buffer: Buffer, offset: str) -> None:
    module = out.module
    name, space = module.tables["shared"]["dynamic"], module.space_of(buffer)
    declare = out.say.dynamic_shared
    module.globals.add("dynamic", lambda: declare(name, SHARED_ALIGNMENT, space))
    out.emit(out.say.place_dynamic(out.name(buffer), name, offset, space))


def _print_end(out: LlvmFunction, buffer: Buffer, offset: str) -> str:
    """The first offset behind `buffer`, which begins at `offset`."""
    dims: list[tuple[str, str, str, str]] = []
    product = str(buffer.dtype.bytes)
    for dim in buffer.shape:
        extent, name, after = out.value(ir.Cast(I64, dim)), out.fresh(), out.fresh()
        dims.append((name, extent, product, after))
        product = after
    size, end = out.fresh(), out.fresh()
    out.module.declarations.add("shared bytes", out.say.declare_shared_bytes)
    out.emit(out.say.shared_bytes(size, dims, product, SHARED_ALIGNMENT))
    opcode = out.module.tables["opcode"]["Add"]["int"]
    out.emit(out.say.binary(end, opcode, out.module.type_of(I64), offset, size))
    return end


def _allocate(out: LlvmFunction, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    if not _is_dynamic(allocate):
        macro = _print_shared if buffer.scope == "shared" else _print_local
        macro(out, buffer, max(1, element_count(buffer.shape) or 0))
    out.statement(allocate.body)


def _print_shared(out: LlvmFunction, buffer: Buffer, count: int) -> None:
    module, wish = out.module, f"{out.symbol}.{to_identifier(buffer.name)}"
    name = out.names[buffer] = out.say.global_name(module.take_symbol(wish))
    element, space = module.memory_type_of(buffer.dtype), module.space_of(buffer)
    alignment = max(SHARED_ALIGNMENT, buffer.alignment)
    declare = out.say.shared_array
    module.globals.add(name, lambda: declare(name, count, element, alignment, space))


def _print_local(out: LlvmFunction, buffer: Buffer, count: int) -> None:
    element, space = (
        out.module.memory_type_of(buffer.dtype),
        out.module.space_of(buffer),
    )
    name = out.name(buffer)
    out.stack.append(out.say.stack_array(name, count, element, _LOCAL_ALIGNMENT, space))


def _prefetch(_out: LlvmFunction, _hint: st.Prefetch) -> None:
    """Nothing: most of these GPUs have no such instruction, and LLVM does not lower it for them."""


# Threads together.


def _barrier(out: LlvmFunction, barrier: st.Barrier) -> None:
    out.module.declarations.add("barrier", out.say.declare_barrier)
    out.emit(out.say.barrier())


def _atomic_update(out: LlvmFunction, update: st.AtomicUpdate) -> None:
    value, operation = out.value(update.value), _operation(out, update)
    place = place_of(out, update.buffer, update.indices[0], 1)
    scope = out.module.tables["atomic_scope"][update.buffer.scope]
    if operation:
        text = out.say.atomic(
            out.fresh(), operation, place.element, *place.parts, value, scope
        )
        out.emit(text)
    else:
        _print_attempts(out, update, place, value, scope)


def _operation(out: LlvmFunction, update: st.AtomicUpdate) -> str:
    """The instruction's name, or '' where there is none for the operator and the dtype."""
    dtype = update.buffer.dtype
    if dtype.bits < _NARROW and out.module.llvm < _FIRST_LLVM_WITH_NARROW:
        return ""
    names = out.module.tables["atomic"]
    name: str = names.get(f"{update.operator}.{dtype}") or names.get(
        f"{update.operator}.{dtype.kind}", ""
    )
    return name


def _print_attempts(
    out: LlvmFunction,
    update: st.AtomicUpdate,
    place: LaneAddresses,
    value: str,
    scope: str,
) -> None:
    dtype, number, result = update.buffer.dtype, out.number(), out.fresh()
    old, new = ir.Var("old", dtype), ir.Var("value", dtype)
    out.names[old], out.names[new] = out.fresh(), value
    updated: list[str] = []
    expr = _UPDATES[update.operator](old, new)
    body = out.capture(lambda: updated.append(out.value(expr)))
    types = (place.element, out.module.type_of(DType("uint", dtype.bits)))
    macro = out.say.atomic_attempts
    text = macro(
        result, number, out.names[old], *types, *place.parts, updated[0], scope, BODY
    )
    out.emit_around(text, body)


DEVICE_STATEMENTS: StatementPrinters = {
    **STATEMENTS,
    st.Allocate: _allocate,
    st.Prefetch: _prefetch,
    st.Barrier: _barrier,
    st.AtomicUpdate: _atomic_update,
}
