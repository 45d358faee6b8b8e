"""Products of full width, multiply-adds, and sums in several steps with a carry.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "mul", "mad" and "Extended-Precision
Integer Arithmetic Instructions". A borrow is held in the carry flag as 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.integers import clamped
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import (
    CARRY,
    as_unsigned,
    bits_of,
    dtype_of,
)

_ALL = "u16 u32 u64 s16 s32 s64"
_CARRIED = "u32 s32 u64 s64"
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def wide_of(kind: str) -> str:
    """Return the type of twice the width."""
    return f"{kind[0]}{2 * bits_of(kind)}"


def upper_product(a: Array, b: Array) -> Array:
    """Return the upper half of the product of two integers of any width."""
    a, b = np.asarray(a), np.asarray(b)
    if a.itemsize == 8:
        return _upper_of_128(a, b)
    wide = np.dtype(f"{a.dtype.kind}{2 * a.itemsize}")
    product = a.astype(wide) * b.astype(wide)
    shifted: Array = product >> wide.type(8 * a.itemsize)
    return shifted.astype(a.dtype)


def _upper_of_128(a: Array, b: Array) -> Array:
    left, right = as_unsigned(a), as_unsigned(b)
    a_low, a_high = left & _LOW, left >> _HALF
    b_low, b_high = right & _LOW, right >> _HALF
    # No sum below overflows: (2**32 - 1)**2 + 2 * (2**32 - 1) is 2**64 - 1.
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    other = a_low * b_high + (middle & _LOW)
    upper = a_high * b_high + (middle >> _HALF) + (other >> _HALF)
    if a.dtype.kind == "i":
        # A negative number is read as 2**64 too large.
        upper = upper - np.where(a < 0, right, np.uint64(0))
        upper = upper - np.where(b < 0, left, np.uint64(0))
    return np.asarray(upper).view(a.dtype)


def _part_of_product(form: Form) -> str:
    return form.must_take("lo", "hi", "wide")


def _multiplied(form: Form, part: str) -> tuple[Callable[..., Array], str]:
    """Return the function of a product, and the type of its result."""
    kind = form.type
    if part == "lo":
        return np.multiply, kind
    if part == "hi":
        return upper_product, kind
    if bits_of(kind) == 64:
        raise form.damaged(f"{form.opcode}.wide needs a type of 16 or 32 bits")
    result = wide_of(kind)
    dtype = dtype_of(result)

    def wide(a: Array, b: Array) -> Array:
        product: Array = np.asarray(a).astype(dtype) * np.asarray(b).astype(dtype)
        return product

    return wide, result


def _product(form: Form) -> ValueRule:
    function, result = _multiplied(form, _part_of_product(form))
    return ValueRule(
        compute=function,
        sources=(form.type,) * 2,
        results=(result,),
    )


def _multiply_add(form: Form) -> ValueRule:
    """Describe mad and madc: a product, a third number and perhaps the carry."""
    if form.opcode == "madc" or "cc" in form.instruction.modifiers:
        return _multiply_add_with_carry(form)
    part = _part_of_product(form)
    multiply, result = _multiplied(form, part)
    saturates = form.has("sat")
    if saturates and (part != "hi" or form.type != "s32"):
        raise form.damaged(".sat needs mad.hi.s32")

    def compute(a: Array, b: Array, c: Array) -> Array:
        product = multiply(a, b)
        if saturates:
            return clamped(product.astype(np.int64) + c, np.int32)
        total: Array = product + c
        return total

    return ValueRule(
        compute=compute,
        sources=(form.type, form.type, result),
        results=(result,),
    )


def add_with_carry(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Return a + b + carry of integers, and True if the sum overflows (carry out)."""
    left, right = as_unsigned(a), as_unsigned(b)
    total = left + right
    both = total + np.asarray(carry).astype(total.dtype)
    carried = (total < left) | (both < total)
    return np.asarray(both).view(np.asarray(a).dtype), carried


def subtract_with_borrow(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """Return a - (b + borrow) of integers, and True if the difference is below 0 (borrow)."""
    left, right = as_unsigned(a), as_unsigned(b)
    difference = left - right
    both = difference - np.asarray(borrow).astype(difference.dtype)
    borrowed = (left < right) | (difference < both)
    return np.asarray(both).view(np.asarray(a).dtype), borrowed


def _carried(
    form: Form, sources: tuple[str, ...], step: Callable[..., tuple[Array, Array]]
) -> ValueRule:
    """Return the rule of a step. Its last argument is the carry."""
    takes = form.opcode[-1] == "c"
    gives = form.has("cc")
    none = np.zeros((), np.bool_)

    def compute(*values: Array) -> Array | tuple[Array, ...]:
        result = step(*values) if takes else step(*values, none)
        return result if gives else result[0]

    result = sources[-1]
    return ValueRule(
        compute=compute,
        sources=(*sources, CARRY) if takes else sources,
        results=(result, CARRY) if gives else (result,),
    )


def _sum_with_carry(form: Form) -> ValueRule:
    step = add_with_carry if form.opcode[:3] == "add" else subtract_with_borrow
    return _carried(form, (form.type,) * 2, step)


def _multiply_add_with_carry(form: Form) -> ValueRule:
    if form.type not in _CARRIED.split():
        raise form.damaged(f"{form.opcode} with a carry needs a type of 32 or 64 bits")
    multiply = np.multiply if form.must_take("lo", "hi") == "lo" else upper_product

    def step(a: Array, b: Array, c: Array, carry: Array) -> tuple[Array, Array]:
        return add_with_carry(multiply(a, b), c, carry)

    return _carried(form, (form.type,) * 3, step)


WIDE: Table = joined(
    [
        rows("mul", _ALL, _product),
        rows("mad", _ALL, _multiply_add),
        rows("addc subc", _CARRIED, _sum_with_carry),
        rows("madc", _CARRIED, _multiply_add),
    ]
)
# add.cc and sub.cc, which `refcomp.emulator.ptx.instructions.rules` looks up for `.cc`.
CARRYING_SUMS: Table = rows("add sub", _CARRIED, _sum_with_carry)
