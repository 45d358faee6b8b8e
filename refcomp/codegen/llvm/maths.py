"""Print calls of intrinsics: by LLVM's own functions, libm's scalar ones, or libmvec's vectors.

libmvec may have no version for a vector. Then the vector is cut into pieces that libmvec has, if
they divide its lanes, and else into scalars. No argument is wider than the target's vector
registers. A function of f32 that errs by too much (table `function_ulp`) is computed in f64.

Needs that `lower_intrinsics` ran: an intrinsic that LLVM and libm lack is refused with CompilerBug.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction, TypedValue
from refcomp.foundation.dtype import BOOL, F32, F64, DType
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.expr import Call
from refcomp.ir.intrinsics import INTRINSICS


def _call(out: LlvmFunction, call: Call) -> str:
    tables = out.tables
    dtype = call.args[0].dtype
    by_kind = f"{call.name}.{dtype.kind}"
    arguments = [out.value(arg) for arg in call.args]
    if call.name in tables["reinterpret"]:
        opcode = tables["reinterpret"][call.name]
        return out.convert(opcode, arguments[0], dtype, call.dtype)
    if call.name in tables["llvm"]:
        return _call_llvm(out, tables["llvm"][call.name], dtype, arguments)
    if by_kind in tables["llvm_by_kind"]:
        return _call_llvm(out, tables["llvm_by_kind"][by_kind], dtype, arguments)
    if by_kind in tables["llvm_with_flag"]:
        name = tables["llvm_with_flag"][by_kind]
        flag = TypedValue(out.type_of(BOOL), out.constant(0, BOOL))
        return _call_llvm(out, name, dtype, arguments, flag)
    has_suffix = str(dtype.element) in tables["function_suffix"]
    if has_suffix and call.name in tables["function"]:
        return call_function(out, call.name, dtype, arguments)
    raise CompilerBug(
        f"the host has no intrinsic {call.name} of dtype {dtype}",
        why="lower_intrinsics replaces those that LLVM and libm lack",
    )


def _call_llvm(
    out: LlvmFunction,
    name: str,
    dtype: DType,
    arguments: list[str],
    *flags: TypedValue,
) -> str:
    type_ = out.type_of(dtype)
    if dtype.is_float:
        # LLVM calls it for what the processor lacks.
        out.module.require_library("maths")
    typed = [TypedValue(type_, argument) for argument in arguments]
    function = f"{name}.{out.module.suffix_of(dtype)}"
    return out.call_intrinsic(function, type_, *typed, *flags)


def call_function(
    out: LlvmFunction,
    name: str,
    dtype: DType,
    arguments: list[str],
) -> str:
    """Print a call of a function of the mathematical library.

    Args:
        out: the function that is being printed.
        name: a key of the table `function`.
        dtype: of the arguments and of the result.
        arguments: operands.
    """
    tables = out.tables
    if dtype.bits == F32.bits and _is_too_coarse(out, name):
        wide = F64.with_lanes(dtype.lanes)
        widen = tables["cast"]["float_widen"]
        widened = [out.convert(widen, value, dtype, wide) for value in arguments]
        result = call_function(out, name, wide, widened)
        return out.convert(tables["cast"]["float_narrow"], result, wide, dtype)
    function = tables["function"][name] + tables["function_suffix"][str(dtype.element)]
    out.module.require_library("functions")
    if dtype.lanes == 1:
        return _call_pure(out, function, dtype, arguments)
    version = _vector_version(out, dtype)
    if version is None:
        return _lane_by_lane(out, function, dtype, arguments)
    out.module.require_library("vector functions")
    vectors = tables["libmvec"]
    mangled = (
        f"{vectors['prefix']}{version.letter}{vectors['unmasked']}{version.lanes}"
        f"{vectors['argument'] * len(arguments)}{vectors['before_name']}{function}"
    )
    if version.lanes == dtype.lanes:
        return _call_pure(out, mangled, dtype, arguments)
    return _piece_by_piece(out, mangled, dtype, arguments, version.lanes)


def _is_too_coarse(out: LlvmFunction, name: str) -> bool:
    """Return True if the library's function may err by more than the loop IR allows."""
    ulp: float = out.tables.get("function_ulp", {}).get(name, 0)
    return (
        ulp > 0 and ulp > INTRINSICS[name].ulp
    )  # fmod, which is exact, is not an intrinsic


@dataclass(frozen=True, slots=True)
class _VectorVersion:
    """A version of libmvec's functions."""

    lanes: int
    letter: str  # in the mangled name, for the vector register


def _vector_version(out: LlvmFunction, dtype: DType) -> _VectorVersion | None:
    """Return the widest version of libmvec whose lanes divide those of `dtype`."""
    if not out.module.has_libmvec:
        return None
    letters = out.tables["libmvec"]["letters"]
    for bits in sorted(map(int, letters), reverse=True):
        lanes = bits // dtype.bits
        if bits <= out.module.vector_bits and dtype.lanes % lanes == 0:
            return _VectorVersion(lanes, letters[str(bits)])
    return None


def _call_pure(
    out: LlvmFunction,
    function: str,
    dtype: DType,
    arguments: list[str],
) -> str:
    type_ = out.type_of(dtype)
    typed = [TypedValue(type_, argument) for argument in arguments]
    out.declare(
        function,
        out.say.declare_pure,
        result=type_,
        name=function,
        params=[type_] * len(arguments),
    )
    return out.instruction(out.say.call, type=type_, function=function, arguments=typed)


def _lane_by_lane(
    out: LlvmFunction,
    function: str,
    dtype: DType,
    arguments: list[str],
) -> str:
    vector = out.type_of(dtype)
    joined = out.say.unset()
    for lane in range(dtype.lanes):
        scalars = [
            out.instruction(out.say.get_lane, type=vector, value=argument, lane=lane)
            for argument in arguments
        ]
        part = _call_pure(out, function, dtype.element, scalars)
        joined = out.instruction(
            out.say.put_lane,
            type=vector,
            vector=joined,
            element=out.type_of(dtype.element),
            value=part,
            lane=lane,
        )
    return joined


def _piece_by_piece(
    out: LlvmFunction,
    function: str,
    dtype: DType,
    arguments: list[str],
    width: int,
) -> str:
    """Call `function` on pieces of `width` lanes, and join the results."""
    whole = out.type_of(dtype)
    piece = dtype.with_lanes(width)
    joined = out.say.unset()
    for first in range(0, dtype.lanes, width):
        picked = list(range(first, first + width))
        parts = [
            out.instruction(
                out.say.take_lanes, type=whole, value=argument, picked=picked
            )
            for argument in arguments
        ]
        # The lanes of the result, repeated: a shuffle joins only vectors of one type.
        repeated = out.instruction(
            out.say.take_lanes,
            value=_call_pure(out, function, piece, parts),
            type=out.type_of(piece),
            picked=[lane % width for lane in range(dtype.lanes)],
        )
        chosen = [
            lane + dtype.lanes if lane >= first else lane for lane in range(dtype.lanes)
        ]
        joined = out.instruction(
            out.say.join_lanes, type=whole, a=joined, b=repeated, picked=chosen
        )
    return joined


CALLS: ExpressionPrinters = {Call: _call}
