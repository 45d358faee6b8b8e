"""Prints calls of functions outside the module: C functions, and registered ones.

A C function is called by its symbol, which the linker must find. A registered one is called
through the callback that `refcomp.runtime.host.callback` puts into the loaded module: it is given a
`PackedCall` as text and the arguments in slots. Refuses (UserError) to call a function of the
module itself, or one that the printed text calls for its own ends, as a C function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refcomp.codegen.llvm.function import LlvmFunction, StatementPrinters
from refcomp.codegen.llvm.imports import fitting_result
from refcomp.foundation.artifacts import SLOT_DTYPES, BufferArgument, PackedCall
from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.errors import UserError
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import AddressOf
from refcomp.ir.expr import Expr

# Declared by the module template with types of its own.
OWN_CALLS = (
    "aligned_alloc",
    "free",
    "GOMP_parallel",
    "omp_get_thread_num",
    "omp_get_num_threads",
)


def _call_packed(out: LlvmFunction, call: st.CallPacked) -> None:
    operands = [slot for arg in call.args for slot in _slots(out, arg)]
    slots = out.fresh()
    out.stack.append(out.say.slots(slots, max(1, len(operands))))
    for position, (type_, operand) in enumerate(operands):
        out.emit(out.say.put_slot(out.fresh(), slots, position, type_, operand))
    out.fails = True
    out.module.declarations.add("callback", out.say.declare_callback)
    text = PackedCall(call.name, tuple(map(_described, call.args))).to_text()
    out.emit(out.say.call_packed(out.number(), _description(out, text), slots))


def _slots(out: LlvmFunction, arg: Expr) -> list[tuple[str, str]]:
    """Types and operands of what stands for `arg`."""
    if not isinstance(arg, AddressOf):
        dtype = SLOT_DTYPES[arg.dtype.kind]
        wide = arg if arg.dtype == dtype else ir.Cast(dtype, arg)
        return [
            (out.module.memory_type_of(dtype), _in_memory(out, out.value(wide), dtype))
        ]
    extents = [
        (out.module.type_of(I64), out.value(ir.Cast(I64, d))) for d in arg.buffer.shape
    ]
    return [(out.say.pointer(), _address(out, arg)), *extents]


def _in_memory(out: LlvmFunction, operand: str, dtype: DType) -> str:
    if not dtype.is_bool:
        return operand
    byte, opcode = out.fresh(), out.module.tables["cast"]["uint_widen"]
    types = (out.module.type_of(dtype), out.module.memory_type_of(dtype))
    out.emit(out.say.convert(byte, opcode, types[0], operand, types[1]))
    return byte


def _described(arg: Expr) -> BufferArgument | DType:
    if isinstance(arg, AddressOf):
        return BufferArgument(arg.access, arg.element, len(arg.buffer.shape))
    return SLOT_DTYPES[arg.dtype.kind]


def _description(out: LlvmFunction, text: str) -> str:
    """The constant that holds `text`; the same for the same text."""
    named: dict[str, str] = out.module.descriptions
    if text not in named:
        symbol = named[text] = out.module.take_symbol(f"packed.{len(named)}")
        macro = out.say.description
        out.module.declarations.add(symbol, lambda: macro(symbol, len(text) + 1, text))
    return named[text]


def _address(out: LlvmFunction, at: AddressOf) -> str:
    name = out.name_of(at.buffer)
    if not at.indices:
        return name
    element, index = (
        out.module.memory_type_of(at.buffer.dtype),
        out.value(at.indices[0]),
    )
    result, type_ = out.fresh(), out.module.type_of(at.indices[0].dtype)
    out.emit(out.say.address(result, element, name, type_, index))
    return result


# C functions.


def _call_extern(out: LlvmFunction, call: st.CallExtern) -> None:
    types, arguments = _arguments(out, call.args)
    result = _c_type(out, "c_result", call.result)
    imported = out.module.imported.get(call.name)
    if imported is not None:
        result = fitting_result(imported, result, types, is_dropped=True)
    else:
        _declare(
            out, call.name, lambda: out.say.declare_extern(result, call.name, types)
        )
    out.emit(out.say.call_for_effect(result, call.name, arguments))


def _pure_extern(out: LlvmFunction, call: ir.PureExtern) -> str:
    if call.is_llvm_intrinsic:
        return _llvm_intrinsic(out, call)
    types, arguments = _arguments(out, call.args)
    result, type_ = out.fresh(), _c_type(out, "c_result", call.dtype)
    imported = out.module.imported.get(call.name)
    if imported is not None:
        fitting_result(imported, type_, types, is_dropped=False)
    else:
        _declare(out, call.name, lambda: out.say.declare_pure(type_, call.name, types))
    out.emit(out.say.call(result, type_, call.name, arguments))
    return result


def _llvm_intrinsic(out: LlvmFunction, call: ir.PureExtern) -> str:
    """LLVM's own types and no C ones; constants stand in the call, as some intrinsics ask for."""
    type_, types = (
        out.module.type_of(call.dtype),
        [out.module.type_of(a.dtype) for a in call.args],
    )
    operands = [out.value(arg) for arg in call.args]
    result, declare = out.fresh(), out.say.declare_intrinsic
    out.module.declarations.add(call.name, lambda: declare(type_, call.name, types))
    out.module.bring("maths")  # what the processor lacks becomes a call
    pairs = zip(types, operands, strict=True)
    arguments = [out.say.argument(one, operand) for one, operand in pairs]
    out.emit(out.say.call(result, type_, call.name, arguments))
    return result


def _arguments(
    out: LlvmFunction, args: tuple[Expr, ...]
) -> tuple[list[str], list[str]]:
    types = [_c_type(out, "c_argument", arg.dtype) for arg in args]
    operands = [
        _address(out, a) if isinstance(a, AddressOf) else out.value(a) for a in args
    ]
    pairs = zip(types, operands, strict=True)
    return types, [out.say.argument(type_, operand) for type_, operand in pairs]


def _c_type(out: LlvmFunction, table: str, dtype: DType) -> str:
    if dtype.kind == "handle":
        pointer: str = out.say.pointer()
        return pointer
    narrow: str | None = out.module.tables[table].get(str(dtype))
    return narrow or out.module.type_of(dtype)


def _declare(out: LlvmFunction, name: str, write: Callable[[], str]) -> None:
    if name in OWN_CALLS or out.module.has_symbol(name):
        raise UserError(
            f"the C function {name} cannot be called",
            why="a function of this module has that name"
            if name not in OWN_CALLS
            else "compiled code calls it for its own ends",
            remedy="call it by another name, from a C function of your own",
        )
    out.module.declarations.add(name, write)


CALL_STATEMENTS: StatementPrinters = {
    st.CallPacked: _call_packed,
    st.CallExtern: _call_extern,
}
EXTERN_EXPRESSIONS: dict[type[Any], Callable[[LlvmFunction, Any], str]] = {
    ir.PureExtern: _pure_extern,
}
