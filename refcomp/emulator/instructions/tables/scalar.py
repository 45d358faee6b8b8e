"""Scalar instructions: the same for all lanes of a wave; arrays are [wave].

Most of them also write SCC: a carry, an overflow, or whether the result is not 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refcomp.emulator.instructions import spreads
from refcomp.emulator.instructions.operation import Function, Semantics, operation
from refcomp.emulator.instructions.tables.integers import (
    bit_count,
    first_set_from_above,
    first_set_from_below,
    first_unlike_sign,
    high_product_i32,
    high_product_u32,
    i64,
    reverse_bits,
    shift_left,
    shift_right,
    u32,
    u64,
)
from refcomp.emulator.machine.arrays import NUMPY, Array, Mask, bits_of


def _with_nonzero(function: Function) -> Function:
    def computed(*values: Array) -> tuple[Array, Mask]:
        result = function(*values)
        return result, result != 0

    return computed


def _add(a: Array, b: Array, carry: npt.ArrayLike = 0) -> tuple[Array, Mask]:
    total = u64(a) + u64(b) + u64(carry)
    return u32(total), total >> np.uint64(32) != 0


def _subtract(a: Array, b: Array, borrow: npt.ArrayLike = 0) -> tuple[Array, Mask]:
    taken = u64(b) + u64(borrow)
    return u32(u64(a) - taken), u64(a) < taken


def _signed(function: Function) -> Function:
    """Return the function with SCC set on overflow."""

    def computed(a: Array, b: Array) -> tuple[Array, Mask]:
        total = function(i64(a), i64(b))
        result = total.astype(np.int32)
        return result, result != total

    return computed


def _extreme(function: Function) -> Function:
    """Return the minimum or maximum with SCC set where the result is the first operand."""

    def computed(a: Array, b: Array) -> tuple[Array, Mask]:
        result = function(a, b)
        return result, (result == a) & (a != b)

    return computed


def _shifted_sum(amount: int) -> Function:
    def computed(a: Array, b: Array) -> tuple[Array, Mask]:
        total = (u64(a) << np.uint64(amount)) + u64(b)
        return u32(total), total >> np.uint64(32) != 0

    return computed


def _field(value: Array, place: Array) -> Array:
    """Return a field of `value`, sign-extended if the type has a sign.

    The low bits of `place` hold the number of the field's first bit, the bits from 16 on its width.
    Where the field reaches beyond the value, its bits are copies of the value's sign, or 0.
    """
    value = np.asarray(value)
    width = 8 * value.dtype.itemsize
    unsigned = value.view(f"u{value.dtype.itemsize}")
    start = (place & np.uint32(width - 1)).astype(unsigned.dtype)
    count = np.minimum((place >> np.uint32(16)) & np.uint32(127), width).astype(
        np.int64
    )
    ones = np.array([(1 << n) - 1 for n in range(width + 1)], unsigned.dtype)[count]
    moved = np.right_shift(value, start.astype(value.dtype)).view(unsigned.dtype)
    field: Array = moved & ones
    if value.dtype.kind == "i":
        top = (ones >> unsigned.dtype.type(1)) + unsigned.dtype.type(1)
        top = np.where(count == 0, unsigned.dtype.type(0), top)
        field = ((field ^ top) - top).astype(unsigned.dtype)
    return field.view(value.dtype)


def _field_spread(kind: str) -> Function:
    """Return the spread of `_field`: only the bits of the field matter."""

    def spread(s: Array, t: Array, value: Array, place: Array) -> Array:
        moved = _field(s.view(NUMPY[kind]), place).view(s.dtype)
        return np.where(t != 0, ~np.zeros_like(moved), moved)

    return spread


def _ones(kind: str) -> Function:
    """Return the function that makes `count` ones, shifted left by `start`."""
    dtype = NUMPY[kind]
    mask = np.uint32(bits_of(kind) - 1)

    def computed(count: Array, start: Array) -> Array:
        ones = (dtype(1) << dtype(count & mask)) - dtype(1)
        return np.asarray(ones << dtype(start & mask))

    return computed


def _bit(value: Array, number: Array) -> Array:
    width = 8 * np.asarray(value).dtype.itemsize
    amount = (number & np.uint32(width - 1)).astype(np.asarray(value).dtype)
    one = np.asarray(value).dtype.type(1)
    is_set: Mask = (value >> amount) & one == 1
    return is_set


def _set_bit(to: int) -> Function:
    def computed(number: Array, old: Array) -> Array:
        width = 8 * old.dtype.itemsize
        bit = old.dtype.type(1) << (number & np.uint32(width - 1)).astype(old.dtype)
        changed: Array = old | bit if to else old & ~bit
        return changed

    return computed


def _or_inverted(a: Array, b: Array) -> Array:
    return np.bitwise_or(a, ~b)


def _and_inverted(a: Array, b: Array) -> Array:
    return np.bitwise_and(a, ~b)


_LOGIC = {
    "and": spreads.Tracked(np.bitwise_and, spreads.of_and),
    "or": spreads.Tracked(np.bitwise_or, spreads.of_or),
    "xor": spreads.Tracked(np.bitwise_xor, spreads.of_xor),
    "nand": spreads.Tracked(lambda a, b: ~(a & b), spreads.of_and),
    "nor": spreads.Tracked(lambda a, b: ~(a | b), spreads.of_or),
    "xnor": spreads.Tracked(lambda a, b: ~(a ^ b), spreads.of_xor),
    "andn2": spreads.Tracked(_and_inverted, spreads.of_and_inverted),
    "orn2": spreads.Tracked(_or_inverted, spreads.of_or_inverted),
}


def _logic() -> dict[str, Semantics]:
    rows = {}
    for kind, bits in (("u32", "b32"), ("u64", "b64")):
        two = f"{kind} scc = {kind} {kind}"
        for name, (function, spread) in _LOGIC.items():
            rows[f"s_{name}_{bits}"] = operation(
                two, _with_nonzero(function), spread=spread
            )
        one = f"{kind} scc = {kind}"
        rows[f"s_not_{bits}"] = operation(
            one, _with_nonzero(np.invert), spread=spreads.of_copy
        )
        rows[f"s_mov_{bits}"] = operation(
            f"{kind} = {kind}", np.copy, spread=spreads.of_copy
        )
        rows[f"s_brev_{bits}"] = operation(f"{kind} = {kind}", reverse_bits)
        rows[f"s_cselect_{bits}"] = operation(
            f"{kind} = {kind} {kind}; scc",
            lambda a, b, c: np.where(c, a, b),
            spread=lambda s, t, u, a, b, c: spreads.of_choice(t, s, u, b, a, c),
        )
        rows[f"s_cmov_{bits}"] = operation(
            f"{kind} = {kind}; scc result",
            lambda a, c, old: np.where(c, a, old),
            spread=lambda s, u, t, a, c, old: spreads.of_choice(t, s, u, old, a, c),
        )
        for to in (0, 1):
            rows[f"s_bitset{to}_{bits}"] = operation(
                f"{kind} = u32; result", _set_bit(to)
            )
            rows[f"s_bitcmp{to}_{bits}"] = operation(f"scc = {kind} u32", _bit_is(to))
    return rows


def _bit_is(to: int) -> Function:
    return lambda value, number: _bit(value, number) == bool(to)


def _shifts() -> dict[str, Semantics]:
    rows = {}
    for bits in (32, 64):
        for name, kind, function in (
            ("lshl_b", "u", shift_left),
            ("lshr_b", "u", shift_right),
            ("ashr_i", "i", shift_right),
        ):
            signature = f"{kind}{bits} scc = {kind}{bits} u32"
            by_shift = spreads.by_shift if kind == "u" else spreads.by_signed_shift
            spread = by_shift(function, 1)
            rows[f"s_{name}{bits}"] = operation(
                signature, _with_nonzero(function), spread=spread
            )
        for kind in "ui":
            one = f"{kind}{bits} scc = {kind}{bits} u32"
            spread = _field_spread(f"{kind}{bits}")
            rows[f"s_bfe_{kind}{bits}"] = operation(
                one, _with_nonzero(_field), spread=spread
            )
    rows["s_bfm_b32"] = operation("u32 = u32 u32", _ones("u32"))
    rows["s_bfm_b64"] = operation("u64 = u32 u32", _ones("u64"))
    return rows


def _extension(narrow: type[np.signedinteger]) -> Semantics:
    def extended(a: Array) -> Array:
        return a.astype(narrow).astype(np.int32)

    return operation("i32 = u32", extended, spread=spreads.by_extension(extended))


def _sums() -> dict[str, Semantics]:
    two = "u32 scc = u32 u32"
    signed = "i32 scc = i32 i32"
    with_carry = "u32 scc = u32 u32; scc"
    low = {"spread": spreads.of_low_bits}
    rows = {
        "s_add_u32": operation(two, _add, **low),
        "s_sub_u32": operation(two, _subtract, **low),
        "s_addc_u32": operation(with_carry, _add, **low),
        "s_subb_u32": operation(with_carry, _subtract, **low),
        "s_add_i32": operation(signed, _signed(np.add), **low),
        "s_sub_i32": operation(signed, _signed(np.subtract), **low),
        "s_addk_i32": operation("i32 scc = i32; result", _signed(np.add)),
        "s_mulk_i32": operation("i32 = i32; result", np.multiply),
        "s_mul_i32": operation("u32 = u32 u32", np.multiply, **low),
        "s_mul_hi_u32": operation("u32 = u32 u32", high_product_u32),
        "s_mul_hi_i32": operation("i32 = i32 i32", high_product_i32),
        "s_abs_i32": operation("i32 scc = i32", _with_nonzero(np.abs)),
        "s_absdiff_i32": operation(signed, _with_nonzero(lambda a, b: np.abs(a - b))),
        "s_sext_i32_i8": _extension(np.int8),
        "s_sext_i32_i16": _extension(np.int16),
        "s_movk_i32": operation("i32 = i32", np.copy),
        "s_cmovk_i32": operation(
            "i32 = i32; scc result", lambda a, c, o: np.where(c, a, o)
        ),
    }
    for amount in (1, 2, 3, 4):
        rows[f"s_lshl{amount}_add_u32"] = operation(two, _shifted_sum(amount))
    for kind in ("i32", "u32"):
        signature = f"{kind} scc = {kind} {kind}"
        rows[f"s_min_{kind}"] = operation(signature, _extreme(np.minimum))
        rows[f"s_max_{kind}"] = operation(signature, _extreme(np.maximum))
    return rows


def _counts() -> dict[str, Semantics]:
    rows = {
        "s_flbit_i32": operation("u32 = i32", first_unlike_sign),
        "s_flbit_i32_i64": operation("u32 = i64", first_unlike_sign),
    }
    for kind, bits in (("u32", "b32"), ("u64", "b64")):
        one = f"u32 = {kind}"
        counted = f"u32 scc = {kind}"
        rows[f"s_bcnt1_i32_{bits}"] = operation(counted, _with_nonzero(bit_count))
        rows[f"s_bcnt0_i32_{bits}"] = operation(
            counted, _with_nonzero(lambda a: bit_count(~a))
        )
        rows[f"s_ff1_i32_{bits}"] = operation(one, first_set_from_below)
        rows[f"s_ff0_i32_{bits}"] = operation(one, lambda a: first_set_from_below(~a))
        rows[f"s_flbit_i32_{bits}"] = operation(one, first_set_from_above)
    return rows


def _quads(value: Array) -> Array:
    """Return, for every four bits, a one at the lowest if any of the four is set."""
    value = np.asarray(value)
    one = value.dtype.type(1)
    either = value | value >> one
    either = either | either >> value.dtype.type(2)
    lowest = 0x1111111111111111 & (1 << 8 * value.itemsize) - 1
    quads: Array = either & value.dtype.type(lowest)
    return quads


def _gathered(value: Array) -> Array:
    """Return the result of `_quads` with one bit for every four, side by side."""
    quads = _quads(value)
    kind = quads.dtype.type
    result = np.zeros_like(quads)
    for number in range(2 * quads.itemsize):
        result = result | (quads >> kind(4 * number) & kind(1)) << kind(number)
    return result


def _doubled(value: Array) -> Array:
    """Return a number of 64 bits that holds each of the 32 bits twice, side by side."""
    value = u64(value)
    result = np.zeros(np.shape(value), np.uint64)
    for number in range(32):
        bit = value >> np.uint64(number) & np.uint64(1)
        result = result | bit * np.uint64(3) << np.uint64(2 * number)
    return result


def _quad_rows() -> dict[str, Semantics]:
    rows = {"s_bitreplicate_b64_b32": operation("u64 = u32", _doubled)}
    for kind, bits in (("u32", "b32"), ("u64", "b64")):
        one = f"{kind} scc = {kind}"
        rows[f"s_quadmask_{bits}"] = operation(one, _with_nonzero(_gathered))
        rows[f"s_wqm_{bits}"] = operation(
            one, _with_nonzero(lambda a: _quads(a) * a.dtype.type(15))
        )
    return rows


def _packs() -> dict[str, Semantics]:
    low = np.uint32(0xFFFF)
    high = np.uint32(16)
    rows = {
        "ll": lambda a, b: (a & low) | (b << high),
        "lh": lambda a, b: (a & low) | (b & ~low),
        "hh": lambda a, b: (a >> high) | (b & ~low),
    }
    return {
        f"s_pack_{n}_b32_b16": operation("u32 = u32 u32", f) for n, f in rows.items()
    }


_COMPARED: dict[str, Function] = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def _comparisons() -> dict[str, Semantics]:
    rows = {}
    for name, function in _COMPARED.items():
        for kind in ("i32", "u32", "u64"):
            rows[f"s_cmp_{name}_{kind}"] = operation(f"scc = {kind} {kind}", function)
            rows[f"s_cmpk_{name}_{kind}"] = operation(f"scc = {kind} {kind}", function)
    return rows


SCALAR: dict[str, Semantics] = {
    **_logic(),
    **_shifts(),
    **_sums(),
    **_counts(),
    **_packs(),
    **_quad_rows(),
    **_comparisons(),
}
# Mnemonic -> the new EXEC, computed from the old EXEC (`mask`) and the source. The instruction's
# result is the old EXEC.
SAVE_EXEC: dict[str, Function] = {
    "s_and_saveexec_b64": lambda mask, a: a & mask,
    "s_or_saveexec_b64": lambda mask, a: a | mask,
    "s_xor_saveexec_b64": lambda mask, a: a ^ mask,
    "s_andn2_saveexec_b64": lambda mask, a: a & ~mask,
    "s_orn2_saveexec_b64": lambda mask, a: a | ~mask,
    "s_nand_saveexec_b64": lambda mask, a: ~(a & mask),
    "s_nor_saveexec_b64": lambda mask, a: ~(a | mask),
    "s_xnor_saveexec_b64": lambda mask, a: ~(a ^ mask),
    "s_andn1_saveexec_b64": lambda mask, a: ~a & mask,
    "s_orn1_saveexec_b64": lambda mask, a: ~a | mask,
}
