"""Held against numpy's own casts and arithmetic where these round once, and by hand elsewhere."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    SCALAR_DTYPES,
    DType,
    as_dtype,
    to_numpy,
)
from refcomp.ir import expr as ir
from refcomp.oracle.interpreter.scalars import OPERATORS, make_scalar, round_exact, wrap

F16, BF16, I8, U8, U64 = map(as_dtype, ("f16", "bf16", "i8", "u8", "u64"))
INTEGERS = [dtype for dtype in SCALAR_DTYPES if dtype.is_int]
MIN32 = -(1 << 31)


def _apply(node, a, b, dtype):
    return OPERATORS[node](make_scalar(a, dtype), make_scalar(b, dtype), dtype)


@given(st.integers(), st.sampled_from(INTEGERS))
def test_wrap_is_congruent_and_in_range(value, dtype):
    wrapped = wrap(value, dtype)
    assert dtype.min_value <= wrapped <= dtype.max_value
    assert (wrapped - value) % (1 << dtype.bits) == 0


@given(st.floats(), st.sampled_from([F16, F32]))
def test_floats_narrow_as_numpy_narrows(value, dtype):
    with np.errstate(all="ignore"):
        expected = np.float64(value).astype(to_numpy(dtype))
    made = make_scalar(value, dtype)
    assert made.tobytes() == expected.tobytes()
    if math.isfinite(value) and value:
        assert round_exact(Fraction(value), dtype).tobytes() == expected.tobytes()


def test_f64_to_bf16_rounds_once():
    above_the_tie = 1 + 2**-8 + 2**-40
    assert float(make_scalar(above_the_tie, BF16)) == 1 + 2**-7
    assert float(make_scalar(1 + 2**-8, BF16)) == 1.0
    assert math.copysign(1, float(make_scalar(-0.0, BF16))) == -1
    assert float(make_scalar(-1e39, BF16)) == -math.inf
    assert float(make_scalar(2.0**-133, BF16)) == 2.0**-133


def test_integers_round_once_to_floats():
    assert float(make_scalar((1 << 60) + (1 << 36) + 1, F32)) == float((1 << 60) + (1 << 37))
    assert float(make_scalar((1 << 24) + 1, F32)) == float(1 << 24)
    assert make_scalar(65520, F16) == np.inf
    assert make_scalar(65519, F16) == np.float16(65504)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (300.7, U8, 255),
        (-1.5, U8, 0),
        (-1.9, I8, -1),
        (math.nan, I32, 0),
        (math.inf, I64, (1 << 63) - 1),
        (-math.inf, I64, -(1 << 63)),
        (1e30, U64, (1 << 64) - 1),
        (300, U8, 44),
        (-1, U64, (1 << 64) - 1),
        (True, I32, 1),
        (2, BOOL, True),
        (-0.0, BOOL, False),
        (math.nan, BOOL, True),
    ],
)
def test_casts(value, dtype, expected):
    made = make_scalar(value, dtype)
    assert made == expected
    assert type(made) is type(expected)


def test_bool_becomes_a_float():
    assert make_scalar(True, F16) == np.float16(1)
    assert type(make_scalar(True, BF16)) is ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("node", "a", "b", "expected"),
    [
        (ir.Add, 2**31 - 1, 1, MIN32),
        (ir.Sub, MIN32, 1, 2**31 - 1),
        (ir.Mul, 1 << 16, 1 << 15, MIN32),
        (ir.Div, -7, 2, -3),
        (ir.Div, 7, -2, -3),
        (ir.Div, 5, 0, 0),
        (ir.Div, MIN32, -1, MIN32),
        (ir.Mod, -7, 2, -1),
        (ir.Mod, 7, -2, 1),
        (ir.Mod, 5, 0, 0),
        (ir.Mod, MIN32, -1, 0),
        (ir.FloorDiv, -7, 2, -4),
        (ir.FloorDiv, 5, 0, 0),
        (ir.FloorDiv, MIN32, -1, MIN32),
        (ir.FloorMod, -7, 2, 1),
        (ir.FloorMod, 7, -2, -1),
        (ir.FloorMod, 5, 0, 0),
        (ir.Min, -1, 1, -1),
        (ir.Max, -1, 1, 1),
        (ir.BitAnd, -2, 7, 6),
        (ir.BitOr, -8, 3, -5),
        (ir.BitXor, -1, 5, -6),
        (ir.ShiftLeft, 1, 31, MIN32),
        (ir.ShiftLeft, 1, 32, 0),
        (ir.ShiftLeft, 1, -1, 0),
        (ir.ShiftRight, -8, 1, -4),
        (ir.ShiftRight, -8, 40, -1),
        (ir.ShiftRight, 8, -1, 0),
        (ir.EQ, 3, 3, True),
        (ir.NE, 3, 3, False),
        (ir.LT, 2, 3, True),
        (ir.LE, 3, 3, True),
        (ir.GT, 2, 3, False),
        (ir.GE, 2, 3, False),
    ],
)
def test_integer_operators(node, a, b, expected):
    result = _apply(node, a, b, I32)
    assert result == expected
    assert type(result) is type(expected)


def test_bool_operators():
    assert _apply(ir.And, True, False, BOOL) is False
    assert _apply(ir.Or, True, False, BOOL) is True


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64])
def test_float_extremes_propagate_nan(dtype):
    for node in (ir.Min, ir.Max):
        assert math.isnan(_apply(node, math.nan, 1.0, dtype))
        assert math.isnan(_apply(node, 1.0, math.nan, dtype))
    assert _apply(ir.Min, 2.0, 1.0, dtype) == 1
    assert _apply(ir.Max, 2.0, 3.0, dtype) == 3


def test_only_ne_holds_of_nan():
    nodes = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)
    held = [node.__name__ for node in nodes if _apply(node, math.nan, math.nan, F32)]
    assert held == ["NE"]


_NUMPY = {ir.Add: np.add, ir.Sub: np.subtract, ir.Mul: np.multiply, ir.Div: np.divide}


@given(st.floats(width=32), st.floats(width=32), st.sampled_from(sorted(_NUMPY, key=repr)))
def test_f32_arithmetic_is_numpy_arithmetic(a, b, node):
    with np.errstate(all="ignore"):
        expected = _NUMPY[node](np.float32(a), np.float32(b))
        result = _apply(node, a, b, F32)
    assert type(result) is np.float32
    assert result.tobytes() == expected.tobytes() or (np.isnan(result) and np.isnan(expected))


def test_float_remainder_is_that_of_c():
    assert _apply(ir.Mod, -7.5, 2.0, F32) == np.float32(-1.5)
    assert float(_apply(ir.Mod, 5.0, 3.0, BF16)) == 2.0


def test_each_operation_rounds_once():
    third = _apply(ir.Div, 1.0, 3.0, BF16)
    assert type(third) is ml_dtypes.bfloat16
    assert float(third) == float(round_exact(Fraction(1, 3), BF16))
    assert float(_apply(ir.Add, 256.0, 1.0, BF16)) == 256.0


def test_every_binary_node_has_a_meaning():
    classes = {item for item in vars(ir).values() if isinstance(item, type)}
    binary = {cls for cls in classes if issubclass(cls, ir.BinaryExpr)}
    assert binary - {ir.BinaryExpr, ir.Comparison} == set(OPERATORS)


@given(st.sampled_from(INTEGERS), st.integers(), st.integers())
def test_quotient_and_remainder_rebuild_the_dividend(dtype: DType, a, b):
    a, b = wrap(a, dtype), wrap(b, dtype)
    for div, mod in ((ir.Div, ir.Mod), (ir.FloorDiv, ir.FloorMod)):
        quotient, remainder = OPERATORS[div](a, b, dtype), OPERATORS[mod](a, b, dtype)
        assert wrap(quotient * b + remainder, dtype) == (a if b else 0)
