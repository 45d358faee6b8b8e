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
_ALL_ONES = np.uint32(0xFFFFFFFF)
_LOWEST = np.zeros((), np.uint32)  # the position of the lowest bit


def _shifted_up(value: Array, amount: Array) -> Array:
    """Return value << amount. If the amount is the width or more, the result is 0."""
    value = np.asarray(value)
    shifted = value << _amount_below_width(value, amount)
    return _zero_beyond_width(shifted, amount)


def _shifted_down(value: Array, amount: Array) -> Array:
    """Return value >> amount.

    If the amount is the width or more, an unsigned value gives 0. For a signed value, all bits of
    the result are the sign bit.
    """
    value = np.asarray(value)
    shifted = value >> _amount_below_width(value, amount)
    if value.dtype.kind == "i":
        return np.asarray(shifted)
    return _zero_beyond_width(shifted, amount)


def _amount_below_width(value: Array, amount: Array) -> Array:
    """Return an amount that numpy can shift by: at most the width of the value less 1."""
    last = 8 * value.itemsize - 1
    bounded = np.minimum(amount, last)
    return bounded.astype(value.dtype)


def _zero_beyond_width(shifted: Array, amount: Array) -> Array:
    width = 8 * shifted.itemsize
    is_beyond = np.asarray(amount) >= width
    zero = shifted.dtype.type(0)
    return np.where(is_beyond, zero, shifted)


# Logic.

_LOGIC = {
    "and": (np.bitwise_and, spreads.of_and),
    "or": (np.bitwise_or, spreads.of_or),
    "xor": (np.bitwise_xor, spreads.of_xor),
}


def _logic(form: Form) -> ValueRule:
    function, spread = _LOGIC[form.opcode]
    kind = form.type
    return ValueRule(
        compute=function,
        sources=(kind, kind),
        results=(kind,),
        undefined=shadows_first(spread),
    )


def _inverted(form: Form) -> ValueRule:
    spread = shadows_first(spreads.of_copy)
    return ValueRule(
        compute=np.invert,
        sources=(form.type,),
        results=(form.type,),
        undefined=spread,
    )


def _logical_not(form: Form) -> ValueRule:
    """Describe cnot: 1 for 0, else 0."""
    dtype = unsigned_of(form.type)

    def compute(value: Array) -> Array:
        return np.asarray(np.asarray(value) == 0, dtype)

    return ValueRule(
        compute=compute,
        sources=(form.type,),
        results=(form.type,),
    )


def lookup(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Look each bit up in an 8-bit table.

    The bits of a, b and c at one position are the number of an entry, that of a the highest.
    """
    a = np.asarray(a)
    b = np.asarray(b)
    c = np.asarray(c)
    table = np.asarray(table, np.uint32)
    total: Array = np.zeros((), np.uint32)
    for entry in range(8):
        is_selected = a if entry & 4 else ~a
        is_selected = is_selected & (b if entry & 2 else ~b)
        is_selected = is_selected & (c if entry & 1 else ~c)
        bit = table >> entry & 1
        # 0 - 1 wraps around: all bits are set.
        everywhere = np.uint32(0) - bit
        total = total | (is_selected & everywhere)
    return np.asarray(total)


def _undefined_lookup(*both: Array) -> Array:
    """Spread through `lookup`: a bit is undefined if the undefined sources can change it."""
    a, b, c, table, a_shadow, b_shadow, c_shadow, _ = both
    usual = lookup(a, b, c, table)
    found: Array = np.zeros((), np.uint32)
    for choice in range(1, 8):
        # Flip the undefined bits of one to three sources.
        x = a ^ a_shadow if choice & 4 else a
        y = b ^ b_shadow if choice & 2 else b
        z = c ^ c_shadow if choice & 1 else c
        changed = lookup(x, y, z, table) ^ usual
        found = found | changed
    return np.asarray(found)


def _lop3(form: Form) -> ValueRule:
    combine = form.take("or", "and")
    words = ("b32",) * 4
    if not combine:
        return ValueRule(
            compute=lookup,
            sources=words,
            results=("b32",),
            undefined=_undefined_lookup,
        )
    function = np.logical_or if combine == "or" else np.logical_and

    def compute(
        a: Array, b: Array, c: Array, table: Array, predicate: Array
    ) -> tuple[Array, Array]:
        result = lookup(a, b, c, table)
        combined = function(result != 0, predicate)
        return result, combined

    return ValueRule(
        compute=compute,
        sources=(*words, "pred"),
        results=("b32", "pred"),
    )


# Shifts.


def _shift(form: Form) -> ValueRule:
    kind = form.type
    function = _shifted_up if form.opcode == "shl" else _shifted_down
    spread_by = spreads.by_signed_shift if is_signed(kind) else spreads.by_shift
    undefined = shadows_first(spread_by(function, 1))
    return ValueRule(
        compute=function,
        sources=(kind, "u32"),
        results=(kind,),
        undefined=undefined,
    )


def _funnel_shift(form: Form) -> ValueRule:
    """Describe shf: the lower or upper word of two that are shifted together."""
    leftwards = form.must_take("l", "r") == "l"
    wraps = form.must_take("clamp", "wrap") == "wrap"

    def compute(low: Array, high: Array, amount: Array) -> Array:
        distance = _bounded(amount, wraps)
        rest = 32 - distance
        if leftwards:
            upper = _shifted_up(high, distance)
            lower = _shifted_down(low, rest)
        else:
            upper = _shifted_up(high, rest)
            lower = _shifted_down(low, distance)
        return np.asarray(upper | lower)

    def undefined(*both: Array) -> Array:
        _, _, amount, low_shadow, high_shadow, amount_shadow = both
        moved = compute(low_shadow, high_shadow, amount)
        return np.asarray(moved | all_bits("b32", amount_shadow != 0))

    return ValueRule(
        compute=compute,
        sources=("b32", "b32", "u32"),
        results=("b32",),
        undefined=undefined,
    )


# Fields of bits.


def field_mask(kind: str, start: Array, length: Array) -> Array:
    """Return the bits `start` to `start + length - 1`, as far as the type has them."""
    dtype = unsigned_of(kind)
    ones = np.array(~dtype.type(0))
    lowest = ~_shifted_up(ones, length)
    return _shifted_up(lowest, start)


def _extracted_field(form: Form) -> ValueRule:
    """Describe bfe. Of the position and of the length, only the lowest byte is used."""
    kind = form.type
    width = bits_of(kind)
    dtype = dtype_of(kind)
    one = unsigned_of(kind).type(1)

    def compute(value: Array, start: Array, length: Array) -> Array:
        bits = as_unsigned(value)
        start = _low_byte(start)
        length = _low_byte(length)
        lowered = _shifted_down(bits, start)
        # The bits of the field that the value has. Bits above them are 0 or the field's sign.
        in_field = field_mask(kind, _LOWEST, length)
        bits_from_start = np.where(start < width, width - start, 0)
        inside = in_field & field_mask(kind, _LOWEST, bits_from_start)
        field = lowered & inside
        if not is_signed(kind):
            return np.asarray(field)
        top = np.minimum(start + length - 1, width - 1)
        sign = _shifted_down(bits, top) & one
        is_negative = (sign != 0) & (length != 0)
        filled = np.where(is_negative, field | ~inside, field)
        return filled.view(dtype)

    def undefined(*both: Array) -> Array:
        _, start, length, shadow, *place_shadows = both
        moved = compute(np.asarray(shadow).view(dtype), start, length)
        is_unknown = spreads.any_undefined(place_shadows)
        return np.asarray(as_unsigned(moved) | all_bits(kind, is_unknown))

    return ValueRule(
        compute=compute,
        sources=(kind, "u32", "u32"),
        results=(kind,),
        undefined=undefined,
    )


def _inserted_field(form: Form) -> ValueRule:
    """Describe bfi: the lowest bits of a replace a field of b."""
    kind = form.type

    def compute(a: Array, b: Array, start: Array, length: Array) -> Array:
        start = _low_byte(start)
        length = _low_byte(length)
        field = field_mask(kind, start, length)
        inserted = _shifted_up(a, start) & field
        kept = b & ~field
        return np.asarray(inserted | kept)

    def undefined(*both: Array) -> Array:
        _, _, start, length, a_shadow, b_shadow, *place_shadows = both
        moved = compute(a_shadow, b_shadow, start, length)
        is_unknown = spreads.any_undefined(place_shadows)
        return np.asarray(moved | all_bits(kind, is_unknown))

    return ValueRule(
        compute=compute,
        sources=(kind, kind, "u32", "u32"),
        results=(kind,),
        undefined=undefined,
    )


def _low_byte(number: Array) -> Array:
    return np.asarray(number) & _BYTE


def _bounded(amount: Array, wraps: bool) -> Array:
    """Return an amount modulo 32 (.wrap), or at most 32 (.clamp)."""
    if wraps:
        return np.asarray(amount) & np.uint32(31)
    return np.minimum(amount, np.uint32(32))


def _mask(form: Form) -> ValueRule:
    """Describe bmsk: a mask of some bits from a position on."""
    wraps = form.must_take("clamp", "wrap") == "wrap"

    def compute(start: Array, length: Array) -> Array:
        first = _bounded(start, wraps)
        count = _bounded(length, wraps)
        return field_mask("b32", first, count)

    return ValueRule(
        compute=compute,
        sources=("u32", "u32"),
        results=("b32",),
    )


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

    return ValueRule(
        compute=compute,
        sources=(form.type, "u32"),
        results=(form.type,),
    )


# Counts and positions of bits.


def highest_bit(value: Array) -> Array:
    """Return the position of the highest bit that is set, as u32; all ones for 0."""
    value = np.asarray(value)
    position = np.zeros(value.shape, np.uint32)
    rest = value
    step = 4 * value.itemsize
    while step:
        # Search the upper half of what is left, unless it is 0.
        upper = rest >> rest.dtype.type(step)
        is_above = upper != 0
        position = position + np.where(is_above, np.uint32(step), np.uint32(0))
        rest = np.where(is_above, upper, rest)
        step //= 2
    return np.where(value == 0, _ALL_ONES, position)


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
    return ValueRule(
        compute=reversed_bits,
        sources=(form.type,),
        results=(form.type,),
        undefined=spread,
    )


def _population(form: Form) -> ValueRule:
    def compute(value: Array) -> Array:
        return np.bitwise_count(value).astype(np.uint32)

    return ValueRule(
        compute=compute,
        sources=(form.type,),
        results=("u32",),
    )


def _leading_zeros(form: Form) -> ValueRule:
    top = np.uint32(bits_of(form.type) - 1)

    def compute(value: Array) -> Array:
        # For 0 the position is all ones, which is -1: the count is the width.
        count: Array = top - highest_bit(value)
        return count

    return ValueRule(
        compute=compute,
        sources=(form.type,),
        results=("u32",),
    )


def _found_bit(form: Form) -> ValueRule:
    """Describe bfind: the position of the highest bit that differs from the sign."""
    kind = form.type
    top = np.uint32(bits_of(kind) - 1)
    gives_amount = form.has("shiftamt")

    def compute(value: Array) -> Array:
        bits = as_unsigned(value)
        if is_signed(kind):
            bits = np.where(np.asarray(value) < 0, ~bits, bits)
        position = highest_bit(bits)
        if not gives_amount:
            return position
        amount = top - position
        return np.where(bits == 0, position, amount)

    return ValueRule(
        compute=compute,
        sources=(kind,),
        results=("u32",),
    )


def _nth_bit(form: Form) -> ValueRule:
    """Describe fns: the position of the n-th set bit, counted from a base.

    A positive n counts upwards from the base, a negative one downwards. n = 0 asks for the bit at
    the base itself. The result is all ones if the mask has no such bit.
    """
    positions = np.arange(32)

    def compute(mask: Array, base: Array, n: Array) -> Array:
        # The last axis has an element for each bit of the mask.
        mask = np.asarray(mask)[..., None]
        base = np.asarray(base, np.int64)[..., None]
        n = np.asarray(n, np.int64)[..., None]
        bits = mask >> positions.astype(np.uint32) & 1
        is_set = bits != 0
        above = is_set & (positions >= base)
        below = is_set & (positions <= base)
        number_upwards = np.cumsum(above, axis=-1)
        number_downwards = np.flip(np.cumsum(np.flip(below, -1), axis=-1), -1)
        is_nth = np.select(
            [n > 0, n < 0],
            [above & (number_upwards == n), below & (number_downwards == -n)],
            default=is_set & (positions == base),
        )
        position = np.argmax(is_nth, axis=-1).astype(np.uint32)
        return np.where(is_nth.any(axis=-1), position, _ALL_ONES)

    return ValueRule(
        compute=compute,
        sources=("b32", "b32", "s32"),
        results=("b32",),
    )


# Permutations of bytes.

# Mode of prmt -> for each value of the selector's two lowest bits: the source byte of each byte of
# the result. Bytes 0 to 3 are those of the first source, 4 to 7 those of the second.
_PERMUTATIONS = {
    "f4e": "0123 1234 2345 3456",
    "b4e": "0765 1076 2107 3210",
    "rc8": "0000 1111 2222 3333",
    "ecl": "0123 1123 2223 3333",
    "ecr": "0000 0111 0122 0123",
    "rc16": "0101 2323 0101 2323",
}


def _permuted(low: Array, high: Array, selector: Array, mode: str) -> Array:
    """Return bytes of two words, chosen by the selector, as one word."""
    lower_word = np.asarray(low, np.uint64)
    upper_word = np.asarray(high, np.uint64) << 32
    source = lower_word | upper_word
    total: Array = np.zeros((), np.uint32)
    for place in range(4):
        control = _control_of_byte(place, selector, mode)
        number = (control & 7).astype(np.uint64)
        byte = (source >> 8 * number).astype(np.uint32) & _BYTE
        # The highest bit of the control replaces the byte by its sign, repeated.
        is_negative = byte & 0x80 != 0
        sign = np.where(is_negative, _BYTE, np.uint32(0))
        takes_sign = control & 8 != 0
        taken = np.where(takes_sign, sign, byte)
        total = total | taken << 8 * place
    return np.asarray(total)


def _control_of_byte(place: int, selector: Array, mode: str) -> Array:
    """Return the four bits, u32, that choose one byte of the result of prmt."""
    selector = np.asarray(selector)
    if not mode:
        return np.asarray(selector >> 4 * place & 0xF)
    choices = [int(taken[place]) for taken in _PERMUTATIONS[mode].split()]
    return np.take(np.array(choices, np.uint32), selector & 3)


def _permutation(form: Form) -> ValueRule:
    mode = form.take(*_PERMUTATIONS)

    def compute(low: Array, high: Array, selector: Array) -> Array:
        return _permuted(low, high, selector, mode)

    def undefined(*both: Array) -> Array:
        _, _, selector, low_shadow, high_shadow, selector_shadow = both
        moved = compute(low_shadow, high_shadow, selector)
        return np.asarray(moved | all_bits("b32", selector_shadow != 0))

    return ValueRule(
        compute=compute,
        sources=("b32", "b32", "b32"),
        results=("b32",),
        undefined=undefined,
    )


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
