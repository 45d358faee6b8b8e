"""Held against mpmath, which computes to any number of digits."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import F32, F64, I32, as_dtype
from refcomp.ir.intrinsics import INTRINSICS
from refcomp.oracle.interpreter.intrinsics import KNOWN, apply_intrinsic, sum_rounded_once
from refcomp.oracle.interpreter.scalars import make_scalar, round_exact

F16, BF16, I8, U8, U32 = map(as_dtype, ("f16", "bf16", "i8", "u8", "u32"))
TRUTH = {
    **{name: getattr(mpmath, name) for name in ("exp", "expm1", "log10", "log1p", "erf")},
    **{name: getattr(mpmath, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(mpmath, name) for name in ("asin", "acos", "atan")},
    **{name: getattr(mpmath, name) for name in ("asinh", "acosh", "atanh", "sqrt", "hypot")},
    "exp2": lambda x: mpmath.power(2, x),
    "exp10": lambda x: mpmath.power(10, x),
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "pow": mpmath.power,
    "atan2": mpmath.atan2,
}
OPERANDS = {"acosh": (1.5, 40.0), "asin": (0.3, -0.9), "acos": (0.3, -0.9), "atanh": (0.3, -0.9)}


def _apply(name, *operands, dtype=F32):
    return apply_intrinsic(name, tuple(make_scalar(x, dtype) for x in operands), dtype)


def test_every_intrinsic_has_a_meaning():
    assert set(INTRINSICS) == KNOWN


@pytest.mark.parametrize("name", sorted(TRUTH))
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_within_its_error_bound(name, dtype):
    arity = INTRINSICS[name].arity
    for start in OPERANDS.get(name, (0.3, 2.5)):
        operands = [make_scalar(x, dtype) for x in (start, 1.75)[:arity]]
        with mpmath.workprec(200):
            truth = TRUTH[name](*(mpmath.mpf(float(x)) for x in operands))
            nearest = round_exact(Fraction(*truth.as_integer_ratio()), dtype)
        result = float(apply_intrinsic(name, tuple(operands), dtype))
        steps = 2 if dtype == F64 else 0
        digits = {F16: 11, BF16: 8, F32: 24, F64: 53}[dtype]
        bound = steps * math.ulp(float(nearest)) if digits == 53 else 0.0
        assert abs(result - float(nearest)) <= bound


@pytest.mark.parametrize(
    ("name", "operand", "expected"),
    [
        ("round", 2.5, 2.0),
        ("round", 3.5, 4.0),
        ("round", -0.4, -0.0),
        ("floor", -0.5, -1.0),
        ("ceil", -0.5, -0.0),
        ("trunc", -1.7, -1.0),
        ("abs", -0.0, 0.0),
        ("exp", 1000.0, math.inf),
        ("exp", -1000.0, 0.0),
        ("log", 0.0, -math.inf),
        ("log", -1.0, math.nan),
        ("sqrt", -1.0, math.nan),
        ("rsqrt", 0.0, math.inf),
        ("sigmoid", -1000.0, 0.0),
        ("exp10", 2.0, 100.0),
    ],
)
def test_corners(name, operand, expected):
    result = _apply(name, operand)
    assert type(result) is np.float32
    assert np.float32(expected).tobytes() == result.tobytes() or math.isnan(expected)
    assert math.isnan(result) == math.isnan(expected)


def test_predicates_give_bool():
    assert _apply("isnan", math.nan) is True
    assert _apply("isinf", -math.inf) is True
    assert _apply("isfinite", math.inf) is False


def test_integer_functions():
    assert _apply("abs", -128, dtype=I8) == -128
    assert _apply("abs", -5, dtype=I8) == 5
    assert _apply("popcount", -1, dtype=I32) == 32
    assert _apply("clz", 1, dtype=U8) == 7
    assert _apply("clz", 0, dtype=I32) == 32
    assert _apply("clz", -1, dtype=I32) == 0


def test_bits_of_floats_and_back():
    assert _apply("float_to_bits", -0.0) == 1 << 31
    assert _apply("float_to_bits", 1.0, dtype=F16) == 0x3C00
    assert _apply("bits_to_float", 0x3F80_0000, dtype=U32) == np.float32(1)


@given(st.floats(width=32), st.floats(width=32), st.floats(width=32))
def test_fma_rounds_once(a, b, c):
    with np.errstate(all="ignore"):
        result = _apply("fma", a, b, c)
    if not all(map(math.isfinite, (a, b, c))):
        assert math.isnan(result) or math.isinf(result) or result == np.float32(c)
        return
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    assert result == round_exact(exact, F32)


def test_fma_differs_from_multiply_then_add():
    x = 1 + 2.0**-12
    assert float(_apply("fma", x, x, -1.0)) == 2.0**-11 + 2.0**-24
    assert math.copysign(1, _apply("fma", -0.0, 1.0, -0.0)) == -1


def test_a_sum_whose_terms_cancel_is_zero():
    # f64 loses the 2^-40 beside the 2^30, and then does not lose it.
    terms = [(2.0**30, 1.0), (2.0**-40, 1.0), (-(2.0**30), 1.0), (-(2.0**-40), 1.0)]
    assert math.copysign(1, sum_rounded_once(terms, 0.0, F32)) == 1
    assert sum_rounded_once(terms, 0.0, F32) == 0
    assert sum_rounded_once(terms, 0.25, F32) == 0.25
    assert math.copysign(1, sum_rounded_once([(0.0, -1.0)], -0.0, F32)) == -1
