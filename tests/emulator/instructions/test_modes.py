"""Rounding and denormals other than IEEE's, held against exact fractions."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from refcomp.emulator.code.assembly import DX10_CLAMP, IEEE_NANS
from refcomp.emulator.execution.program import bind
from refcomp.emulator.instructions.modes import keeps_denormals, rounding_of, towards
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import get, instruction, make_waves, put

_KINDS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_USUAL_NANS = DX10_CLAMP | IEEE_NANS
_ROUNDINGS = {"up": 1, "down": 2, "towards zero": 3}
_EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, math.nan]


def _mode(rounding, denormals=0xF):
    return rounding | rounding << 2 | denormals << 4 | _USUAL_NANS


def _run(waves, line, mode):
    with np.errstate(all="ignore"):
        bind(replace(instruction(line), mode=mode))(waves)


def _operands(kind, count, seed):
    rng, info = np.random.default_rng(seed), np.finfo(kind)
    size = rng.normal(size=(3, count))
    exponents = rng.integers(info.minexp - info.nmant, info.maxexp, (3, count))
    exponents = np.where(rng.integers(0, 2, (3, count)) == 1, exponents, exponents % 6)
    with np.errstate(all="ignore"):
        values = np.ldexp(size, exponents).astype(kind)
    values[0, : len(_EDGES)] = _EDGES
    values[1, : len(_EDGES)] = _EDGES[1:] + _EDGES[:1]
    values[:, 6] = np.finfo(kind).max
    values[1, 7] = -values[0, 7]
    return values


def _rounded(exact, kind, rounding):
    """The float of that type on the wanted side of a fraction other than 0."""
    info = np.finfo(kind)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent = max(exponent - (Fraction(2) ** exponent > size), info.minexp)
    units = size / Fraction(2) ** (exponent - info.nmant)
    is_away = rounding == (1 if exact > 0 else 2)
    whole = math.ceil(units) if is_away else math.floor(units)
    found = Fraction(whole) * Fraction(2) ** (exponent - info.nmant)
    if found > Fraction(float(info.max)):
        found = math.inf if is_away else Fraction(float(info.max))
    return kind(float(found) if exact > 0 else -float(found))


_SUMS = {
    "add": lambda a, b, c: (a, b),
    "sub": lambda a, b, c: (a, -b),
    "fma": lambda a, b, c: (a * b, c),
}


def _exact(name, values):
    """The sum or product as a fraction; None where it is not finite."""
    if not all(map(math.isfinite, values)):
        return None
    a, b, c = map(Fraction, map(float, values))
    return a * b if name == "mul" else sum(_SUMS[name](a, b, c))


@pytest.mark.parametrize("rounding", _ROUNDINGS)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_results_lie_on_the_wanted_side(name, kind, rounding):
    numpy, way = _KINDS[kind], _ROUNDINGS[rounding]
    values = _operands(numpy, 64, len(name))
    waves = make_waves()
    registers = []
    for n in range(3):
        put(waves, 2 * n + 2, values[n])
        registers.append(f"v[{2 * n + 2}:{2 * n + 3}]" if kind == "f64" else f"v{2 * n + 2}")
    put(waves, 0, np.zeros(64, np.uint64))
    result = "v[0:1]" if kind == "f64" else "v0"
    sources = registers[: 3 if name == "fma" else 2]
    _run(waves, f"v_{name}_{kind} {result}, {', '.join(sources)}", _mode(way))
    for lane, found in enumerate(get(waves, 0, kind)):
        exact = _exact(name, values[:, lane] if name == "fma" else [*values[:2, lane], 0.0])
        if exact:
            assert found == _rounded(exact, numpy, way), (values[:, lane], found)


@pytest.mark.parametrize(("rounding", "sign"), [("up", 1.0), ("down", -1.0), ("towards zero", 1.0)])
def test_zeros_have_signs(rounding, sign):
    waves = make_waves(
        v1=np.float32(3.0), v2=np.array([0.0, -0.0] * 32, np.float32), v4=np.float64(-5.0)
    )
    mode = _mode(_ROUNDINGS[rounding])
    _run(waves, "v_sub_f32 v0, v1, v1", mode)
    assert np.copysign(1, get(waves, 0, "f32")[0]) == sign
    _run(waves, "v_add_f32 v0, v2, v2", mode)
    assert np.copysign(1, get(waves, 0, "f32")[:2]).tolist() == [1.0, -1.0]
    _run(waves, "v_fma_f64 v[6:7], v[4:5], 1.0, -v[4:5]", mode)
    assert np.copysign(1, get(waves, 6, "f64")[0]) == sign


def test_conversions_and_scaling():
    waves = make_waves(
        v2=np.full(64, 1 + 2.0**-40),
        v4=np.int32(-(2**24) - 1),
        v5=np.float32(70000.0),
        v6=np.float32(2.0**-126 + 2.0**-149),
    )
    found = {}
    for way in (1, 2, 3):
        for line in (
            "v_cvt_f32_f64 v0, v[2:3]",
            "v_cvt_f32_i32 v0, v4",
            "v_cvt_f16_f32 v0, v5",
            "v_ldexp_f32 v0, v6, -1",
        ):
            _run(waves, line, _mode(way))
            kind = "f16" if "f16" in line else "f32"
            found[line.split()[0], way] = float(get(waves, 0, kind)[0])
    wanted = {
        "v_cvt_f32_f64": [1 + 2.0**-23, 1.0, 1.0],
        "v_cvt_f32_i32": [-(2.0**24), -(2.0**24) - 2, -(2.0**24)],
        "v_cvt_f16_f32": [math.inf, 65504, 65504],
    }
    for name, values in wanted.items():
        assert [found[name, way] for way in (1, 2, 3)] == values
    low = 2.0**-127
    assert [found["v_ldexp_f32", way] for way in (1, 2, 3)] == [low + 2.0**-149, low, low]


def test_numbers_are_scaled_beyond_all_exponents():
    """2 to the power of 2**31 - 1 is no number to compute."""
    waves = make_waves(v2=np.float64(1.5), v4=np.array([2**31 - 1, -(2**31)] * 32, np.int32))
    found = {}
    for way in (1, 2, 3):
        _run(waves, "v_ldexp_f64 v[6:7], v[2:3], v4", _mode(way))
        found[way] = get(waves, 6, "f64")[:2].tolist()
    most, least = np.finfo(np.float64).max, 2.0**-1074
    assert found == {1: [math.inf, least], 2: [most, 0.0], 3: [most, 0.0]}


def test_divisions_end_on_the_wanted_side():
    """The last step, scaled back or not: a tie between two floats."""
    waves = make_waves(
        v1=np.float32(1.0), v2=np.float32(2.0**-24), v4=np.float64(1.0), v6=np.float64(2.0**-53)
    )
    waves.initialise_scalar(106, np.array([0x5], np.uint32))  # lanes 0 and 2
    waves.initialise_scalar(107, np.array([0], np.uint32))
    for way, up in ((1, 1), (2, 0), (3, 0)):
        _run(waves, "v_div_fmas_f32 v0, v2, v1, v1", _mode(way))
        found = get(waves, 0, "f32")[:2].tolist()
        assert found == [(1 + up * 2.0**-23) * 2.0**-64, 1 + up * 2.0**-23]
        _run(waves, "v_div_fmas_f64 v[8:9], v[6:7], v[4:5], v[4:5]", _mode(way))
        found = get(waves, 8, "f64")[:2].tolist()
        assert found == [(1 + up * 2.0**-52) * 2.0**-128, 1 + up * 2.0**-52]
        _run(waves, "v_fma_mix_f32 v0, v2, v1, v1", _mode(way))
        assert get(waves, 0, "f32")[0] == 1 + up * 2.0**-23


def test_constants_are_rounded_too():
    waves = make_waves()
    _run(waves, "v_fma_f64 v[0:1], 1.0, 1.0, 0.15915494309189532", _mode(1))
    up = get(waves, 0, "f64")[0]
    _run(waves, "v_fma_f64 v[0:1], 1.0, 1.0, 0.15915494309189532", _mode(2))
    assert up == np.nextafter(get(waves, 0, "f64")[0], 2)


def test_denormals_of_operands_and_results_become_zeros():
    waves = make_waves()
    tiny = np.float32(2.0**-126)
    put(waves, 1, np.full(64, -tiny / 2))
    put(waves, 2, np.full(64, tiny))
    put(waves, 4, np.full(64, 2.0**-1030))
    put(waves, 8, np.full(64, -tiny / 2))
    for kept, wanted in (
        (0, [-0.0, -0.0]),
        (1, [-tiny, -0.0]),
        (2, [-0.0, -tiny / 2]),
        (3, [-tiny] * 2),
    ):
        _run(waves, "v_mul_f32 v0, 2.0, v1", _mode(0, 0xC | kept))
        _run(waves, "v_mul_f32 v3, -0.5, v2", _mode(0, 0xC | kept))
        found = [get(waves, n, "f32")[0] for n in (0, 3)]
        assert found[0] == wanted[0] and (kept == 3 or found[1] == wanted[1])
        assert np.signbit(found).all()
    _run(waves, "v_cmp_eq_f32 vcc, 0, v1", _mode(0, 0xC))
    assert waves.values.s[106, 0] == 0xFFFFFFFF
    _run(waves, "v_add_f64 v[6:7], v[4:5], 0", _mode(0, 0x3))
    assert get(waves, 6, "f64")[0] == 0
    _run(waves, "v_pk_add_f32 v[6:7], v[8:9], v[8:9] op_sel_hi:[0,0]", _mode(0, 0xC))
    assert get(waves, 6, "f32")[0] == 0 and get(waves, 7, "f32")[0] == 0
    _run(waves, "v_cmp_class_f32 vcc, v1, 16", _mode(0, 0xC))
    assert waves.values.s[106, 0] == 0xFFFFFFFF  # a negative denormal, still


def test_the_fields_of_a_mode():
    assert [rounding_of(0b1001, kind) for kind in ("f16", "f32", "f64")] == [2, 1, 2]
    assert keeps_denormals(0x10, "f32", of_results=False)
    assert not keeps_denormals(0x10, "f32", of_results=True)
    assert keeps_denormals(0x80, "f16", of_results=True)
    assert towards(np.float64(1.5), np.float16(2), "f16", 2) == np.float16(1.999)


def test_what_is_not_known_to_round_otherwise_is_refused():
    for line in ("v_fma_mixlo_f16 v0, v1, v2, v3", "v_dot2_f32_f16 v0, v1, v2, v3"):
        with pytest.raises(Unsupported, match="does not support .* that does not round to nearest"):
            bind(replace(instruction(line), mode=_mode(3)))
    for line in ("v_min_f32 v0, v1, v2", "v_cvt_f32_ubyte0 v0, v1", "v_rndne_f64 v[0:1], v[2:3]"):
        assert bind(replace(instruction(line), mode=_mode(3)))
