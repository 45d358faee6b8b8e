"""f16 on devices that have it in memory only: values are held in f32, see Note [f16 in f32]."""

from __future__ import annotations

from dataclasses import replace

from refcomp.codegen.c_family.function import CExpr, CFunction, CModule
from refcomp.foundation.dtype import F32, DType

_F16 = DType("float", 16)


def is_held_in_f32(module: CModule, dtype: DType) -> bool:
    """Whether values of `dtype` are f16 and are held in f32."""
    return dtype.element == _F16 and not module.has_half


def rounded_to_half(out: CFunction, operand: CExpr, dtype: DType) -> CExpr:
    """The result of an operation of `dtype`, rounded to f16 where it was computed in f32."""
    if not is_held_in_f32(out.module, dtype):
        return operand
    return half_from_bits(
        out, half_to_bits(out, operand, F32.with_lanes(dtype.lanes)), dtype.lanes
    )


def half_from_bits(out: CFunction, operand: CExpr, lanes: int) -> CExpr:
    """The f32 that equals the f16 of these bits."""
    name, dtype = "from_bits_f16", DType("uint", 16, lanes)
    say, prefix = out.say, out.say.function_prefix()
    out.module.prelude.add(name, lambda: say.half_from_bits(prefix, name))
    if lanes == 1:
        return replace(out.call(name, operand), half_bits=operand.text)
    bits = out.atom(operand, dtype)
    value = out.lane_by_lane(
        F32.with_lanes(lanes), [bits], lambda lane: out.call(name, lane)
    )
    return replace(value, half_bits=bits.text)


def half_to_bits(out: CFunction, operand: CExpr, source: DType) -> CExpr:
    """The bits of the f16 nearest to an f32 or f64."""
    if (
        operand.half_bits
    ):  # a copy keeps the bits of a NaN, and nothing is rounded twice
        return out.compound(operand.half_bits, operand)
    name = f"to_bits_f16_{source.element}"
    say, prefix, type_ = (
        out.say,
        out.say.function_prefix(),
        out.module.type_of(source.element),
    )
    out.module.prelude.add(name, lambda: say.half_to_bits(prefix, name, type_))
    if source.lanes == 1:
        return out.call(name, operand)
    value, dtype = out.atom(operand, source), DType("uint", 16, source.lanes)
    return out.lane_by_lane(dtype, [value], lambda lane: out.call(name, lane))


# Note [f16 in f32]
#
# A sum, difference, product or quotient of two f16, and the square root of one, rounded to f32 and
# then to f16 is what rounding once gives: f32 has 24 digits, and 2 * 11 + 2 are enough for that
# (S. Figueroa, When is double rounding innocuous?, 1995). An integer that f32 must round lies
# beyond the range of f16. An f64 is rounded to f16 at once: by way of f32 it would not be the same.
# A remainder and the lesser of two f16 are f16 themselves.
