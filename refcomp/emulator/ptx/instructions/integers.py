"""Arithmetic of integers: sums, products, quotients, and dot products of bytes.

Source: NVIDIA, "Parallel Thread Execution ISA", section "Integer Arithmetic Instructions". A
result that the ISA does not specify, such as a quotient by 0, has undefined bits here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.instructions import spreads
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import as_unsigned, dtype_of, is_signed
from refcomp.emulator.ptx.instructions.undefined import all_bits, any_or

_ALL = "u16 u32 u64 s16 s32 s64"
_SIGNED = "s16 s32 s64"
_PACKED = "u16x2 s16x2"
_LOW_24 = np.uint32(0xFFFFFF)
_DTYPES_OF_HALVES = {
    "s16x2": np.int16,
    "f16x2": np.float16,
    # others: np.uint16
}


def clamped(value: Array, kind: type[np.integer]) -> Array:
    """Return integers as another type. A number that does not fit becomes the nearest one."""
    limits = np.iinfo(kind)
    nearest = np.clip(value, limits.min, limits.max)
    return nearest.astype(kind)


def halves_of(kind: str, value: Array) -> Array:
    """Return a packed value as an array whose last axis has both halves, the lower one first.

    Args:
        kind: "s16x2" for signed halves, "f16x2" for floats. Halves of other types are unsigned.
    """
    dtype = _DTYPES_OF_HALVES.get(kind, np.uint16)
    words = np.asarray(value)[..., None]
    return np.ascontiguousarray(words).view(dtype)


def of_halves(halves: Array) -> Array:
    """Return arrays whose last axis has two halves as packed values."""
    words: Array = np.ascontiguousarray(halves).view(np.uint32)
    return words[..., 0]


def packed(kind: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of packed values that applies a function of halves."""

    def compute(*values: Array) -> Array:
        halves = [halves_of(kind, value) for value in values]
        return of_halves(function(*halves))

    return compute


def rule_of_one_type(
    kind: str, count: int, function: Callable[..., Array]
) -> ValueRule:
    """Return the rule of a function whose `count` sources and result have the same type.

    A packed type applies the function to both halves.
    """
    is_packed = kind.endswith("x2")
    return ValueRule(
        compute=packed(kind, function) if is_packed else function,
        sources=(kind,) * count,
        results=(kind,),
        undefined=_undefined_halves if is_packed else None,
    )


def _undefined_halves(*both: Array) -> Array:
    """Return the undefined bits of a result whose halves depend on those of the sources."""
    shadows = both[len(both) // 2 :]
    is_undefined = undefined_in_halves(*shadows)
    return of_halves(all_bits("b16", is_undefined))


def undefined_in_halves(*shadows: Array) -> Mask:
    """Return an array whose last axis has both halves: True where any source is undefined."""
    halves = [halves_of("u16x2", np.asarray(shadow, np.uint32)) for shadow in shadows]
    return spreads.any_undefined(halves)


def _sum(form: Form) -> ValueRule:
    subtracts = form.opcode == "sub"
    if not form.has("sat"):
        function = np.subtract if subtracts else np.add
        return rule_of_one_type(form.type, 2, function)
    if form.type != "s32":
        raise form.damaged(f"{form.opcode}.sat needs the type .s32")

    def saturated(a: Array, b: Array) -> Array:
        wide = np.asarray(a, np.int64)
        total = wide - b if subtracts else wide + b
        return clamped(total, np.int32)

    return rule_of_one_type("s32", 2, saturated)


def quotient(a: Array, b: Array) -> Array:
    """Return a / b, rounded towards zero. If b is 0, all bits are set, as ptxas computes it."""
    a = np.asarray(a)
    dividend = magnitude(a)
    divisor = magnitude(b)
    whole = dividend // _not_zero(divisor)
    is_negative = _is_negative(a) ^ _is_negative(b)
    result = np.where(is_negative, _negative(whole), whole)
    found = _all_set(divisor == 0, result)
    return found.view(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder of a / b, with the sign of a. If b is 0, all bits are set."""
    a = np.asarray(a)
    dividend = magnitude(a)
    divisor = magnitude(b)
    rest = dividend % _not_zero(divisor)
    result = np.where(_is_negative(a), _negative(rest), rest)
    found = _all_set(divisor == 0, result)
    return found.view(a.dtype)


def magnitude(value: Array) -> Array:
    """Return the absolute value as an unsigned integer, which holds that of the least number."""
    bits = as_unsigned(value)
    return np.where(_is_negative(value), _negative(bits), bits)


def _not_zero(divisor: Array) -> Array:
    """Replace 0 by 1, since numpy has no quotient by 0."""
    one = divisor.dtype.type(1)
    return np.asarray(np.maximum(divisor, one))


def _all_set(where: Mask, bits: Array) -> Array:
    ones = ~np.zeros_like(bits)
    return np.where(where, ones, bits)


def _is_negative(value: Array) -> Array:
    return np.asarray(value) < 0


def _negative(bits: Array) -> Array:
    one = bits.dtype.type(1)
    return np.asarray(~bits + one)


def _quotient(form: Form) -> ValueRule:
    function = quotient if form.opcode == "div" else remainder
    kind = form.type
    return ValueRule(
        compute=function,
        sources=(kind, kind),
        results=(kind,),
        undefined=any_or(kind, lambda a, b: np.asarray(b) == 0),
    )


def _extreme(form: Form) -> ValueRule:
    function = np.minimum if form.opcode == "min" else np.maximum
    if not form.has("relu"):
        return rule_of_one_type(form.type, 2, function)
    if form.type not in ("s32", "s16x2"):
        raise form.damaged(f"{form.opcode}.relu needs the type .s32 or .s16x2")

    def not_negative(a: Array, b: Array) -> Array:
        found = function(a, b)
        zero = found.dtype.type(0)
        return np.asarray(np.maximum(found, zero))

    return rule_of_one_type(form.type, 2, not_negative)


def _absolute(form: Form) -> ValueRule:
    return rule_of_one_type(form.type, 1, np.abs)


def _negated(form: Form) -> ValueRule:
    return rule_of_one_type(form.type, 1, np.negative)


def _distance(form: Form) -> ValueRule:
    """Describe `sad`: |a - b| + c."""

    def compute(a: Array, b: Array, c: Array) -> Array:
        is_less = np.less(a, b)
        distance = np.where(is_less, np.subtract(b, a), np.subtract(a, b))
        return np.asarray(np.add(c, distance))

    return rule_of_one_type(form.type, 3, compute)


def _low_24(value: Array, kind: str) -> Array:
    """Return the lower 24 bits as an int64. If the type is signed, bit 23 is the sign."""
    bits = as_unsigned(value) & _LOW_24
    if not is_signed(kind):
        return bits.astype(np.int64)
    shifted = bits << np.uint32(8)
    extended = shifted.view(np.int32) >> np.int32(8)
    return extended.astype(np.int64)


def _product_of_24(form: Form) -> ValueRule:
    """Describe mul24 and mad24. The upper part is bits 16 to 47 of the product."""
    kind = form.type
    is_upper = form.must_take("hi", "lo") == "hi"
    adds = form.opcode == "mad24"
    saturates = form.has("sat")
    can_saturate = adds and is_upper and kind == "s32"
    if saturates and not can_saturate:
        raise form.damaged(".sat needs mad24.hi.s32")
    dtype = dtype_of(kind)

    def product_of(a: Array, b: Array) -> Array:
        product = _low_24(a, kind) * _low_24(b, kind)
        if is_upper:
            product = product >> 16
        return product.astype(dtype)

    def sum_of(a: Array, b: Array, c: Array) -> Array:
        product = product_of(a, b)
        if saturates:
            total = product.astype(np.int64) + c
            return clamped(total, np.int32)
        return np.asarray(product + c)

    if adds:
        return rule_of_one_type(kind, 3, sum_of)
    return rule_of_one_type(kind, 2, product_of)


# Dot products.


def _parts(value: Array, kind: str, bits: int) -> list[Array]:
    """Return the parts of 32-bit words as int64. The first part has the lowest bits.

    Args:
        kind: "s32" for signed parts, "u32" for unsigned ones.
        bits: the width of a part, 8 or 16.
    """
    words = np.asarray(value).view(np.uint32)
    size = bits // 8
    parts = []
    for shift in range(0, 32, bits):
        shifted = words >> np.uint32(shift)
        part = shifted.astype(f"u{size}")
        if is_signed(kind):
            part = part.view(f"i{size}")
        parts.append(part.astype(np.int64))
    return parts


def _dot_product(form: Form) -> ValueRule:
    """Describe dp4a and dp2a. dp2a takes both halves of a and two of the bytes of b."""
    if len(form.types) != 2:
        raise form.damaged(f"{form.opcode} needs the types of both factors")
    first, second = form.types
    if not {first, second} <= {"u32", "s32"}:
        raise form.damaged(f"the factors of {form.opcode} are .u32 or .s32")
    kind = "s32" if "s32" in form.types else "u32"
    dtype = dtype_of(kind)
    if form.opcode == "dp4a":
        bits_of_left = 8
        right_bytes = slice(0, 4)
    else:
        bits_of_left = 16
        is_upper = form.must_take("lo", "hi") == "hi"
        right_bytes = slice(2, 4) if is_upper else slice(0, 2)

    def compute(a: Array, b: Array, c: Array) -> Array:
        left = _parts(a, first, bits_of_left)
        right = _parts(b, second, 8)[right_bytes]
        total = np.asarray(c, np.int64)
        for x, y in zip(left, right, strict=True):
            total = total + x * y
        return total.astype(dtype)

    return ValueRule(
        compute=compute,
        sources=(first, second, kind),
        results=(kind,),
    )


INTEGERS: Table = joined(
    [
        rows("add", f"{_ALL} {_PACKED}", _sum),
        rows("sub", _ALL, _sum),
        rows("div rem", _ALL, _quotient),
        rows("min max", f"{_ALL} {_PACKED}", _extreme),
        rows("abs", _SIGNED, _absolute),
        rows("neg", _SIGNED, _negated),
        rows("sad", _ALL, _distance),
        rows("mul24 mad24", "u32 s32", _product_of_24),
        rows("dp4a dp2a", "u32 s32", _dot_product),
    ]
)
