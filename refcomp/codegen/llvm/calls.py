"""Print calls of functions outside the module: C functions, and registered functions.

A C function is called by its symbol, which the linker must find. A registered function is called
through the callback that `refcomp.runtime.host.callback` puts into the loaded module. The callback
gets a `PackedCall` as text, and the arguments in slots of 64 bits. Refuses (UserError) a C function
with the name of a function of the module, or of one that the printed text itself calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from refcomp.codegen.llvm.function import (
    ExpressionPrinters,
    LlvmFunction,
    StatementPrinters,
    TypedValue,
)
from refcomp.codegen.llvm.imports import fitting_result
from refcomp.foundation.artifacts import SLOT_DTYPES, BufferArgument, PackedCall
from refcomp.foundation.dtype import I64, DType
from refcomp.foundation.errors import UserError
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import AddressOf
from refcomp.ir.expr import Expr, Var

# The templates declare these functions, with types of their own.
OWN_CALLS = (
    "aligned_alloc",
    "free",
    "syscall",
    "pthread_create",
    "pthread_detach",
    "__register_atfork",
)
_BYTE = DType("uint", 8)


def _call_packed(out: LlvmFunction, call: st.CallPacked) -> None:
    operands = [slot for arg in call.args for slot in _slots(out, arg)]
    text = PackedCall(call.name, tuple(map(_described, call.args))).to_text()
    _call_back(out, operands, text)


def _registered_value(out: LlvmFunction, call: ir.PureExtern) -> str:
    """Print a call whose value is used. The callback stores it in the slot behind the arguments."""
    operands = [slot for arg in call.args for slot in _slots(out, arg)]
    args = tuple(map(_described, call.args))
    traces = call.callee == ir.TRACE
    text = PackedCall(call.name, args, call.dtype, traces).to_text()
    dtype = SLOT_DTYPES[call.dtype.kind]
    type_ = out.module.memory_type_of(dtype)
    # If the function is not called, because another one raised before, the value is 0.
    zero = out.constant(0, _BYTE if dtype.is_bool else dtype)
    slots = _call_back(out, [*operands, TypedValue(type_, zero)], text)
    stored = out.instruction(
        out.say.take_slot, slots=slots, position=len(operands), type=type_
    )
    if dtype.is_bool:
        return out.convert(out.tables["cast"]["int_narrow"], stored, _BYTE, dtype)
    value = Var("value", dtype)
    out.names[value] = stored
    return stored if call.dtype == dtype else out.value(ir.Cast(call.dtype, value))


def _call_back(out: LlvmFunction, operands: Sequence[TypedValue], text: str) -> str:
    """Print a call of the callback on slots with `operands`. Return the address of the slots."""
    slots = out.fresh()
    out.stack.append(out.say.slots(name=slots, count=max(1, len(operands))))
    for position, operand in enumerate(operands):
        out.instruction(
            out.say.put_slot,
            slots=slots,
            position=position,
            type=operand.type,
            value=operand.value,
        )
    out.fails = True
    out.declare("callback", out.say.declare_callback)
    number = out.number()
    description = _description(out, text)
    out.emit(out.say.call_packed(id=number, description=description, slots=slots))
    return slots


def _slots(out: LlvmFunction, arg: Expr) -> list[TypedValue]:
    """Return the contents of the slots of one argument."""
    if isinstance(arg, ir.TextImm):
        return []
    if isinstance(arg, AddressOf):
        i64 = out.type_of(I64)
        extents = [out.value(ir.Cast(I64, dim)) for dim in arg.buffer.shape]
        address = TypedValue(out.say.pointer(), _address(out, arg))
        return [address, *(TypedValue(i64, extent) for extent in extents)]
    dtype = SLOT_DTYPES[arg.dtype.kind]
    operand = out.value(arg if arg.dtype == dtype else ir.Cast(dtype, arg))
    if dtype.is_bool:
        opcode = out.tables["cast"]["uint_widen"]
        operand = out.convert(opcode, operand, dtype, _BYTE)
    return [TypedValue(out.module.memory_type_of(dtype), operand)]


def _described(arg: Expr) -> BufferArgument | DType | str:
    if isinstance(arg, ir.TextImm):
        return arg.value
    if isinstance(arg, AddressOf):
        return BufferArgument(arg.access, arg.element, len(arg.buffer.shape))
    return SLOT_DTYPES[arg.dtype.kind]


def _description(out: LlvmFunction, text: str) -> str:
    """Return the constant that holds `text`; equal texts share one."""
    symbols = out.module.descriptions
    if text not in symbols:
        symbol = out.module.take_symbol(f"packed.{len(symbols)}")
        symbols[text] = symbol
        size = len(text) + 1
        out.declare(symbol, out.say.description, name=symbol, length=size, text=text)
    return symbols[text]


def _address(out: LlvmFunction, at: AddressOf) -> str:
    name = out.name_of(at.buffer)
    if not at.indices:
        return name
    return out.instruction(
        out.say.address,
        element=out.module.memory_type_of(at.buffer.dtype),
        address=name,
        index_type=out.type_of(at.indices[0].dtype),
        index=out.value(at.indices[0]),
    )


# C functions.


def _call_extern(out: LlvmFunction, call: st.CallExtern) -> None:
    arguments = _arguments(out, call.args)
    result = _c_type(out, "c_result", call.result)
    imported = out.module.imported.get(call.name)
    if imported is not None:
        types = _types(arguments)
        result = fitting_result(imported, result, types, is_dropped=True)
    else:
        _declare(out, call.name, out.say.declare_extern, result, arguments)
    text = out.say.call_for_effect(type=result, function=call.name, arguments=arguments)
    out.emit(text)


def _pure_extern(out: LlvmFunction, call: ir.PureExtern) -> str:
    if call.callee != ir.C_FUNCTION:
        return _registered_value(out, call)
    if call.is_llvm_intrinsic:
        # The types are LLVM's own. A constant is printed as a literal, which some intrinsics need.
        type_ = out.type_of(call.dtype)
        operands = [TypedValue(out.type_of(a.dtype), out.value(a)) for a in call.args]
        # LLVM calls the maths library where the processor lacks the instruction.
        out.module.require_library("maths")
        return out.call_intrinsic(call.name, type_, *operands)
    arguments = _arguments(out, call.args)
    result = _c_type(out, "c_result", call.dtype)
    imported = out.module.imported.get(call.name)
    if imported is not None:
        fitting_result(imported, result, _types(arguments), is_dropped=False)
    else:
        _declare(out, call.name, out.say.declare_pure, result, arguments)
    return out.instruction(
        out.say.call, type=result, function=call.name, arguments=arguments
    )


def _arguments(out: LlvmFunction, args: Sequence[Expr]) -> list[TypedValue]:
    return [
        TypedValue(
            _c_type(out, "c_argument", arg.dtype),
            _address(out, arg) if isinstance(arg, AddressOf) else out.value(arg),
        )
        for arg in args
    ]


def _types(arguments: Sequence[TypedValue]) -> list[str]:
    return [argument.type for argument in arguments]


def _c_type(out: LlvmFunction, table: str, dtype: DType) -> str:
    """Return the type of an argument or a result of a C function, with `signext` or `zeroext`."""
    if dtype.kind == "handle":
        return out.say.pointer()
    narrow: str | None = out.tables[table].get(str(dtype))
    return narrow or out.type_of(dtype)


def _declare(
    out: LlvmFunction,
    name: str,
    macro: Callable[..., str],
    result: str,
    arguments: Sequence[TypedValue],
) -> None:
    if name in OWN_CALLS or out.module.has_symbol(name):
        is_own = name in OWN_CALLS
        raise UserError(
            f"the C function {name} cannot be called",
            why="compiled code calls it for its own purposes"
            if is_own
            else "a function of this module has that name",
            remedy="call a C function of your own, with another name, that calls it",
        )
    out.declare(name, macro, result=result, name=name, params=_types(arguments))


CALL_STATEMENTS: StatementPrinters = {
    st.CallPacked: _call_packed,
    st.CallExtern: _call_extern,
}
EXTERN_EXPRESSIONS: ExpressionPrinters = {ir.PureExtern: _pure_extern}
