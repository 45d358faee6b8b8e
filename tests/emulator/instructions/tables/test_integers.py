"""Vector instructions on integers, held against Python's own, on edge values."""

from inspect import signature

import numpy as np
import pytest

from tests.emulator.snippets import (
    LANE,
    get,
    make_waves,
    put,
    run,
    scalar,
    set_mask,
    set_scalar,
    undefined,
)

_EDGES = [0, 1, 2, 16, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678]
_M = 0xFFFFFFFF


def _signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


def _field(x, start, width):
    return x >> (start & 31) & ((1 << (width & 31)) - 1)


def _signed_field(x, start, width):
    width &= 31
    return _signed(_signed(x) >> (start & 31) & (1 << width) - 1, width) if width else 0


def _lead(x):
    return 32 - x.bit_length() if x else _M


# Rows that no ledger compares, or that drop bits which no compared kernel sets: those above a
# shift's amount, a field or a factor.
_ROWS = {
    "v_mul_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24": lambda a, b: _signed(a & 0xFFFFFF, 24) * _signed(b & 0xFFFFFF, 24),
    "v_mul_hi_u32_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
    "v_mul_hi_i32_i24": lambda a, b: _signed(a & 0xFFFFFF, 24) * _signed(b & 0xFFFFFF, 24) >> 32,
    "v_lshlrev_b32": lambda a, b: b << (a & 31),
    "v_lshrrev_b32": lambda a, b: b >> (a & 31),
    "v_ashrrev_i32": lambda a, b: _signed(b) >> (a & 31),
    "v_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "v_mul_lo_u16": lambda a, b: a * b & 0xFFFF,
    "v_sub_u16": lambda a, b: a - b & 0xFFFF,
    "v_ashrrev_i16": lambda a, b: _signed(b & 0xFFFF, 16) >> (a & 15) & 0xFFFF,
    "v_max_i16": lambda a, b: max(_signed(a & 0xFFFF, 16), _signed(b & 0xFFFF, 16)) & 0xFFFF,
    "v_lshl_or_b32": lambda a, b, c: a << (b & 31) | c,
    "v_lshl_add_u32": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32": lambda a, b, c: (a + b & _M) << (c & 31),
    "v_bfe_u32": _field,
    "v_bfe_i32": _signed_field,
    "v_alignbit_b32": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_mad_u32_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_ffbh_u32": _lead,
    "v_ffbl_b32": lambda a: (a & -a).bit_length() - 1 if a else _M,
    "v_ffbh_i32": lambda a: _lead(a if not a >> 31 else ~a & _M),
}


@pytest.mark.parametrize("name", _ROWS)
def test_agrees_with_python(name):
    function = _ROWS[name]
    count = len(signature(function).parameters)
    grids = [grid.ravel() for grid in np.meshgrid(*[_EDGES] * count)]
    for start in range(0, len(grids[0]), 64):
        operands = [np.resize(grid[start : start + 64], 64).astype(np.uint32) for grid in grids]
        waves = make_waves(v0=np.uint32(77))
        for place, operand in zip((1, 2, 3), operands, strict=False):
            put(waves, place, operand)
        set_mask(waves, LANE % 5 != 1)
        run(waves, f"{name} v0, " + ", ".join(["v1", "v2", "v3"][:count]))
        wanted = [function(*map(int, column)) & _M for column in zip(*operands, strict=True)]
        expected = np.where(LANE % 5 != 1, wanted, 77)
        assert (get(waves, 0) == expected).all()


def test_the_sign_follows_a_field_that_ends_beyond_the_value():
    waves = make_waves(v1=np.uint32(0x80000000))
    run(waves, "v_bfe_i32 v0, v1, 16, 31", "v_bfe_i32 v2, v5, 28, 8")
    assert get(waves, 0)[0] == 0xFFFF8000
    assert undefined(waves, 2)[0] == 0xFFFFFFFF


def test_carries_travel_through_masks():
    waves = make_waves(v1=np.uint32(0xFFFFFFFF), v2=np.where(LANE < 8, 1, 0).astype(np.uint32))
    run(waves, "v_add_co_u32_e32 v3, vcc, v1, v2", "v_addc_co_u32_e32 v4, vcc, 5, v2, vcc")
    assert get(waves, 3)[7:9].tolist() == [0, 0xFFFFFFFF]
    assert get(waves, 4)[7:9].tolist() == [7, 5] and scalar(waves, 106, "u64") == 0
    run(waves, "v_sub_co_u32_e64 v3, s[4:5], v2, 1", "v_subb_co_u32_e64 v4, s[4:5], 0, 0, s[4:5]")
    assert scalar(waves, 4, "u64") == (1 << 64) - 256 and get(waves, 4)[9] == 0xFFFFFFFF


def test_wide_products_and_sums():
    waves = make_waves(v2=np.uint64((1 << 63) - 1), s4=0xFFFFFFFF)
    run(waves, "v_mad_u64_u32 v[0:1], s[6:7], s4, s4, v[2:3]")
    wanted = 0xFFFFFFFF**2 + (1 << 63) - 1
    assert get(waves, 0, "u64")[0] == wanted & (1 << 64) - 1
    assert (scalar(waves, 6, "u64") != 0) == (wanted >> 64 != 0)
    run(waves, "v_lshl_add_u64 v[0:1], v[2:3], 1, v[2:3]")
    assert get(waves, 0, "u64")[0] == 3 * ((1 << 63) - 1) & (1 << 64) - 1
    set_scalar(waves, 8, 65)
    run(waves, "v_lshlrev_b64 v[0:1], s8, v[2:3]", "v_ashrrev_i64 v[2:3], 62, v[0:1]")
    assert get(waves, 2, "i64")[0] == -1


def test_a_signed_sum_has_sixty_five_bits():
    edges = [0, 1, -1, -(1 << 31), (1 << 31) - 1]
    for a in edges:
        for b in edges:
            for c in (0, 1, -1, (1 << 63) - 1, -(1 << 63)):
                waves = make_waves(s4=a & _M, v4=np.int32(b), v2=np.int64(c))
                run(waves, "v_mad_i64_i32 v[0:1], s[6:7], s4, v4, v[2:3]")
                wanted = a * b + c
                assert get(waves, 0, "u64")[0] == wanted & (1 << 64) - 1
                assert scalar(waves, 6) & 1 == wanted >> 64 & 1, (a, b, c)


def test_bytes_are_permuted():
    waves = make_waves(v1=np.uint32(0x88776655), v2=np.uint32(0x44332211))
    for selector, wanted in ((0x07000401, 0x88115522), (0x0C0D0B08, 0x00FFFF00)):
        set_scalar(waves, 4, selector)
        run(waves, "v_perm_b32 v0, v1, v2, s4")
        assert get(waves, 0)[0] == wanted


def test_sums_may_saturate():
    waves = make_waves(v1=np.uint32(5))
    run(waves, "v_sub_u32_e64 v0, v1, 9 clamp", "v_add_u16_e64 v2, v1, -1 clamp")
    assert (get(waves, 0)[0], get(waves, 2)[0]) == (0, 0xFFFF)


def test_bits_that_do_not_matter_may_be_undefined():
    waves = make_waves(v1=np.uint32(0xFF))
    run(waves, "v_and_b32_e32 v2, v1, v5", "v_lshlrev_b32_e32 v3, 24, v5")
    assert undefined(waves, 2)[0] == 0xFF and undefined(waves, 3)[0] == 0xFF000000
    run(waves, "v_add_u32_e32 v4, v2, v1", "v_min_u32_e32 v6, v2, v1")
    assert undefined(waves, 4)[0] == 0xFFFFFFFF and undefined(waves, 6)[0] == 0xFFFFFFFF
    set_scalar(waves, 4, 0, 2)
    run(waves, "v_cndmask_b32_e64 v7, 3, v5, s[4:5]", "v_bfi_b32 v8, v1, v1, v5")
    assert undefined(waves, 7)[0] == 0 and undefined(waves, 8)[0] == 0xFFFFFF00


@pytest.mark.parametrize("name", ["min3_u16", "max3_i16", "med3_u16", "add_i16", "sub_i16"])
def test_sums_and_medians_of_sixteen_bits_keep_the_other_half(name):
    waves = make_waves(v0=np.uint32(0xABCD1234))
    sources = "7, 7, 7" if "3" in name else "7, 0"
    run(waves, f"v_{name} v0, {sources}", f"v_{name} v1, {sources} op_sel:[0,0,0,1]")
    assert get(waves, 0)[0] == 0xABCD0007
    assert (get(waves, 1)[0] >> 16, undefined(waves, 1)[0]) == (7, 0xFFFF)
