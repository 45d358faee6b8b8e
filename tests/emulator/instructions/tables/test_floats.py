"""Vector instructions on floats, each on edge values, in the lanes that are active only."""

import math
from fractions import Fraction

import numpy as np
import pytest

from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.machine.arrays import NUMPY
from tests.emulator.snippets import LANE, get, make_waves, put, run, scalar, set_mask, set_scalar

NAN, INF = math.nan, math.inf
_BITS = 0xA2F9836E4E441529FC2757D1F534DDC0DB629599  # the first 160 of 2/pi


def _compute(line, kind, *operands, result=None):
    """The first lane of v0 after an instruction on v2, v4, v6."""
    waves = make_waves()
    for place, operand in zip((2, 4, 6), operands, strict=False):
        put(waves, place, np.full(64, operand))
    put(waves, 0, np.zeros(64, np.uint64))
    set_mask(waves, LANE % 3 == 0)
    run(waves, line)
    assert (get(waves, 0)[LANE % 3 != 0] == 0).all()
    return get(waves, 0, result or kind)[0]


_F32 = [
    ("v_min_f32 v0, v2, v4", (-0.0, 0.0), -0.0),
    ("v_min_f32 v0, v2, v4", (NAN, 3.0), 3.0),
    ("v_max_f32 v0, v2, v4", (-0.0, 0.0), 0.0),
    ("v_max_f32 v0, v2, v4", (1.0, NAN), 1.0),
    ("v_med3_f32 v0, v2, v4, v6", (3.0, 1.0, 2.0), 2.0),
    ("v_med3_f32 v0, v2, v4, v6", (1.0, 1.0, 2.0), 1.0),
    ("v_med3_f32 v0, v2, v4, v6", (3.0, NAN, 2.0), 2.0),
    ("v_subrev_f32 v0, v2, v4", (1.0, 3.0), 2.0),
    ("v_fract_f32 v0, v2", (-1e-10,), 1 - 2**-24),
    ("v_fract_f32 v0, v2", (2.25,), 0.25),
    ("v_rndne_f32 v0, v2", (2.5,), 2.0),
    ("v_trunc_f32 v0, v2", (-2.7,), -2.0),
    ("v_frexp_mant_f32 v0, v2", (-12.0,), -0.75),
    ("v_frexp_mant_f32 v0, v2", (INF,), INF),
    ("v_exp_f32 v0, v2", (3.0,), 8.0),
    ("v_log_f32 v0, v2", (0.125,), -3.0),
    ("v_rcp_f32 v0, v2", (-0.0,), -INF),
    ("v_rcp_iflag_f32 v0, v2", (4.0,), 0.25),
    ("v_rsq_f32 v0, v2", (16.0,), 0.25),
    ("v_sqrt_f32 v0, v2", (2.25,), 1.5),
    ("v_sin_f32 v0, v2", (0.25,), 1.0),
    ("v_cos_f32 v0, v2", (-0.5,), -1.0),
    ("v_fmac_f32 v0, v2, v4", (3.0, 5.0), 15.0),
    ("v_fmamk_f32 v0, v2, 0x40000000, v4", (3.0, 5.0), 11.0),
    ("v_fmaak_f32 v0, v2, v4, 0x40000000", (3.0, 5.0), 17.0),
    ("v_mul_legacy_f32 v0, v2, v4", (0.0, INF), 0.0),
    ("v_fma_f32 v0, -v2, |v4|, 1.0", (3.0, -5.0), -14.0),
    ("v_add_f32_e64 v0, v2, v4 clamp", (1.0, 2.0), 1.0),
    ("v_max_f32_e64 v0, v2, v2 clamp", (NAN,), 0.0),
]


@pytest.mark.parametrize(("line", "operands", "expected"), _F32)
def test_single_precision(line, operands, expected):
    result = _compute(line, "f32", *map(np.float32, operands))
    assert result == np.float32(expected) and np.signbit(result) == np.signbit(expected)


def test_scaling_by_powers_of_two():
    scaled = _compute("v_ldexp_f32 v0, v2, v4", "f32", np.float32(0.75), np.int32(-148))
    assert scaled == np.float32(2.0**-148)  # a subnormal number, rounded to even
    wide = _compute("v_ldexp_f64 v[0:1], v[2:3], v4", "f64", np.float64(3.0), np.int32(99999))
    assert wide == INF
    half = _compute("v_ldexp_f16 v0, v2, v4", "f16", np.float16(3.0), np.int16(-2))
    assert half == 0.75
    exponent = _compute("v_frexp_exp_i32_f64 v0, v[2:3]", "i32", np.float64(12.0))
    assert exponent == 4


def test_classes():
    values = [NAN, -INF, -1.0, -1e-40, -0.0, 0.0, 1e-40, 1.0, INF]
    told = {1: 0, **{k: k for k in range(2, 10)}}
    for number, value in enumerate(values, 1):
        waves = make_waves(v2=np.float32(value), s4=1 << told.get(number, 1) if number > 1 else 2)
        run(waves, "v_cmp_class_f32_e64 s[6:7], v2, s4")
        assert scalar(waves, 6, "u64") == (1 << 64) - 1, value
        set_scalar(waves, 4, 0x3FF ^ (1 << told[number] if number > 1 else 2))
        run(waves, "v_cmp_class_f32_e64 s[6:7], v2, s4")
        assert scalar(waves, 6, "u64") == 0, value


def test_bits_of_two_over_pi():
    first = _compute("v_trig_preop_f64 v[0:1], v[2:3], 0", "f64", np.float64(1.0))
    second = _compute("v_trig_preop_f64 v[0:1], v[2:3], 1", "f64", np.float64(1.0))
    assert 0 <= 2 / math.pi - first <= 2.0**-53 and 0 < second < 2.0**-53
    assert Fraction(first) + Fraction(second) == Fraction(_BITS >> 54, 1 << 106)


def test_all_operands_may_be_constants():
    waves = make_waves()
    run(waves, "v_fma_f64 v[0:1], 1.0, 1.0, 1.0", "v_trig_preop_f64 v[2:3], 1.0, 0")
    assert (get(waves, 0, "f64") == 2).all()
    assert 0 <= 2 / math.pi - get(waves, 2, "f64")[5] <= 2.0**-53


_NANS = {
    "f16": (0x7D23, 0x7F23),
    "f32": (0xFFA00123, 0xFFE00123),
    "f64": (0xFFF4 << 48, 0xFFFC << 48),
}


@pytest.mark.parametrize("kind", _NANS)
def test_a_signalling_nan_becomes_quiet_however_many_lanes_there_are(kind):
    unsigned = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}[kind]
    signalling, quiet = (unsigned(bits) for bits in _NANS[kind])
    for count in (1, 3, 64, 1000):
        nan = np.full(count, signalling).view(NUMPY[kind])
        one = np.ones(count, NUMPY[kind])
        for name in ("min", "max"):
            function = VECTOR_FLOATS[f"v_{name}_{kind}"].function
            for found in (function(nan, one), function(one, nan), function(nan[0], one)):
                assert (found.view(unsigned) == quiet).all()
            assert (function(np.full(count, quiet).view(one.dtype), one) == 1).all()
        if kind != "f64":
            third = VECTOR_FLOATS[f"v_min3_{kind}"].function
            assert (third(one, one, nan).view(unsigned) == quiet).all()
            assert (third(nan, one, one) == 1).all()  # once quiet, it is left out


def test_fma_of_halves_keeps_the_other_half():
    waves = make_waves(v0=np.uint32(0xABCD0000), v2=np.float16(3.0))
    run(waves, "v_fma_f16 v0, v2, v2, 1.0")
    assert get(waves, 0)[0] == 0xABCD0000 | int(np.float16(10.0).view(np.uint16))
    run(waves, "v_add_f16_e32 v0, v2, v2")
    assert get(waves, 0)[0] == np.float16(6.0).view(np.uint16)


@pytest.mark.parametrize("name", ["fmac", "min3", "max3", "med3"])
def test_others_that_keep_the_other_half(name):
    waves = make_waves(v0=np.uint32(0xABCD4200), v2=np.float16(3.0))
    sources = "v2, v2" if name == "fmac" else "v2, v2, v2"
    run(waves, f"v_{name}_f16 v0, {sources}")
    wanted = np.float16(12.0 if name == "fmac" else 3.0)
    assert get(waves, 0)[0] == 0xABCD0000 | int(wanted.view(np.uint16))
    if name != "fmac":
        run(waves, f"v_{name}_f16 v0, v2, v2, v2 op_sel:[0,0,0,1]")
        assert get(waves, 0)[0] == 0x42004200


def test_what_is_approximate_says_so():
    approximate = {name for name, row in VECTOR_FLOATS.items() if row.is_approximate}
    assert {"v_rcp_f32", "v_exp_f16", "v_sqrt_f64", "v_sin_f32"} <= approximate
    assert not {"v_fma_f32", "v_div_fixup_f64", "v_add_f16"} & approximate
