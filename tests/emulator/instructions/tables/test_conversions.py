"""Conversions and comparisons on edge values."""

import math

import numpy as np
import pytest

from tests.emulator.snippets import LANE, get, make_waves, run, scalar, set_mask

_CASES = [
    ("v_cvt_i32_f32 v0, v2", np.float32(-2.9), "i32", -2),
    ("v_cvt_i32_f32 v0, v2", np.float32(3e9), "i32", 2**31 - 1),
    ("v_cvt_i32_f32 v0, v2", np.float32(math.nan), "i32", 0),
    ("v_cvt_u32_f32 v0, v2", np.float32(-1.0), "u32", 0),
    ("v_cvt_u32_f32 v0, v2", np.float32(math.inf), "u32", 2**32 - 1),
    ("v_cvt_u32_f64 v0, v[2:3]", np.float64(2**32 - 1.5), "u32", 2**32 - 2),
    ("v_cvt_i32_f64 v0, v[2:3]", np.float64(-math.inf), "i32", -(2**31)),
    ("v_cvt_f32_u32 v0, v2", np.uint32(2**32 - 1), "f32", 2.0**32),
    ("v_cvt_f32_i32 v0, v2", np.int32(-3), "f32", -3.0),
    ("v_cvt_f64_i32 v[0:1], v2", np.int32(-3), "f64", -3.0),
    ("v_cvt_f16_f32 v0, v2", np.float32(65520.0), "f16", math.inf),
    ("v_cvt_f16_f32 v0, v2", np.float32(2.0**-25 * 1.5), "f16", 2.0**-24),
    ("v_cvt_f32_f16 v0, v2", np.float16(0.1), "f32", np.float16(0.1)),
    ("v_cvt_f32_f64 v0, v[2:3]", np.float64(1 + 2.0**-25), "f32", 1.0),
    ("v_cvt_i16_f16 v0, v2", np.float16(40000.0), "i16", 32767),
    ("v_cvt_f16_u16 v0, v2", np.uint16(65535), "f16", math.inf),
    ("v_cvt_f32_ubyte2 v0, v2", np.uint32(0x12345678), "f32", 0x34),
    ("v_cvt_flr_i32_f32 v0, v2", np.float32(-0.5), "i32", -1),
    ("v_cvt_rpi_i32_f32 v0, v2", np.float32(2.5), "i32", 3),
    ("v_cvt_norm_i16_f16 v0, v2", np.float16(-2.0), "i16", -32767),
    ("v_cvt_norm_u16_f16 v0, v2", np.float16(0.5), "u16", 32768),
    ("v_cvt_off_f32_i4 v0, v2", np.uint32(0xF8), "f32", -0.5),
    ("v_cvt_off_f32_i4 v0, v2", np.uint32(7), "f32", 0.4375),
    ("v_sat_pk_u8_i16 v0, v2", np.uint32(0xFFFF_0100), "u32", 0x00FF),
    ("v_cvt_f32_fp8_sdwa v0, v2 src0_sel:BYTE_2", np.uint32(0xFF48_FFFF), "f32", 2.0),
    ("v_cvt_f32_bf8_e32 v0, v2", np.uint32(0xFFFF_FF44), "f32", 2.0),
    ("v_cvt_pk_f32_fp8_sdwa v[0:1], v2 src0_sel:WORD_1", np.uint32(0xC840_0000), "f32", 1.0),
    ("v_cvt_pk_fp8_f32 v0, -v2, |v2|", np.float32(-2.0), "u32", 0x4848),
    ("v_cvt_pk_bf8_f32 v0, v2, v2", np.float32(1e9), "u32", 0x8080),
]


@pytest.mark.parametrize(("line", "operand", "kind", "expected"), _CASES)
def test_conversions(line, operand, kind, expected):
    waves = make_waves(v0=np.uint32(0), v2=np.full(64, operand))
    run(waves, line)
    assert get(waves, 0, kind)[0] == expected


def test_pairs_of_bytes_go_to_halves():
    waves = make_waves(v0=np.uint32(0x12345678), v2=np.float32(1.0))
    run(waves, "v_cvt_pk_fp8_f32 v0, v2, 2.0 op_sel:[0,0,1]")
    assert get(waves, 0)[0] == 0x48405678
    run(waves, "v_cvt_pk_f32_bf8_e32 v[4:5], v0")
    low, high = (get(waves, n, "f32")[0] for n in (4, 5))
    assert (low, high) == (2.0**14, 2.0**5 * 1.5)


def test_pairs():
    waves = make_waves(v2=np.float32(65535.0), v3=np.float32(-1 - 2.0**-11))
    run(waves, "v_cvt_pkrtz_f16_f32 v0, v2, v3")
    halves = get(waves, 0).view(np.float16)[:2]
    assert halves.tolist() == [65504.0, -1.0]
    run(waves, "v_pack_b32_f16 v0, v2, v3", "v_cvt_pk_i16_i32 v1, v2, v3")
    assert get(waves, 0)[0] == (
        0x3F800000 & 0 | 0xFF00 | (np.float32(-1 - 2.0**-11).view(np.uint32) & 0xFFFF) << 16
    )
    assert get(waves, 1)[0] == 0x7FFF | 0x8000 << 16


_NUMBERS = [-math.inf, -1.0, 0.0, 1.0, math.nan]
_PREDICATES = {
    **{"lt": lambda a, b: a < b, "eq": lambda a, b: a == b, "le": lambda a, b: a <= b},
    **{"gt": lambda a, b: a > b, "ge": lambda a, b: a >= b},
    **{"lg": lambda a, b: a < b or a > b, "neq": lambda a, b: a != b},
    **{"nlt": lambda a, b: not a < b, "nge": lambda a, b: not a >= b},
    **{"o": lambda a, b: a == a and b == b, "u": lambda a, b: a != a or b != b},
}


@pytest.mark.parametrize("name", _PREDICATES)
def test_comparisons_of_floats(name):
    a, b = (np.resize(grid.ravel(), 64) for grid in np.meshgrid(_NUMBERS, _NUMBERS))
    waves = make_waves(v2=a.astype(np.float32), v4=b.astype(np.float32))
    set_mask(waves, LANE < 25)
    run(waves, f"v_cmp_{name}_f32_e32 vcc, v2, v4")
    wanted = [_PREDICATES[name](x, y) for x, y in zip(a, b, strict=True)]
    assert scalar(waves, 106, "u64") == sum(1 << k for k in range(25) if wanted[k])


def test_comparisons_of_integers():
    waves = make_waves(v2=np.int32(-1))
    run(waves, "v_cmp_lt_i32_e64 s[2:3], v2, 0", "v_cmp_lt_u32_e64 s[4:5], v2, 0")
    run(waves, "v_cmp_ne_u16_e64 s[6:7], v2, -1")
    assert [scalar(waves, n, "u64") for n in (2, 4, 6)] == [(1 << 64) - 1, 0, 0]


def test_comparisons_that_are_always_or_never_true():
    waves = make_waves()
    set_mask(waves, LANE < 8)
    run(waves, "v_cmp_tru_f32_e64 s[4:5], 0, 0", "v_cmp_f_i64_e32 vcc, 0, v[0:1]")
    assert (scalar(waves, 4, "u64"), scalar(waves, 106, "u64")) == (0xFF, 0)
