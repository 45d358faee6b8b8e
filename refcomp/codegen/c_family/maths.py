"""Prints calls of intrinsics by the functions of a C dialect, which the table `maths` names.

A function whose error may exceed the intrinsic's bound is called in f64 for f32 operands, where the
device has f64; then the one rounding is all that is left of it. Where it has none, and for f64
operands, the dialect's own bound holds. Refuses, with CompilerBug, what the table lacks: the
passes of the target lower it before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refcomp.codegen.c_family.conversions import converted
from refcomp.codegen.c_family.function import CExpr, CFunction
from refcomp.codegen.c_family.half import half_from_bits, half_to_bits, is_held_in_f32
from refcomp.codegen.c_family.subgroups import print_subgroup_call
from refcomp.foundation.dtype import F64, DType
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.expr import Call
from refcomp.ir.intrinsics import INTRINSICS, is_subgroup_call

_KEPT_IN_HALF = ("abs", "copysign")


def _call(out: CFunction, call: Call) -> CExpr:
    if is_subgroup_call(call):
        return print_subgroup_call(out, call, out.value(call.args[0]))
    dtype, args = call.args[0].dtype, [out.value(arg) for arg in call.args]
    if call.name in out.module.tables["reinterpreted"]:
        return _reinterpret(out, args[0], dtype, call.dtype)
    entry = out.module.tables["maths"].get(dtype.kind, {}).get(call.name)
    if entry is None or (
        dtype.is_float and dtype.bits == 16 and call.name not in _KEPT_IN_HALF
    ):
        raise CompilerBug(
            f"the device has no intrinsic {call.name} of dtype {dtype}",
            why="lower_intrinsics replaces those that OpenCL lacks",
        )
    if _is_too_coarse(out, call, entry):
        wide = F64.with_lanes(dtype.lanes)
        args = [converted(out, arg, dtype, wide) for arg in args]
        return converted(out, _apply(out, entry, args, wide), wide, dtype)
    return _apply(out, entry, args, dtype)


def _is_too_coarse(out: CFunction, call: Call, entry: dict[str, Any]) -> bool:
    exceeds = entry.get("ulp", 0) > INTRINSICS[call.name].ulp
    return exceeds and call.dtype.bits == 32 and out.module.offers("f64")


def _apply(
    out: CFunction, entry: dict[str, Any], args: list[CExpr], dtype: DType
) -> CExpr:
    def one(*operands: CExpr) -> CExpr:
        return out.call(entry["name"], *operands)

    if dtype.lanes > 1 and not entry.get("on_vectors", False):
        return out.lane_by_lane(dtype, [out.atom(arg, dtype) for arg in args], one)
    if not entry.get("is_unsigned", False):
        return one(*args)
    # The function's result has the unsigned type of the same width.
    if dtype.lanes == 1:
        return out.cast(one(*args), dtype)
    return out.compound(
        out.say.reinterpret(out.module.type_of(dtype), one(*args).text), *args
    )


def _reinterpret(out: CFunction, value: CExpr, source: DType, target: DType) -> CExpr:
    if is_held_in_f32(out.module, source):
        return half_to_bits(out, value, out.module.value_dtype(source))
    if is_held_in_f32(out.module, target):
        return half_from_bits(out, value, target.lanes)
    return out.compound(
        out.say.reinterpret(out.module.type_of(target), value.text), value
    )


CALLS: dict[type[Any], Callable[[CFunction, Any], CExpr]] = {Call: _call}
