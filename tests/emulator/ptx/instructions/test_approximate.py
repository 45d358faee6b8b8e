"""Special values of approximations, and that ordinary ones are near."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.worded import bits, rule, run

NAN = 0x7FFFFFFF
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "rcp": lambda x: 1 / x,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "cos": math.cos,
    "lg2": math.log2,
    "ex2": lambda x: 2**x,
    "tanh": math.tanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ordinary_values_are_nearest(name: str) -> None:
    given = np.linspace(0.01, 9, 400, dtype=np.float32)
    found = run(f"{name}.approx.f32 d, a", given)
    exact = np.array([FUNCTIONS[name](x) for x in given.tolist()])
    assert np.abs(found - exact).max() <= np.spacing(np.abs(exact).max().astype(np.float32))
    assert (np.abs(found - exact) <= np.spacing(np.abs(exact).astype(np.float32)) * 0.51).all()


def test_special_values() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    infinities = np.array([np.inf, -np.inf], np.float32)
    assert run("rcp.approx.f32 d, a", zeros).tolist() == [math.inf, -math.inf]
    assert bits(run("rcp.approx.f32 d, a", infinities)) == [0, 0x80000000]
    assert bits(run("rsqrt.approx.f32 d, a", zeros)) == [0x7F800000, 0xFF800000]
    assert bits(run("rsqrt.approx.f32 d, a", infinities)) == [0, NAN]
    assert bits(run("sqrt.approx.f32 d, a", np.array([-0.0, -1], np.float32))) == [0x80000000, NAN]
    assert bits(run("sin.approx.f32 d, a", zeros)) == [0, 0x80000000]
    assert bits(run("cos.approx.f32 d, a", infinities)) == [NAN, NAN]
    assert bits(run("lg2.approx.f32 d, a", np.array([0, -1, 1], np.float32))) == [
        0xFF800000,
        NAN,
        0,
    ]
    assert run("ex2.approx.f32 d, a", infinities).tolist() == [math.inf, 0]
    assert run("tanh.approx.f32 d, a", infinities).tolist() == [1, -1]


def test_ftz_flushes_denormals() -> None:
    tiny = np.array([0x00000001, 0x80000001], np.uint32)
    assert run("rcp.approx.ftz.f32 d, a", tiny).tolist() == [math.inf, -math.inf]
    assert bits(run("ex2.approx.ftz.f32 d, a", np.array([-140], np.float32))) == [0]
    assert bits(run("ex2.approx.f32 d, a", np.array([-140], np.float32))) == [1 << 9]


def test_approximate_quotient_by_a_number_beyond_2_to_126_is_0() -> None:
    far = np.array([2.0**127, -(2.0**127), 2.0**126], np.float32)
    assert bits(run("div.approx.f32 d, a, b", np.float32(4), far))[:2] == [0, 0x80000000]
    assert run("div.approx.f32 d, a, b", np.float32(4), far)[2] == 2.0**-124
    assert bits(run("div.approx.f32 d, a, b", np.float32(np.inf), far))[:2] == [NAN, NAN]
    assert run("div.full.f32 d, a, b", np.float32(4), far)[0] == 2.0**-125
    assert run("div.approx.f32 d, a, b", np.float32(1), np.float32(np.inf)) == 0


def test_only_the_upper_words_of_f64_count() -> None:
    given = np.array([0x4008000012345678, 0x4008000000000000], np.uint64)
    found = bits(run("rcp.approx.ftz.f64 d, a", given))
    assert found == [0x3FD5555500000000] * 2
    assert run("rsqrt.approx.ftz.f64 d, a", [4.0, np.inf]).tolist() == [0.5, 0]
    assert run("rsqrt.approx.f64 d, a", [2.0])[0] == 1 / math.sqrt(2)
    nan = run("rcp.approx.ftz.f64 d, a", [np.nan, 0.0])
    assert bits(nan) == [0x7FFFFFFF00000000, 0x7FF0000000000000]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("div.f32 d, a, b", "div needs one of .approx, .full"),
        ("div.f64 d, a, b", "div.f64 needs a rounding, such as .rn"),
        ("sqrt.approx.f64 d, a", "sqrt needs one of .rn, .rz, .rm, .rp"),
        ("rcp.approx.f64 d, a", "rcp needs one of .ftz"),
        ("rsqrt.rn.f32 d, a", "rsqrt needs one of .approx"),
        ("sin.f32 d, a", "sin needs one of .approx"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)
