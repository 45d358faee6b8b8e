"""Conversions of edge values, against Python's integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.edges import floats, integers, signed
from tests.emulator.ptx.instructions.exact_floats import FORMATS, rounded
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
WHOLE = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def _limits(kind: str) -> tuple[int, int]:
    width = int(kind[1:])
    return (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)


def _sources(kind: str) -> tuple[np.ndarray, list[int]]:
    width = int(kind[1:])
    words = integers(width, 30)
    numbers = [signed(x, width) if kind[0] == "s" else x for x in words]
    return np.array(words, f"u{width // 8}"), numbers


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", INTEGERS)
def test_integers_are_cut_off_extended_or_clamped(result: str, source: str) -> None:
    words, numbers = _sources(source)
    mask = (1 << int(result[1:])) - 1
    assert bits(run(f"cvt.{result}.{source} d, a", words)) == [x & mask for x in numbers]
    low, high = _limits(result)
    least, most = _limits(source)
    if low <= least and most <= high:
        return  # PTX has no .sat where all numbers fit
    clamped = [max(low, min(high, x)) & mask for x in numbers]
    assert bits(run(f"cvt.sat.{result}.{source} d, a", words)) == clamped


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("result", INTEGERS)
def test_floats_are_rounded_to_integers_and_clamped(result: str, source: str) -> None:
    if source == "bf16" and result in ("u8", "s8"):
        return  # PTX does not have them
    form = FORMATS[source]
    low, high = _limits(result)
    limits = [Fraction(x) + y for x in (low, high) for y in (-1, Fraction(-1, 2), 0, 1)]
    words = [*floats(form, 30), *(rounded(x, form, "rz") for x in limits)]
    mask = (1 << int(result[1:])) - 1
    is_wide = "64" in result or "64" in source
    for mode, whole in WHOLE.items():
        found = bits(
            run(f"cvt.{mode}.{result}.{source} d, a", np.array(words, f"u{form.width // 8}"))
        )
        for word, number in zip(words, found, strict=True):
            value = form.value(word)
            if form.is_nan(word):
                expected = (mask + 1) // 2 if is_wide else 0
            elif value is None:
                expected = low if word & form.sign else high
            else:
                expected = max(low, min(high, whole(value)))
            assert number == expected & mask, (mode, hex(word))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("result", FLOATS)
def test_integers_become_floats_rounded_once(result: str, source: str, mode: str) -> None:
    if result == "bf16" and source in ("u8", "s8"):
        return  # PTX does not have them
    words, numbers = _sources(source)
    found = bits(run(f"cvt.{mode}.{result}.{source} d, a", words))
    assert found == [rounded(Fraction(x), FORMATS[result], mode) for x in numbers]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("result", FLOATS)
def test_floats_become_other_floats_rounded_once(result: str, source: str, mode: str) -> None:
    form, kind = FORMATS[source], FORMATS[result]
    words = floats(form, 60)
    is_exact = form.exponent <= kind.exponent and form.mantissa <= kind.mantissa
    rounding = "" if is_exact else f".{mode}"
    text = f"cvt{rounding}.{result}.{source} d, a"
    found = bits(run(text, np.array(words, f"u{form.width // 8}")))
    for word, number in zip(words, found, strict=True):
        value = form.value(word)
        if form.is_nan(word):
            assert kind.is_nan(number)
            assert result == "f64" or number == kind.plain_nan
        elif value is None:
            assert number & ~kind.sign == kind.infinity
        elif value == 0:
            assert number == (kind.sign if word & form.sign else 0)
        else:
            expected = rounded(value, kind, mode)
            assert number == (expected or 0) | (kind.sign if value < 0 else 0), hex(word)


def test_widening_and_whole_numbers_need_no_rounding() -> None:
    assert run("cvt.f32.f16 d, a", [1.5]).tolist() == [1.5]
    assert run("cvt.f64.f32 d, a", [1.5]).tolist() == [1.5]
    assert run("cvt.f32.bf16 d, a", [0x3FC0]).tolist() == [1.5]
    assert bits(run("cvt.rni.f32.f32 d, a", [2.5, -0.25])) == [0x40000000, 0x80000000]
    assert run("cvt.rpi.f64.f64 d, a", [2.5]).tolist() == [3]
    assert run("cvt.sat.f32.f32 d, a", [2.5, math.nan]).tolist() == [1, 0]


def test_ftz_flushes_f32_on_both_sides() -> None:
    tiny = np.array([1], np.uint32)
    assert run("cvt.ftz.f64.f32 d, a", tiny).tolist() == [0]
    assert run("cvt.rpi.s32.f32 d, a", tiny).tolist() == [1]
    assert run("cvt.rpi.ftz.s32.f32 d, a", tiny).tolist() == [0]
    assert bits(run("cvt.rn.ftz.f32.f64 d, a", [1e-40, 1.0])) == [0, 0x3F800000]
    assert bits(run("cvt.rn.f32.f64 d, a", [1e-40])) == [71362]


def test_floats_are_saturated() -> None:
    assert run("cvt.rn.sat.f16.f32 d, a", [-1, 0.5, 3]).tolist() == [0, 0.5, 1]
    assert run("cvt.sat.f64.f32 d, a", [-1, 0.5, 3]).tolist() == [0, 0.5, 1]
    assert run("cvt.rn.sat.f32.s32 d, a", [-1, 0, 3]).tolist() == [0, 0, 1]


def test_relu_and_satfinite() -> None:
    given = [-1, math.inf, -math.inf, math.nan]
    assert bits(run("cvt.rn.relu.f16.f32 d, a", given)) == [0, 0x7C00, 0, 0x7FFF]
    assert bits(run("cvt.rn.satfinite.f16.f32 d, a", given)) == [0xBC00, 0x7BFF, 0xFBFF, 0x7FFF]
    assert bits(run("cvt.rn.satfinite.bf16.f32 d, a", given)) == [0xBF80, 0x7F7F, 0xFF7F, 0x7FFF]
    assert bits(run("cvt.rn.satfinite.relu.f16.f32 d, a", given)) == [0, 0x7BFF, 0, 0x7FFF]


def test_undefined_bits_are_cut_off_and_extended() -> None:
    assert undefined("cvt.u8.u32 d, a", [5], [0xFFFFFF00]) == 0
    assert undefined("cvt.s32.s8 d, a", [5], [0x80]) == 0xFFFFFF80
    assert undefined("cvt.u32.u8 d, a", [5], [0x80]) == 0x80


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cvt.f32 d, a", "cvt needs the type of its result and that of its source"),
        ("cvt.s32.f32 d, a", "cvt of .f32 to .s32 needs a rounding, such as .rzi"),
        ("cvt.f16.f32 d, a", "cvt of .f32 to .f16 needs a rounding, such as .rn"),
        ("cvt.f32.s32 d, a", "cvt needs one of .rn, .rz, .rm, .rp"),
        ("cvt.rn.f16x2.f64 d, a", "cvt does not make .f16x2 of .f64"),
        ("cvt.f16.f16 d, a, b", "cvt has 3 operands here, and needs 2"),
        ("cvt.rn.f32.f32 d, a", "cvt does not have the modifier .rn with .f32"),
        ("cvt.rni.f16.f32 d, a", "cvt of .f32 to .f16 needs a rounding, such as .rn"),
        ("cvt.rn.ftz.f16.f64 d, a", "cvt does not have the modifier .ftz with .f64"),
        ("cvt.rn.sat.bf16.f32 d, a", "cvt does not have the modifier .sat with .f32"),
        ("cvt.rn.relu.f16.f64 d, a", "cvt does not have the modifier .relu with .f64"),
        ("cvt.sat.s32.s16 d, a", "cvt does not have the modifier .sat with .s16"),
        ("cvt.rn.bf16.u8 d, a", "cvt does not make .bf16 of .u8"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)
