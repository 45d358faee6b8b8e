"""Modifiers and special values of f32 and f64. Rounding is tested in test_rounding.py."""

import math

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.edges import floats, grid
from tests.emulator.ptx.instructions.exact_floats import F32
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined

NAN = 0x7FFFFFFF
TINY = 0x00000001  # the least denormal
LEAST = 0x00800000  # the least normal number


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def words(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint32)


def test_sum_rounds_to_nearest_unless_told_otherwise() -> None:
    one, half = f32(1), words(0x33800000)  # half of the last bit of 1
    assert bits(run("add.f32 d, a, b", one, half)) == [0x3F800000]
    assert bits(run("add.rn.f32 d, a, b", one, half)) == [0x3F800000]
    assert bits(run("add.rp.f32 d, a, b", one, half)) == [0x3F800001]
    assert bits(run("sub.rm.f32 d, a, b", one, half)) == [0x3F7FFFFF]
    assert bits(run("sub.rm.f32 d, a, b", one, one)) == [0x80000000]


def test_nan_of_f32_is_the_one_of_gpus() -> None:
    payload = words(0xFFC12345)
    for text in ("add.f32 d, a, b", "sub.f32 d, a, b", "mul.rz.f32 d, a, b", "div.rn.f32 d, a, b"):
        assert bits(run(text, payload, f32(1))) == [NAN], text
    assert bits(run("sub.f32 d, a, b", f32(math.inf), f32(math.inf))) == [NAN]
    assert bits(run("sqrt.rn.f32 d, a", f32(-1))) == [NAN]
    assert bits(run("fma.rn.f32 d, a, b, c", f32(0), f32(math.inf), f32(1))) == [NAN]


def test_ftz_flushes_operands_and_results() -> None:
    tiny = words(TINY, TINY | 1 << 31)
    assert bits(run("add.f32 d, a, b", tiny, words(0, 0))) == [TINY, TINY | 1 << 31]
    assert bits(run("add.ftz.f32 d, a, b", tiny, tiny)) == [0, 1 << 31]
    half = f32(0.5, -0.5)
    least = words(LEAST, LEAST)
    assert bits(run("mul.f32 d, a, b", least, half)) == [LEAST >> 1, LEAST >> 1 | 1 << 31]
    assert bits(run("mul.ftz.f32 d, a, b", least, half)) == [0, 1 << 31]
    assert bits(run("abs.ftz.f32 d, a", tiny)) == [0, 0]
    assert bits(run("neg.ftz.f32 d, a", tiny)) == [1 << 31, 0]


def test_sat_clamps_to_0_and_1() -> None:
    given = f32(-2, -0.0, 0.25, 7, math.nan, math.inf)
    found = run("add.sat.f32 d, a, b", given, f32(*[0] * 6))
    assert bits(found) == bits(f32(0, 0, 0.25, 1, 0, 1))


def test_mad_is_rounded_once() -> None:
    a = f32(1 + 2**-12)
    c = f32(-(1 + 2**-11))
    assert run("mad.rn.f32 d, a, b, c", a, a, c)[0] == 2**-24
    assert run("fma.rn.f64 d, a, b, c", [1 + 2**-30], [1 + 2**-30], [-1 - 2**-29])[0] == 2**-60


def test_reciprocal_is_rounded_in_each_direction() -> None:
    three = f32(3)
    nearest = bits(run("rcp.rn.f32 d, a", three))[0]
    assert bits(run("rcp.rp.f32 d, a", three)) == [0x3EAAAAAB]
    assert bits(run("rcp.rz.f32 d, a", three)) == [0x3EAAAAAA]
    assert nearest == 0x3EAAAAAB
    assert run("rcp.rn.f64 d, a", [4.0])[0] == 0.25


def test_signs_are_bits() -> None:
    given = words(0xFFC12345, 0x80000000, 0x3F800000)
    assert bits(run("abs.f32 d, a", given)) == [0x7FC12345, 0, 0x3F800000]
    assert bits(run("neg.f32 d, a", given)) == [0x7FC12345, 0, 0xBF800000]
    assert run("neg.f64 d, a", [2.0])[0] == -2
    # The sign of the first source, the magnitude of the second.
    assert run("copysign.f32 d, a, b", f32(-1), f32(3))[0] == -3
    assert run("copysign.f64 d, a, b", [1.0], [-3.0])[0] == 3


def _place(word: int) -> float:
    """The place of an f32 among all that are no NaN, -0 before 0."""
    return -(word & F32.sign - 1) if word & F32.sign else word + 0.5


@pytest.mark.parametrize("keeps_nan", [False, True])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_order_zeros_and_treat_nan(name: str, keeps_nan: bool) -> None:
    a, b = grid(floats(F32), floats(F32), kind="u4")
    found = bits(run(f"{name}{'.NaN' if keeps_nan else ''}.f32 d, a, b", a, b))
    choose = min if name == "min" else max
    for p, q, result in zip(a.tolist(), b.tolist(), found, strict=True):
        nans = [F32.is_nan(p), F32.is_nan(q)]
        if all(nans) or (keeps_nan and any(nans)):
            assert result == NAN
        elif any(nans):
            assert result == (q if nans[0] else p)
        else:
            assert result == choose(p, q, key=_place)


def test_extreme_of_magnitudes_has_both_signs() -> None:
    found = run("min.xorsign.abs.f32 d, a, b", f32(-2, -2, 2), f32(1, -1, 3))
    assert found.tolist() == [-1, 1, 2]


def test_extreme_of_three() -> None:
    assert run("max.f32 d, a, b, c", f32(1), f32(math.nan), f32(3))[0] == 3


def test_classes() -> None:
    given = words(0, TINY, 0x3F800000, 0xFF800000, 0x7FC00000)
    holds = {
        "finite": [1, 1, 1, 0, 0],
        "infinite": [0, 0, 0, 1, 0],
        "number": [1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 1],
        "normal": [1, 0, 1, 0, 0],
        "subnormal": [0, 1, 0, 0, 0],
    }
    for name, expected in holds.items():
        assert run(f"testp.{name}.f32 p, a", given).astype(int).tolist() == expected, name


def test_undefined_bits_of_signs_stay_where_they_are() -> None:
    assert undefined("neg.f32 d, a", [0x3F800000], [0x80000000]) == 0x80000000
    assert undefined("copysign.f32 d, a, b", [0, 0], [0x7FFFFFFF, 1]) == 1
    assert rule("neg.ftz.f32 d, a").undefined is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fma.f32 d, a, b, c", "fma.f32 needs a rounding, such as .rn"),
        ("add.sat.f64 d, a, b", r"add does not have the modifier .sat with .f64"),
        ("add.rn.rz.f32 d, a, b", "add does not have the modifier .rz with .f32"),
        ("min.xorsign.f32 d, a, b", "min needs one of .abs"),
        ("testp.f32 p, a", "testp needs one of .finite, .infinite"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)
