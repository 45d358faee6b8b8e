"""Prints calls of intrinsics: by LLVM's own functions, libm's scalar ones, or libmvec's vectors.

A vector that libmvec has no version for is cut into ones that it has, if its lanes divide, and
else into scalars; no argument is wider than the target's vector registers. Needs that
`lower_intrinsics` ran: what LLVM and libm lack is refused with CompilerBug.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refcomp.codegen.llvm.expressions import convert_between
from refcomp.codegen.llvm.function import LlvmFunction
from refcomp.foundation.dtype import BOOL, DType
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.expr import Call


def _call(out: LlvmFunction, call: Call) -> str:
    tables, dtype = out.module.tables, call.args[0].dtype
    arguments, by_kind = (
        [out.value(arg) for arg in call.args],
        f"{call.name}.{dtype.kind}",
    )
    if call.name in tables["reinterpret"]:
        opcode = tables["reinterpret"][call.name]
        return convert_between(out, opcode, arguments[0], dtype, call.dtype)
    if call.name in tables["llvm"]:
        return _call_llvm(out, tables["llvm"][call.name], dtype, arguments)
    if by_kind in tables["llvm_by_kind"]:
        return _call_llvm(out, tables["llvm_by_kind"][by_kind], dtype, arguments)
    if by_kind in tables["llvm_with_flag"]:
        flag = out.module.constant(0, BOOL)
        return _call_llvm(
            out, tables["llvm_with_flag"][by_kind], dtype, arguments, flag
        )
    if (
        call.name in tables["function"]
        and str(dtype.element) in tables["function_suffix"]
    ):
        return call_function(out, call.name, dtype, arguments)
    raise CompilerBug(
        f"the host has no intrinsic {call.name} of dtype {dtype}",
        why="lower_intrinsics replaces those that LLVM and libm lack",
    )


def _call_llvm(
    out: LlvmFunction, name: str, dtype: DType, arguments: list[str], *flags: str
) -> str:
    function, type_ = f"{name}.{out.module.suffix_of(dtype)}", out.module.type_of(dtype)
    bool_ = out.module.type_of(BOOL)
    if dtype.is_float:
        out.module.bring("maths")  # what the processor lacks becomes a call
    types = [type_] * len(arguments) + [bool_] * len(flags)
    declare = out.say.declare_intrinsic
    out.module.declarations.add(function, lambda: declare(type_, function, types))
    return _emit_call(out, function, type_, types, [*arguments, *flags])


def _emit_call(
    out: LlvmFunction, function: str, type_: str, types: list[str], operands: list[str]
) -> str:
    result = out.fresh()
    pairs = zip(types, operands, strict=True)
    arguments = [out.say.argument(one, operand) for one, operand in pairs]
    out.emit(out.say.call(result, type_, function, arguments))
    return result


def call_function(
    out: LlvmFunction, name: str, dtype: DType, arguments: list[str]
) -> str:
    """Prints a call of the mathematical library's function `name`, of the table `function`."""
    tables = out.module.tables
    function = tables["function"][name] + tables["function_suffix"][str(dtype.element)]
    out.module.bring("functions")
    if dtype.lanes == 1:
        return _call_pure(out, function, dtype, arguments)
    width, letter = _vector_width(out, dtype)
    if width == 1:
        return _lane_by_lane(out, function, dtype, arguments)
    out.module.bring("vector functions")
    vectors = tables["libmvec"]
    mangled = (
        f"{vectors['prefix']}{letter}{vectors['unmasked']}{width}"
        f"{vectors['argument'] * len(arguments)}{vectors['before_name']}{function}"
    )
    if width == dtype.lanes:
        return _call_pure(out, mangled, dtype, arguments)
    return _piece_by_piece(out, mangled, dtype, arguments, width)


def _vector_width(out: LlvmFunction, dtype: DType) -> tuple[int, str]:
    """The widest libmvec version whose lanes divide those of `dtype`, and its letter; or 1."""
    letters = out.module.tables["libmvec"]["letters"]
    for bits in sorted(map(int, letters), reverse=True):
        width = bits // dtype.bits
        if bits <= out.module.vector_bits and dtype.lanes % width == 0:
            return (width, letters[str(bits)]) if out.module.has_libmvec else (1, "")
    return 1, ""


def _call_pure(
    out: LlvmFunction, function: str, dtype: DType, arguments: list[str]
) -> str:
    type_, declare = out.module.type_of(dtype), out.say.declare_pure
    types = [type_] * len(arguments)
    out.module.declarations.add(function, lambda: declare(type_, function, types))
    return _emit_call(out, function, type_, types, arguments)


def _lane_by_lane(
    out: LlvmFunction, function: str, dtype: DType, arguments: list[str]
) -> str:
    vector, element = out.module.type_of(dtype), out.module.type_of(dtype.element)
    joined: str = out.say.unset()
    for lane in range(dtype.lanes):
        scalars = [out.fresh() for _ in arguments]
        for scalar, argument in zip(scalars, arguments, strict=True):
            out.emit(out.say.get_lane(scalar, vector, argument, lane))
        part = _call_pure(out, function, dtype.element, scalars)
        before, joined = joined, out.fresh()
        out.emit(out.say.put_lane(joined, vector, before, element, part, lane))
    return joined


def _piece_by_piece(
    out: LlvmFunction, function: str, dtype: DType, arguments: list[str], width: int
) -> str:
    whole, piece = out.module.type_of(dtype), dtype.with_lanes(width)
    joined: str = out.say.unset()
    for first in range(0, dtype.lanes, width):
        taken = [out.fresh() for _ in arguments]
        for part, argument in zip(taken, arguments, strict=True):
            lanes = list(range(first, first + width))
            out.emit(out.say.take_lanes(part, whole, argument, lanes))
        result, repeated = _call_pure(out, function, piece, taken), out.fresh()
        again = [lane % width for lane in range(dtype.lanes)]
        out.emit(out.say.take_lanes(repeated, out.module.type_of(piece), result, again))
        before, joined = joined, out.fresh()
        chosen = [
            lane + (dtype.lanes if lane >= first else 0) for lane in range(dtype.lanes)
        ]
        out.emit(out.say.join_lanes(joined, whole, before, repeated, chosen))
    return joined


CALLS: dict[type[Any], Callable[[LlvmFunction, Any], str]] = {Call: _call}
