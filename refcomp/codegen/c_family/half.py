"""f16 on devices that have it only in memory: values are held in f32, see Note [f16 in f32]."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from refcomp.codegen.c_family.function import CExpr, CFunction, CModule
from refcomp.foundation.dtype import F32, DType

_F16 = DType("float", 16)
_BITS = DType("uint", 16)


def is_held_in_f32(module: CModule, dtype: DType) -> bool:
    """Return True if values of `dtype` are f16 and are held in f32."""
    return dtype.element == _F16 and not module.has_half


def rounded_to_half(out: CFunction, operand: CExpr, dtype: DType) -> CExpr:
    """Return the result of an operation of `dtype`, rounded to f16 if it was computed in f32."""
    if not is_held_in_f32(out.module, dtype):
        return operand
    bits = half_to_bits(out, operand, F32.with_lanes(dtype.lanes))
    return half_from_bits(out, bits, dtype.lanes)


def half_from_bits(out: CFunction, operand: CExpr, lanes: int) -> CExpr:
    """Return the f32 that equals the f16 with the bits `operand`, a u16."""
    function = out.module.define("from_bits_f16", out.say.half_from_bits)
    if lanes == 1:
        return replace(out.call(function, operand), half_bits=operand.text)
    bits = out.atom(operand, _BITS.with_lanes(lanes))
    convert = partial(out.call, function)
    value = out.lane_by_lane(F32.with_lanes(lanes), [bits], convert)
    return replace(value, half_bits=bits.text)


def half_to_bits(out: CFunction, operand: CExpr, source: DType) -> CExpr:
    """Return the bits, a u16, of the f16 nearest to an f32 or f64 (`source`)."""
    if operand.half_bits:
        # The bits that the value was made of: a NaN keeps them, and nothing is rounded twice.
        return replace(out.named(operand.half_bits), depth=operand.depth + 1)
    function = out.module.define(
        f"to_bits_f16_{source.element}",
        out.say.half_to_bits,
        type=out.type_of(source.element),
    )
    if source.lanes == 1:
        return out.call(function, operand)
    value = out.atom(operand, source)
    convert = partial(out.call, function)
    return out.lane_by_lane(_BITS.with_lanes(source.lanes), [value], convert)


# Note [f16 in f32]
#
# A sum, difference, product or quotient of two f16 may be rounded to f32 and then to f16: the
# result is the same as of rounding once. So may a square root. f32 has 24 digits, and 2 * 11 + 2
# are enough (S. Figueroa, When is double rounding innocuous?, 1995). An integer that f32 must round
# lies beyond the range of f16. An f64 is rounded to f16 at once: by way of f32 the result may
# differ. A remainder, or the lesser, of two f16 is an f16 itself.
