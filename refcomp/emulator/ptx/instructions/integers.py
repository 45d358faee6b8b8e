"""Arithmetic of integers: sums, products, quotients, and dot products of bytes.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "Integer Arithmetic Instructions". What
the ISA leaves open, such as a quotient by 0, is undefined here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import as_unsigned, dtype_of, is_signed
from refcomp.emulator.ptx.instructions.undefined import any_or

_ALL = "u16 u32 u64 s16 s32 s64"
_SIGNED = "s16 s32 s64"
_PACKED = "u16x2 s16x2"
_LOW_24 = np.uint32(0xFFFFFF)


def clamped(value: Array, kind: type[np.integer]) -> Array:
    """Return integers as another type. A number that does not fit becomes the nearest one."""
    limits = np.iinfo(kind)
    return np.clip(value, limits.min, limits.max).astype(kind)


def halves_of(kind: str, value: Array) -> Array:
    """Return a packed value as an array whose last axis has both halves, the lower one first.

    Args:
        kind: "s16x2" for signed halves, "f16x2" for floats. Halves of other types are unsigned.
    """
    dtype = {"s16x2": np.int16, "f16x2": np.float16}.get(kind, np.uint16)
    words = np.ascontiguousarray(np.asarray(value)[..., None])
    return words.view(dtype)


def of_halves(halves: Array) -> Array:
    """Return arrays whose last axis has two halves as packed values."""
    words: Array = np.ascontiguousarray(halves).view(np.uint32)
    return words[..., 0]


def packed(kind: str, function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of packed values that applies a function of halves."""

    def compute(*values: Array) -> Array:
        return of_halves(function(*(halves_of(kind, value) for value in values)))

    return compute


def _same(kind: str, count: int, function: Callable[..., Array]) -> ValueRule:
    """Return the rule of a function whose sources and result have the same type."""
    if kind.endswith("x2"):
        function = packed(kind, function)
    return ValueRule(function, (kind,) * count, (kind,))


def _sum(form: Form) -> ValueRule:
    subtracts = form.opcode == "sub"
    if not form.has("sat"):
        return _same(form.type, 2, np.subtract if subtracts else np.add)
    if form.type != "s32":
        raise form.damaged(f"{form.opcode}.sat needs the type .s32")

    def saturated(a: Array, b: Array) -> Array:
        wide = np.asarray(a, np.int64)
        total = wide - b if subtracts else wide + b
        return clamped(total, np.int32)

    return _same("s32", 2, saturated)


def quotient(a: Array, b: Array) -> Array:
    """Return a / b, rounded towards zero. If b is 0, all bits are set, as ptxas computes it."""
    size, other = magnitude(a), magnitude(b)
    whole = size // np.maximum(other, other.dtype.type(1))
    whole = np.where(_is_negative(a) ^ _is_negative(b), _negative(whole), whole)
    return np.where(other == 0, ~np.zeros_like(whole), whole).view(np.asarray(a).dtype)


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder of a / b, with the sign of a. If b is 0, all bits are set."""
    size, other = magnitude(a), magnitude(b)
    rest = size % np.maximum(other, other.dtype.type(1))
    rest = np.where(_is_negative(a), _negative(rest), rest)
    return np.where(other == 0, ~np.zeros_like(rest), rest).view(np.asarray(a).dtype)


def magnitude(value: Array) -> Array:
    """Return the absolute value as an unsigned integer. So that of the least number fits, too."""
    bits = as_unsigned(value)
    return np.where(_is_negative(value), _negative(bits), bits)


def _is_negative(value: Array) -> Array:
    return np.asarray(value) < 0


def _negative(bits: Array) -> Array:
    negative: Array = ~bits + bits.dtype.type(1)
    return negative


def _quotient(form: Form) -> ValueRule:
    function = quotient if form.opcode == "div" else remainder
    kind = form.type
    spread = any_or(kind, lambda a, b: np.asarray(b) == 0)
    return ValueRule(function, (kind, kind), (kind,), spread)


def _extreme(form: Form) -> ValueRule:
    function = np.minimum if form.opcode == "min" else np.maximum
    if not form.has("relu"):
        return _same(form.type, 2, function)
    if form.type not in ("s32", "s16x2"):
        raise form.damaged(f"{form.opcode}.relu needs the type .s32 or .s16x2")

    def not_negative(a: Array, b: Array) -> Array:
        found = function(a, b)
        return np.asarray(np.maximum(found, found.dtype.type(0)))

    return _same(form.type, 2, not_negative)


def _absolute(form: Form) -> ValueRule:
    return _same(form.type, 1, np.abs)


def _negated(form: Form) -> ValueRule:
    return _same(form.type, 1, np.negative)


def _distance(form: Form) -> ValueRule:
    """Describe `sad`: |a - b| + c."""
    kind = form.type

    def compute(a: Array, b: Array, c: Array) -> Array:
        distance = np.where(np.asarray(a) < b, np.subtract(b, a), np.subtract(a, b))
        total: Array = np.add(c, distance)
        return total

    return ValueRule(compute, (kind,) * 3, (kind,))


def _low_24(value: Array, kind: str) -> Array:
    """Return the lower 24 bits as 64, with their sign if the type is signed."""
    bits = as_unsigned(value) & _LOW_24
    if not is_signed(kind):
        return bits.astype(np.int64)
    shifted = (bits << np.uint32(8)).view(np.int32)
    return (shifted >> np.int32(8)).astype(np.int64)


def _product_of_24(form: Form) -> ValueRule:
    """Describe mul24 and mad24. The upper part is bits 16 to 47 of the product."""
    kind = form.type
    part = form.must_take("hi", "lo")
    adds = form.opcode == "mad24"
    saturates = form.has("sat")
    if saturates and (not adds or part != "hi" or kind != "s32"):
        raise form.damaged(".sat needs mad24.hi.s32")
    dtype = dtype_of(kind)

    def compute(a: Array, b: Array, *more: Array) -> Array:
        product = _low_24(a, kind) * _low_24(b, kind)
        words = (product >> 16 if part == "hi" else product).astype(dtype)
        if not adds:
            return words
        if saturates:
            return clamped(words.astype(np.int64) + more[0], np.int32)
        total: Array = words + more[0]
        return total

    return ValueRule(compute, (kind,) * (3 if adds else 2), (kind,))


# Dot products. The order of the parts of a word is that of their weight.


def _parts(value: Array, kind: str, count: int, bits: int) -> list[Array]:
    """Return the first parts of words, each as signed 64-bit numbers."""
    words = np.asarray(value).view(np.uint32)
    parts = []
    for number in range(count):
        part = (words >> np.uint32(bits * number)).astype(f"u{bits // 8}")
        signed = part.view(f"i{bits // 8}") if is_signed(kind) else part
        parts.append(signed.astype(np.int64))
    return parts


def _dot_product(form: Form) -> ValueRule:
    """Describe dp4a and dp2a. dp2a takes both halves of a and two of the bytes of b."""
    if len(form.types) != 2:
        raise form.damaged(f"{form.opcode} needs the types of both factors")
    first, second = form.types
    if not {first, second} <= {"u32", "s32"}:
        raise form.damaged(f"the factors of {form.opcode} are .u32 or .s32")
    kind = "s32" if "s32" in form.types else "u32"
    is_of_four = form.opcode == "dp4a"
    upper = not is_of_four and form.must_take("lo", "hi") == "hi"
    dtype = dtype_of(kind)

    def compute(a: Array, b: Array, c: Array) -> Array:
        left = _parts(a, first, 4, 8) if is_of_four else _parts(a, first, 2, 16)
        right = _parts(b, second, 4, 8)[2 if upper else 0 :]
        total = np.asarray(c, np.int64)
        for x, y in zip(left, right, strict=False):
            total = total + x * y
        return total.astype(dtype)

    return ValueRule(compute, (first, second, kind), (kind,))


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
