"""Instructions on bits: logic, shifts, fields, counts, and permutations of bytes.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "Logic and Shift Instructions" and
"Integer Arithmetic Instructions".
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.instructions import spreads
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import (
    as_unsigned,
    bits_of,
    dtype_of,
    is_signed,
    unsigned_of,
)
from refcomp.emulator.ptx.instructions.undefined import all_bits, shadows_first

_BITS = "b16 b32 b64"
_BYTE = np.uint32(0xFF)
_FIRST = np.zeros((), np.uint32)  # the place of the lowest bit


def _zero_of(value: Array) -> Array:
    return np.zeros((), value.dtype)


def _shifted_up(value: Array, amount: Array) -> Array:
    """Return value << amount, 0 from an amount of the width on."""
    value = np.asarray(value)
    width = 8 * value.itemsize
    less = np.minimum(amount, width - 1).astype(value.dtype)
    shifted = value << less
    return np.where(np.asarray(amount) >= width, _zero_of(value), shifted)


def _shifted_down(value: Array, amount: Array) -> Array:
    """Return value >> amount. From the width on, all bits are 0, or the sign of a signed value."""
    value = np.asarray(value)
    width = 8 * value.itemsize
    less = np.minimum(amount, width - 1).astype(value.dtype)
    shifted = value >> less
    if value.dtype.kind == "i":
        return np.asarray(shifted)
    return np.where(np.asarray(amount) >= width, _zero_of(value), shifted)


# Logic.

_LOGIC = {
    "and": (np.bitwise_and, spreads.of_and),
    "or": (np.bitwise_or, spreads.of_or),
    "xor": (np.bitwise_xor, spreads.of_xor),
}


def _logic(form: Form) -> ValueRule:
    function, spread = _LOGIC[form.opcode]
    kind = form.type
    return ValueRule(function, (kind, kind), (kind,), shadows_first(spread))


def _inverted(form: Form) -> ValueRule:
    spread = shadows_first(spreads.of_copy)
    return ValueRule(np.invert, (form.type,), (form.type,), spread)


def _logical_not(form: Form) -> ValueRule:
    """Describe cnot: 1 for 0, else 0."""
    dtype = unsigned_of(form.type)

    def compute(value: Array) -> Array:
        return np.asarray(np.asarray(value) == 0, dtype)

    return ValueRule(compute, (form.type,), (form.type,))


def lookup(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Return, for each bit, the entry of an 8-bit table that a, b and c number."""
    total = np.zeros((), np.uint32)
    for entry in range(8):
        x = a if entry & 4 else ~np.asarray(a)
        y = b if entry & 2 else ~np.asarray(b)
        z = c if entry & 1 else ~np.asarray(c)
        is_set = np.asarray(table, np.uint32) >> np.uint32(entry) & np.uint32(1)
        total = total | (x & y & z & (np.uint32(0) - is_set))
    return np.asarray(total)


def _undefined_lookup(*both: Array) -> Array:
    """Spread through `lookup`: a bit is undefined if the undefined sources can change it."""
    a, b, c, table, s, t, u, _ = (np.asarray(value) for value in both)
    usual = lookup(a, b, c, table)
    found = np.zeros((), np.uint32)
    for entry in range(1, 8):
        x = a ^ s if entry & 4 else a
        y = b ^ t if entry & 2 else b
        z = c ^ u if entry & 1 else c
        found = found | (lookup(x, y, z, table) ^ usual)
    return np.asarray(found)


def _lop3(form: Form) -> ValueRule:
    combine = form.take("or", "and")
    words = ("b32",) * 4
    if not combine:
        return ValueRule(lookup, words, ("b32",), _undefined_lookup)
    function = np.logical_or if combine == "or" else np.logical_and

    def compute(*values: Array) -> tuple[Array, Array]:
        result = lookup(*values[:4])
        return result, function(result != 0, values[4])

    return ValueRule(compute, (*words, "pred"), ("b32", "pred"))


# Shifts.


def _shift(form: Form) -> ValueRule:
    kind = form.type
    function = _shifted_up if form.opcode == "shl" else _shifted_down
    by = spreads.by_signed_shift if is_signed(kind) else spreads.by_shift
    return ValueRule(function, (kind, "u32"), (kind,), shadows_first(by(function, 1)))


def _funnel_shift(form: Form) -> ValueRule:
    """Describe shf: the lower or upper word of two that are shifted together."""
    leftwards = form.must_take("l", "r") == "l"
    wraps = form.must_take("clamp", "wrap") == "wrap"

    def compute(low: Array, high: Array, amount: Array) -> Array:
        amount = np.asarray(amount)
        most = np.uint32(32)
        distance = amount & np.uint32(31) if wraps else np.minimum(amount, most)
        rest = most - distance
        if leftwards:
            return np.asarray(_shifted_up(high, distance) | _shifted_down(low, rest))
        return np.asarray(_shifted_up(high, rest) | _shifted_down(low, distance))

    def undefined(
        a: Array, b: Array, c: Array, s: Array, t: Array, amount: Array
    ) -> Array:
        moved = compute(s, t, c)
        return np.where(np.asarray(amount) != 0, np.uint32(0xFFFFFFFF), moved)

    return ValueRule(compute, ("b32", "b32", "u32"), ("b32",), undefined)


# Fields of bits.


def field_mask(kind: str, start: Array, length: Array) -> Array:
    """Return the bits `start` to `start + length - 1`, as far as the type has them."""
    dtype = unsigned_of(kind)
    ones = np.array(~dtype.type(0))
    low = ~_shifted_up(ones, np.asarray(length))
    return _shifted_up(low, np.asarray(start))


def _extracted_field(form: Form) -> ValueRule:
    """Describe bfe. Of the position and the length, the lowest byte counts."""
    kind = form.type
    width = bits_of(kind)
    dtype = dtype_of(kind)

    def compute(value: Array, start: Array, length: Array) -> Array:
        value = np.asarray(value)
        start, length = np.asarray(start) & _BYTE, np.asarray(length) & _BYTE
        bits = _shifted_down(as_unsigned(value), start)
        kept = field_mask(kind, _FIRST, length)
        # Bits above the field, or beyond the value, are 0 or the field's sign.
        inside = kept & field_mask(
            kind, _FIRST, np.where(start < width, width - start, 0)
        )
        if value.dtype.kind != "i":
            return np.asarray(bits & inside)
        top = np.minimum(start + length - np.uint32(1), np.uint32(width - 1))
        sign = _shifted_down(as_unsigned(value), top) & dtype.type(1).view(
            unsigned_of(kind)
        )
        is_negative = (sign != 0) & (length != 0)
        filled = np.where(is_negative, ~inside, np.zeros_like(inside))
        return np.asarray((bits & inside) | filled).view(dtype)

    def undefined(*both: Array) -> Array:
        _, start, length, shadow, first, second = both
        moved = as_unsigned(compute(np.asarray(shadow).view(dtype), start, length))
        where = spreads.any_undefined((first, second))
        return np.asarray(moved | all_bits(kind, where))

    return ValueRule(compute, (kind, "u32", "u32"), (kind,), undefined)


def _inserted_field(form: Form) -> ValueRule:
    """Describe bfi: the lowest bits of a, put into b."""
    kind = form.type

    def compute(a: Array, b: Array, start: Array, length: Array) -> Array:
        start, length = np.asarray(start) & _BYTE, np.asarray(length) & _BYTE
        field = field_mask(kind, start, length)
        return np.asarray((_shifted_up(a, start) & field) | (b & ~field))

    def undefined(*both: Array) -> Array:
        shadows = both[4:]
        moved = compute(shadows[0], shadows[1], both[2], both[3])
        where = spreads.any_undefined(shadows[2:])
        return np.asarray(moved | all_bits(kind, where))

    return ValueRule(compute, (kind, kind, "u32", "u32"), (kind,), undefined)


def _bounded(amount: Array, wraps: bool) -> Array:
    if wraps:
        return np.asarray(amount) & np.uint32(31)
    return np.minimum(amount, np.uint32(32))


def _mask(form: Form) -> ValueRule:
    """Describe bmsk: a mask of some bits from a position on."""
    wraps = form.must_take("clamp", "wrap") == "wrap"

    def compute(start: Array, length: Array) -> Array:
        return field_mask("b32", _bounded(start, wraps), _bounded(length, wraps))

    return ValueRule(compute, ("u32", "u32"), ("b32",))


def _extended(form: Form) -> ValueRule:
    """Describe szext: the lowest bits of a value, extended by zeros or by their sign."""
    wraps = form.must_take("clamp", "wrap") == "wrap"
    dtype = dtype_of(form.type)

    def compute(value: Array, length: Array) -> Array:
        count = _bounded(length, wraps)
        rest = np.uint32(32) - count
        raised = _shifted_up(as_unsigned(value), rest).view(dtype)
        lowered = _shifted_down(raised, rest)
        return np.where(count == 0, dtype.type(0), lowered)

    return ValueRule(compute, (form.type, "u32"), (form.type,))


# Counts and places of bits.


def highest_bit(value: Array) -> Array:
    """Return the number of the highest bit that is set, as u32; all ones for 0."""
    value = np.asarray(value)
    place = np.zeros(value.shape, np.uint32)
    rest = value
    step = 4 * value.itemsize
    while step:
        upper = rest >> rest.dtype.type(step)
        is_above = upper != 0
        place = place + np.where(is_above, np.uint32(step), np.uint32(0))
        rest = np.where(is_above, upper, rest)
        step //= 2
    return np.where(value == 0, np.uint32(0xFFFFFFFF), place)


def reversed_bits(value: Array) -> Array:
    """Return an unsigned integer with its bits in the opposite order."""
    value = np.asarray(value)
    octets = np.ascontiguousarray(value[..., None]).view(np.uint8)
    bits = np.unpackbits(octets, axis=-1)[..., ::-1]
    # Within bytes, `unpackbits` starts at the highest bit; bytes start at the lowest.
    packed = np.packbits(bits, axis=-1)
    return np.ascontiguousarray(packed).view(value.dtype)[..., 0]


def _reversal(form: Form) -> ValueRule:
    spread = shadows_first(lambda shadow, value: reversed_bits(shadow))
    return ValueRule(reversed_bits, (form.type,), (form.type,), spread)


def _population(form: Form) -> ValueRule:
    def compute(value: Array) -> Array:
        return np.bitwise_count(value).astype(np.uint32)

    return ValueRule(compute, (form.type,), ("u32",))


def _leading_zeros(form: Form) -> ValueRule:
    top = np.uint32(bits_of(form.type) - 1)

    def compute(value: Array) -> Array:
        # Of 0, the place is -1 modulo 2**32.
        count: Array = top - highest_bit(value)
        return count

    return ValueRule(compute, (form.type,), ("u32",))


def _found_bit(form: Form) -> ValueRule:
    """Describe bfind: the place of the highest bit that differs from the sign."""
    kind = form.type
    top = np.uint32(bits_of(kind) - 1)
    gives_amount = form.has("shiftamt")

    def compute(value: Array) -> Array:
        bits = as_unsigned(value)
        if is_signed(kind):
            bits = np.where(np.asarray(value) < 0, ~bits, bits)
        place = highest_bit(bits)
        if not gives_amount:
            return place
        return np.where(bits == 0, place, top - place)

    return ValueRule(compute, (kind,), ("u32",))


def _nth_bit(form: Form) -> ValueRule:
    """Describe fns: the place of the n-th set bit from a base on, upwards or downwards."""

    def compute(mask: Array, base: Array, offset: Array) -> Array:
        mask, base, offset = np.broadcast_arrays(mask, base, offset)
        place = np.arange(32)
        is_set = (mask[..., None] >> place.astype(np.uint32) & np.uint32(1)) != 0
        start = base[..., None].astype(np.int64)
        count = offset[..., None].astype(np.int64)
        upwards = is_set & (place >= start)
        downwards = is_set & (place <= start)
        number = np.where(
            count > 0,
            np.cumsum(upwards, axis=-1),
            np.cumsum(downwards[..., ::-1], axis=-1)[..., ::-1],
        )
        counted = np.where(count > 0, upwards, downwards)
        wanted = np.where(count == 0, place == start, number == np.abs(count))
        found = np.where(count == 0, is_set, counted) & wanted
        first = np.argmax(found, axis=-1).astype(np.uint32)
        return np.where(found.any(axis=-1), first, np.uint32(0xFFFFFFFF))

    return ValueRule(compute, ("b32", "b32", "s32"), ("b32",))


# Permutations of bytes.

# Mode of prmt -> for each of the two lowest bits of the selector, the byte that each byte takes.
_PERMUTATIONS = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def _permuted(low: Array, high: Array, selector: Array, mode: str) -> Array:
    selector = np.asarray(selector)
    both = np.asarray(high, np.uint64) << np.uint64(32) | np.asarray(low, np.uint64)
    total = np.zeros((), np.uint32)
    for place in range(4):
        if mode:
            choices = np.array([row[place] for row in _PERMUTATIONS[mode]], np.uint32)
            control = choices[(selector & np.uint32(3)).astype(np.intp)]
        else:
            control = selector >> np.uint32(4 * place)
        amount = (control & np.uint32(7)).astype(np.uint64) << np.uint64(3)
        byte = (both >> amount).astype(np.uint32) & _BYTE
        # The selector's highest bit repeats the byte's sign.
        sign = np.where(byte & np.uint32(0x80) != 0, _BYTE, np.uint32(0))
        taken = np.where(control & np.uint32(8) != 0, sign, byte)
        total = total | taken << np.uint32(8 * place)
    return np.asarray(total)


def _permutation(form: Form) -> ValueRule:
    mode = form.take(*_PERMUTATIONS)

    def compute(low: Array, high: Array, selector: Array) -> Array:
        return _permuted(low, high, selector, mode)

    def undefined(*both: Array) -> Array:
        moved = compute(both[3], both[4], both[2])
        return np.asarray(moved | all_bits("b32", np.asarray(both[5]) != 0))

    return ValueRule(compute, ("b32", "b32", "b32"), ("b32",), undefined)


BITS: Table = joined(
    [
        rows("and or xor", f"pred {_BITS}", _logic),
        rows("not", f"pred {_BITS}", _inverted),
        rows("cnot", _BITS, _logical_not),
        rows("lop3", "b32", _lop3),
        rows("shl", _BITS, _shift),
        rows("shr", f"{_BITS} u16 u32 u64 s16 s32 s64", _shift),
        rows("shf", "b32", _funnel_shift),
        rows("bfe", "u32 u64 s32 s64", _extracted_field),
        rows("bfi", "b32 b64", _inserted_field),
        rows("bmsk", "b32", _mask),
        rows("szext", "u32 s32", _extended),
        rows("brev", "b32 b64", _reversal),
        rows("popc", "b32 b64", _population),
        rows("clz", "b32 b64", _leading_zeros),
        rows("bfind", "u32 u64 s32 s64", _found_bit),
        rows("fns", "b32", _nth_bit),
        rows("prmt", "b32", _permutation),
    ]
)
