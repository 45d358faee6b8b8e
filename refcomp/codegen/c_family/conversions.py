"""Print conversions as C: between dtypes, and between values and their form in memory.

A bool is a byte in memory. A single bool is true or false as a value; a lane of a vector of bools
is a byte, 0 or -1.
"""

from __future__ import annotations

from refcomp.codegen.c_family.function import CExpr, CFunction
from refcomp.codegen.c_family.half import half_from_bits, half_to_bits, is_held_in_f32
from refcomp.codegen.half_conversions import is_between_half_and_integer
from refcomp.foundation.dtype import F32, I32, DType
from refcomp.ir import expr as ir


def convert(out: CFunction, expr: ir.Cast) -> CExpr:
    """Print a Cast, which wraps, saturates or rounds as its docstring says."""
    return converted(out, out.value(expr.value), expr.value.dtype, expr.dtype)


def converted(
    out: CFunction,
    value: CExpr,
    source: DType,
    target: DType,
) -> CExpr:
    """Return `value` of dtype `source` as a value of dtype `target`."""
    if source == target:
        return value
    if is_between_half_and_integer(source, target):
        # Exact: an integer that f32 must round lies beyond f16's range.
        through = F32.with_lanes(source.lanes)
        return converted(out, converted(out, value, source, through), through, target)
    if target.is_bool:
        return _is_nonzero(out, value, source)
    if source.is_bool and source.lanes > 1:
        return _by_function(out, _ones(out, value, source), target)
    if is_held_in_f32(out.module, target):
        bits = half_to_bits(out, value, source)
        return half_from_bits(out, bits, target.lanes)
    if out.module.value_dtype(source) == out.module.value_dtype(target):
        return value
    if source.is_float and target.is_int:
        type_ = out.type_of(target)
        return out.compound(out.say.saturate, type=type_, value=value)
    if target.lanes == 1:
        return out.cast(value, target)
    return _by_function(out, value, target)


def _by_function(out: CFunction, value: CExpr, target: DType) -> CExpr:
    type_ = out.type_of(target)
    return out.compound(out.say.convert, type=type_, value=value)


def _is_nonzero(out: CFunction, value: CExpr, source: DType) -> CExpr:
    held = out.module.value_dtype(source)
    if source.lanes == 1:
        # C widens small integers.
        is_small = source.is_int and source.bits < I32.bits
        return out.infix("NE", value, out.literal(0, I32 if is_small else held))
    mask = out.infix("NE", value, out.splat(0, held))
    if held.bits == 8:
        return mask
    return _by_function(out, mask, DType("int", 8, source.lanes))


def _ones(out: CFunction, mask: CExpr, dtype: DType) -> CExpr:
    """Return a vector of bools as 0 or 1."""
    held = out.module.value_dtype(dtype)
    return out.infix("BitAnd", mask, out.splat(1, held))


def mask_as_wide_as(out: CFunction, mask: CExpr, dtype: DType) -> CExpr:
    """Return a vector of bools as integers, 0 or -1, of the width of `dtype`."""
    bits = out.module.value_dtype(dtype).bits
    if bits == 8:
        return mask
    return _by_function(out, mask, DType("int", bits, dtype.lanes))


def from_memory(out: CFunction, stored: CExpr, dtype: DType) -> CExpr:
    """Return the value of `dtype` that memory holds as `stored`."""
    if dtype.is_bool:
        return _is_nonzero(out, stored, out.module.memory_dtype(dtype))
    if is_held_in_f32(out.module, dtype):
        return half_from_bits(out, stored, dtype.lanes)
    return stored


def to_memory(out: CFunction, value: CExpr, dtype: DType) -> CExpr:
    """Return a value of `dtype` as memory holds it."""
    if is_held_in_f32(out.module, dtype):
        return half_to_bits(out, value, F32.with_lanes(dtype.lanes))
    if dtype.is_bool and dtype.lanes > 1:
        ones = _ones(out, value, dtype)
        type_ = out.module.memory_type_of(dtype)
        return out.compound(out.say.reinterpret, type=type_, value=ones)
    return value
