"""Print calls of intrinsics by the functions of a C dialect, which the table `maths` names.

The error of such a function may exceed the intrinsic's bound. Then it is called in f64 for f32
operands, if the device has f64, so that only one rounding error remains. Without f64, and for f64
operands, the dialect's own bound holds. Refuses, with CompilerBug, an intrinsic that the table
lacks: the passes of the target lower it before.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from refcomp.codegen.c_family.conversions import converted
from refcomp.codegen.c_family.function import CExpr, CFunction, ExpressionPrinters
from refcomp.codegen.c_family.half import half_from_bits, half_to_bits, is_held_in_f32
from refcomp.codegen.c_family.subgroups import print_subgroup_call
from refcomp.codegen.spelling import Table
from refcomp.foundation.dtype import F64, DType
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.expr import Call
from refcomp.ir.intrinsics import INTRINSICS, is_subgroup_call

_KEPT_IN_HALF = ("abs", "copysign")  # they change no digit, so f16 need not be widened


def _call(out: CFunction, call: Call) -> CExpr:
    if is_subgroup_call(call):
        return print_subgroup_call(out, call, out.value(call.args[0]))
    dtype = call.args[0].dtype
    args = [out.value(arg) for arg in call.args]
    if call.name in out.tables["reinterpreted"]:
        value = args[0]
        if is_held_in_f32(out.module, dtype):
            return half_to_bits(out, value, out.module.value_dtype(dtype))
        if is_held_in_f32(out.module, call.dtype):
            return half_from_bits(out, value, call.dtype.lanes)
        type_ = out.type_of(call.dtype)
        return out.compound(out.say.reinterpret, type=type_, value=value)
    entry = out.tables["maths"].get(dtype.kind, {}).get(call.name)
    is_half = dtype.is_float and dtype.bits == 16
    if entry is None or (is_half and call.name not in _KEPT_IN_HALF):
        raise CompilerBug(
            f"the device has no intrinsic {call.name} of dtype {dtype}",
            why="lower_intrinsics replaces those that the device lacks",
        )
    is_too_coarse = entry.get("ulp", 0) > INTRINSICS[call.name].ulp
    if is_too_coarse and call.dtype.bits == 32 and out.module.offers("f64"):
        wide = F64.with_lanes(dtype.lanes)
        args = [converted(out, arg, dtype, wide) for arg in args]
        return converted(out, _apply(out, entry, args, wide), wide, dtype)
    return _apply(out, entry, args, dtype)


def _apply(
    out: CFunction,
    entry: Table,
    args: list[CExpr],
    dtype: DType,
) -> CExpr:
    """Return a call of the function that an entry of the table `maths` describes."""
    function = entry["name"]
    if dtype.lanes > 1 and not entry.get("on_vectors", False):
        atoms = [out.atom(arg, dtype) for arg in args]
        return out.lane_by_lane(dtype, atoms, partial(out.call, function))
    result = out.call(function, *args)
    if not entry.get("is_unsigned", False):
        return result
    # The function's result has the unsigned type of the same width.
    if dtype.lanes == 1:
        return out.cast(result, dtype)
    type_ = out.type_of(dtype)
    return replace(result, text=out.say.reinterpret(type=type_, value=result))


CALLS: ExpressionPrinters = {Call: _call}
