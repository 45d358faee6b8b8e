"""Vector instructions on integers and bits. Sums wrap; shifts take the low bits of their amount."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from refcomp.emulator.instructions import spreads
from refcomp.emulator.instructions.operation import Function, Semantics, operation
from refcomp.emulator.instructions.tables.bytewise import VECTOR_BYTES
from refcomp.emulator.machine.arrays import NUMPY, Array, Mask, bits_of

_ONE = np.uint32(1)
_ALL_BITS = np.uint32(0xFFFFFFFF)


def u64(value: npt.ArrayLike) -> Array:
    """Return integers as u64."""
    return np.asarray(value).astype(np.uint64)


def i64(value: npt.ArrayLike) -> Array:
    """Return integers as i64."""
    return np.asarray(value).astype(np.int64)


def u32(value: npt.ArrayLike) -> Array:
    """Return the low 32 bits of integers, as u32."""
    return np.asarray(value).astype(np.uint32)


def shift_left(value: Array, amount: Array) -> Array:
    """Return value << amount, where `amount` counts modulo the width of `value`."""
    return np.left_shift(value, _modulo(value, amount))


def shift_right(value: Array, amount: Array) -> Array:
    """Return value >> amount: zeros come in, or the sign where `value` has one."""
    return np.right_shift(value, _modulo(value, amount))


def _modulo(value: Array, amount: Array) -> Array:
    dtype = np.asarray(value).dtype
    return np.bitwise_and(amount, 8 * dtype.itemsize - 1).astype(dtype)


def _reversed(
    function: Function,
) -> Function:
    return lambda a, b: function(b, a)


def _sign_extended_24(value: Array) -> Array:
    return (np.asarray(value) << np.int32(8)) >> np.int32(8)


def _low_24(value: Array) -> Array:
    return np.asarray(value) & np.uint32(0xFFFFFF)


def high_product_u32(a: Array, b: Array) -> Array:
    """Return the upper half of a * b."""
    return u32((u64(a) * u64(b)) >> np.uint64(32))


def high_product_i32(a: Array, b: Array) -> Array:
    """Return the upper half of a * b."""
    return ((i64(a) * i64(b)) >> np.int64(32)).astype(np.int32)


def _add_with_carry(
    a: Array, b: Array, carry: Array | None = None
) -> tuple[Array, Mask]:
    total = np.add(a, b)
    overflows = total < a
    if carry is None:
        return total, overflows
    whole = total + u32(carry)
    return whole, overflows | (whole < total)


def _subtract_with_borrow(
    a: Array, b: Array, borrow: npt.ArrayLike = 0
) -> tuple[Array, Mask]:
    taken = u64(b) + u64(borrow)
    return u32(u64(a) - taken), u64(a) < taken


def _multiply_add_u64(a: Array, b: Array, c: Array) -> tuple[Array, Mask]:
    product = u64(a) * u64(b)
    total = product + u64(c)
    return total, total < product


def _multiply_add_i64(a: Array, b: Array, c: Array) -> tuple[Array, Mask]:
    """Return a * b + c, and the sign of that sum, which has 65 bits."""
    product = i64(a) * i64(b)
    total = product + c
    overflows = ((product ^ total) & (c ^ total)) < 0
    return total, overflows ^ (total < 0)


def _choose(a: Array, b: Array, chosen: Array) -> Array:
    return np.where(chosen, b, a)


def field_u32(value: Array, start: Array, width: Array) -> Array:
    """Return `width` bits of `value` from bit `start` on."""
    start = start & np.uint32(31)
    width = width & np.uint32(31)
    ones: Array = (_ONE << width) - _ONE
    field: Array = (value >> start) & ones
    return field


def field_i32(value: Array, start: Array, width: Array) -> Array:
    """Return the field, sign-extended; the value's own sign follows its last bit."""
    start = start & np.uint32(31)
    width = width & np.uint32(31)
    moved = np.right_shift(np.asarray(value).view(np.int32), start.astype(np.int32))
    above = (np.uint32(32) - width & np.uint32(31)).astype(np.int32)
    return np.where(width == 0, np.int32(0), (moved << above) >> above)


def _insert(mask: Array, a: Array, b: Array) -> Array:
    return (mask & a) | (~mask & b)


def _inserted_spread(*both: Array) -> Array:
    (m, s, t), (mask, a, b) = both[:3], both[3:]
    return np.bitwise_or(_insert(mask, s, t), m & ((a ^ b) | s | t))


def _field_mask(width: Array, start: Array) -> Array:
    return ((_ONE << (width & np.uint32(31))) - _ONE) << (start & np.uint32(31))


def _align_bits(high: Array, low: Array, amount: Array) -> Array:
    return u32(((u64(high) << np.uint64(32)) | u64(low)) >> u64(amount & np.uint32(31)))


def _align_bytes(high: Array, low: Array, amount: Array) -> Array:
    return _align_bits(high, low, (amount & np.uint32(3)) * np.uint32(8))


def permute_bytes(high: Array, low: Array, selector: Array) -> Array:
    """Return four bytes, each selected from eight by a byte of `selector`.

    Selectors from 8 on stand for signs and constants.
    """
    eight = (u64(high) << np.uint64(32)) | u64(low)
    result = u32(np.zeros(np.broadcast(high, low, selector).shape))
    for place in range(4):
        chosen = (selector >> np.uint32(8 * place)) & np.uint32(0xFF)
        plain = u32(eight >> u64(np.uint32(8) * (chosen & np.uint32(7)))) & np.uint32(
            0xFF
        )
        signs = (
            u32(eight >> u64(np.uint32(16) * (chosen & np.uint32(3)) + np.uint32(15)))
            & _ONE
        )
        octet = np.where(
            chosen < 8, plain, np.where(chosen < 12, signs * np.uint32(255), 0)
        )
        octet = np.where(chosen >= 13, np.uint32(255), octet)
        result = result | u32(octet) << np.uint32(8 * place)
    return result


def bit_count(value: Array) -> Array:
    """Return how many bits are set."""
    count: Array = np.bitwise_count(np.asarray(value))
    return count.astype(np.uint32)


def first_set_from_below(value: Array) -> Array:
    """Return the number of the lowest set bit; -1 if no bit is set."""
    value = np.asarray(value)
    lowest = value & (~value + value.dtype.type(1))
    return np.where(value == 0, _ALL_BITS, bit_count(lowest - value.dtype.type(1)))


def first_set_from_above(value: Array) -> Array:
    """Return how many zeros are above the highest set bit; -1 if no bit is set."""
    value = np.asarray(value)
    spread = value.copy()
    width = 8 * value.dtype.itemsize
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            spread |= spread >> value.dtype.type(step)
    return np.where(value == 0, _ALL_BITS, np.uint32(width) - bit_count(spread))


def first_unlike_sign(value: Array) -> Array:
    """Return how many bits from above are equal to the sign; -1 if all are."""
    value = np.asarray(value)
    flipped = np.where(value < 0, ~value, value)
    return first_set_from_above(flipped.view(f"u{value.dtype.itemsize}"))


def reverse_bits(value: Array) -> Array:
    """Return the bits in reverse order."""
    octets = (
        np.ascontiguousarray(value)
        .reshape(-1)
        .view(np.uint8)
        .reshape(-1, value.itemsize)
    )
    flipped = np.packbits(np.unpackbits(octets, axis=1)[:, ::-1], axis=1)
    return flipped.reshape(-1).view(value.dtype).reshape(np.shape(value))


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


_AND = spreads.Tracked(np.bitwise_and, spreads.of_and)
_OR = spreads.Tracked(np.bitwise_or, spreads.of_or)
_XOR = spreads.Tracked(np.bitwise_xor, spreads.of_xor)
_SUM = spreads.Tracked(np.add, spreads.of_sum)
_LEFT = spreads.Tracked(shift_left, spreads.by_shift(shift_left, 1))


def _pair(first: spreads.Tracked, second: spreads.Tracked) -> dict[str, Function]:
    """Return the fields of the row `second(first(a, b), c)`."""
    return {
        "function": lambda a, b, c: second.function(first.function(a, b), c),
        "spread": spreads.chained(first, second),
    }


def _bitwise() -> dict[str, Semantics]:
    two = "u32 = u32 u32"
    three = "u32 = u32 u32 u32"
    rows = {
        "v_mov_b32": operation("u32 = u32", np.positive, spread=spreads.of_copy),
        "v_mov_b64": operation("u64 = u64", np.copy, spread=spreads.of_copy),
        "v_not_b32": operation("u32 = u32", np.invert, spread=spreads.of_copy),
        "v_and_b32": operation(two, np.bitwise_and, spread=spreads.of_and),
        "v_or_b32": operation(two, np.bitwise_or, spread=spreads.of_or),
        "v_xor_b32": operation(two, np.bitwise_xor, spread=spreads.of_xor),
        "v_xnor_b32": operation(two, lambda a, b: ~(a ^ b), spread=spreads.of_xor),
        "v_cndmask_b32": operation(
            "u32 = u32 u32 mask", _choose, spread=_choice_spread
        ),
        "v_bfi_b32": operation(three, _insert, spread=_inserted_spread),
        "v_bfe_u32": operation(three, field_u32, spread=spreads.by_field(field_u32, 3)),
        "v_bfe_i32": operation(
            "i32 = i32 u32 u32", field_i32, spread=spreads.by_field(field_i32, 3)
        ),
        "v_bfm_b32": operation(two, _field_mask),
        "v_perm_b32": operation(three, permute_bytes, spread=_permuted_spread),
        "v_alignbit_b32": operation(three, _align_bits),
        "v_alignbyte_b32": operation(three, _align_bytes),
        "v_bfrev_b32": operation("u32 = u32", reverse_bits),
    }
    chains = {
        "and_or": (_AND, _OR),
        "or3": (_OR, _OR),
        "lshl_or": (_LEFT, _OR),
        "lshl_add": (_LEFT, _SUM),
        "add_lshl": (_SUM, _LEFT),
        "add3": (_SUM, _SUM),
        "xad": (_XOR, _SUM),
    }
    for name, (first, second) in chains.items():
        kind = "b32" if second is _OR else "u32"
        rows[f"v_{name}_{kind}"] = operation(three, **_pair(first, second))
    return rows


def _choice_spread(
    s: Array, t: Array, c: Array, a: Array, b: Array, chosen: Array
) -> Array:
    return spreads.of_choice(s, t, c != 0, a, b, chosen != 0)


def _permuted_spread(
    s: Array, t: Array, c: Array, a: Array, b: Array, selector: Array
) -> Array:
    moved = permute_bytes(s, t, selector)
    # Selectors from 12 on stand for constant bytes, which are defined.
    for place in range(4):
        shift = np.uint32(8 * place)
        is_constant = (selector >> shift & np.uint32(255)) >= 12
        moved = np.where(is_constant, moved & ~(np.uint32(255) << shift), moved)
    return np.where(c != 0, _ALL_BITS, moved)


def _shifts() -> dict[str, Semantics]:
    rows = {}
    for bits in (16, 32, 64):
        for name, kind, function in (
            ("lshlrev_b", "u", shift_left),
            ("lshrrev_b", "u", shift_right),
            ("ashrrev_i", "i", shift_right),
        ):
            amount = "u16" if bits == 16 else "u32"
            turned = _reversed(function)
            by_shift = spreads.by_signed_shift if kind == "i" else spreads.by_shift
            spread = by_shift(turned, 0)
            signature = f"{kind}{bits} = {amount} {kind}{bits}"
            rows[f"v_{name}{bits}"] = operation(signature, turned, spread=spread)
    return rows


_SUMS: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "subrev": _reversed(np.subtract),
}


def _sums() -> dict[str, Semantics]:
    add = spreads.of_sum
    rows = {}
    for kind in ("u16", "i16", "u32", "i32"):
        two = f"{kind} = {kind} {kind}"
        three = f"{kind} = {kind} {kind} {kind}"
        # Instructions newer than GFX8 leave the other half of the register.
        new = {"keeps_high": bits_of(kind) == 16}
        for name, function in _SUMS.items():
            row = operation(two, function, spread=add, wide=function)
            rows[f"v_{name}_{kind}"] = replace(row, keeps_high=kind == "i16")
        rows[f"v_min_{kind}"] = operation(two, np.minimum)
        rows[f"v_max_{kind}"] = operation(two, np.maximum)
        for name, each in (("min", np.minimum), ("max", np.maximum)):
            rows[f"v_{name}3_{kind}"] = operation(three, _chained(each), **new)
        rows[f"v_med3_{kind}"] = operation(three, _median, **new)
        if bits_of(kind) == 16:
            low = {"spread": spreads.of_low_bits}
            multiply_add = operation(three, _multiply_add, wide=_multiply_add, **low)
            rows[f"v_mad_{kind}"] = replace(multiply_add, keeps_high=True)
            rows[f"v_mad_legacy_{kind}"] = multiply_add
    return rows


def _chained(function: Function) -> Function:
    return lambda a, b, c: function(function(a, b), c)


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _shift_a_little(value: Array, amount: Array) -> Array:
    if np.ndim(amount) == 0 and amount == 0:
        return np.asarray(value)
    return value << u64(amount & np.uint32(7))


def _carries() -> dict[str, Semantics]:
    with_carry = "u32 mask = u32 u32 mask"
    first = "u32 mask = u32 u32"
    subtract = _subtract_with_borrow
    carries = {"spread": spreads.of_low_bits_and_carry}
    return {
        "v_add_co_u32": operation(first, _add_with_carry, **carries),
        "v_addc_co_u32": operation(with_carry, _add_with_carry, **carries),
        "v_sub_co_u32": operation(first, subtract, **carries),
        "v_subb_co_u32": operation(with_carry, subtract, **carries),
        "v_subrev_co_u32": operation(first, _reversed(subtract), **carries),
        "v_subbrev_co_u32": operation(
            with_carry, lambda a, b, c: subtract(b, a, c), **carries
        ),
        "v_mad_u64_u32": operation(
            "u64 mask = u32 u32 u64", _multiply_add_u64, **carries
        ),
        "v_mad_i64_i32": operation(
            "i64 mask = i32 i32 i64", _multiply_add_i64, **carries
        ),
        "v_lshl_add_u64": operation(
            "u64 = u64 u32 u64",
            **_pair(spreads.Tracked(_shift_a_little, _LEFT.spread), _SUM),
        ),
    }


def _product_of_24(s: Array, t: Array, a: Array, b: Array) -> Array:
    return spreads.of_low_bits(_low_24(s), _low_24(t), a, b)


def _products() -> dict[str, Semantics]:
    def mul_u24(a: Array, b: Array) -> Array:
        return u32(u64(_low_24(a)) * u64(_low_24(b)))

    def mul_i24(a: Array, b: Array) -> Array:
        product = i64(_sign_extended_24(a)) * i64(_sign_extended_24(b))
        return product.astype(np.int32)

    two = "u32 = u32 u32"
    signed = "i32 = i32 i32"
    return {
        "v_mul_lo_u32": operation(two, np.multiply, spread=spreads.of_low_bits),
        "v_mul_lo_u16": operation(
            "u16 = u16 u16", np.multiply, spread=spreads.of_low_bits
        ),
        "v_mul_hi_u32": operation(two, high_product_u32),
        "v_mul_hi_i32": operation(signed, high_product_i32),
        "v_mul_u32_u24": operation(two, mul_u24, spread=_product_of_24),
        "v_mul_i32_i24": operation(signed, mul_i24),
        "v_mul_hi_u32_u24": operation(
            two, lambda a, b: high_product_u32(_low_24(a), _low_24(b))
        ),
        "v_mul_hi_i32_i24": operation(
            signed,
            lambda a, b: high_product_i32(_sign_extended_24(a), _sign_extended_24(b)),
        ),
        "v_mad_u32_u24": operation(
            "u32 = u32 u32 u32", lambda a, b, c: mul_u24(a, b) + c
        ),
        "v_mad_i32_i24": operation(
            "i32 = i32 i32 i32", lambda a, b, c: mul_i24(a, b) + c
        ),
        "v_mad_u32_u16": operation(
            "u32 = u16 u16 u32", lambda a, b, c: u32(a) * u32(b) + c
        ),
        "v_mad_i32_i16": operation(
            "i32 = i16 i16 i32",
            lambda a, b, c: a.astype(np.int32) * b.astype(np.int32) + c,
        ),
    }


def _counts() -> dict[str, Semantics]:
    return {
        "v_bcnt_u32_b32": operation("u32 = u32 u32", lambda a, b: bit_count(a) + b),
        "v_ffbl_b32": operation("u32 = u32", first_set_from_below),
        "v_ffbh_u32": operation("u32 = u32", first_set_from_above),
        "v_ffbh_i32": operation("u32 = i32", first_unlike_sign),
    }


VECTOR_INTEGERS: dict[str, Semantics] = {
    **_bitwise(),
    **_shifts(),
    **_sums(),
    **_carries(),
    **_products(),
    **_counts(),
    **VECTOR_BYTES,
}
assert all(
    kind in NUMPY or kind == "mask"
    for op in VECTOR_INTEGERS.values()
    for kind in op.sources
)
