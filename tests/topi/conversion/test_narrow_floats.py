"""Floats of 8, of 6 and of 4 bits: all bit patterns, ties, limits, NaN, and refusals."""

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.conversion.narrow_floats import (
    from_float4,
    from_float4_numpy,
    from_float6,
    from_float6_numpy,
    from_float8,
    from_float8_numpy,
    to_float4,
    to_float4_numpy,
    to_float6,
    to_float6_numpy,
    to_float8,
    to_float8_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

FORMATS = ["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"]
CODES = np.arange(256).astype(np.uint8)


@pytest.mark.parametrize("form", FORMATS)
def test_each_pattern_has_its_value(form) -> None:
    kind = getattr(ml_dtypes, f"float8_{form}")
    expected = CODES.view(kind).astype(np.float32)
    assert_same(run_te(from_float8, CODES, format=form), expected)
    assert_same(from_float8_numpy(CODES, format=form), expected)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_value_has_its_pattern_and_ties_go_to_even(form, dtype) -> None:
    kind = getattr(ml_dtypes, f"float8_{form}")
    values = CODES.view(kind).astype(dtype)
    finite = np.sort(np.unique(values[np.isfinite(values)]))
    ties = (finite[1:] + finite[:-1]) / 2
    for array in (values, finite, ties):
        for saturate in (True, False):
            found = run_te(to_float8, array, format=form, saturate=saturate)
            assert_same(found, to_float8_numpy(array, format=form, saturate=saturate))
    # The pattern of a tie is even: its last bit is 0.
    assert (run_te(to_float8, ties, format=form) & 1 == 0).all()
    np.testing.assert_array_equal(
        run_te(to_float8, finite, format=form), finite.astype(kind).view("uint8")
    )


@pytest.mark.parametrize(
    ("form", "saturate", "expected"),
    [
        ("e4m3fn", True, [0x7F, 0x7E, 0xFE, 0x7E, 0x80, 0]),
        ("e4m3fn", False, [0x7F, 0x7F, 0x7F, 0x7F, 0x80, 0]),
        ("e4m3fnuz", True, [0x80, 0x7F, 0xFF, 0x7F, 0, 0]),
        ("e4m3fnuz", False, [0x80, 0x80, 0x80, 0x80, 0, 0]),
        ("e5m2", True, [0x7E, 0x7B, 0xFB, 0x7B, 0x80, 0]),
        ("e5m2", False, [0x7E, 0x7C, 0xFC, 0x7C, 0x80, 0]),
        ("e5m2fnuz", True, [0x80, 0x7F, 0xFF, 0x7F, 0, 0]),
        ("e5m2fnuz", False, [0x80, 0x80, 0x80, 0x80, 0, 0]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_infinities_overflow_and_zeros(form, saturate, expected, dtype) -> None:
    data = np.array([np.nan, np.inf, -np.inf, 1e30, -1e-30, 1e-30], dtype)
    wanted = np.array(expected, np.uint8)
    assert_same(run_te(to_float8, data, format=form, saturate=saturate), wanted)
    assert_same(to_float8_numpy(data, format=form, saturate=saturate), wanted)


def test_f64_is_rounded_once() -> None:
    # Rounded to f32 first, it would be a tie.
    data = np.array([1.0625 + 2.0**-40, 1.0625, 1.0625 - 2.0**-40])
    wanted = np.array([0x39, 0x38, 0x38], np.uint8)
    assert_same(run_te(to_float8, data, format="e4m3fn"), wanted)
    assert_same(to_float8_numpy(data, format="e4m3fn"), wanted)


def test_four_bits() -> None:
    data = np.array([0.25, 0.75, 1.25, 5, 7, -np.inf, np.nan, -0.0, 2.5], np.float32)
    wanted = np.array([0, 2, 2, 6, 7, 15, 0, 8, 4], np.uint8)
    assert_same(run_te(to_float4, data), wanted)
    assert_same(to_float4_numpy(data), wanted)
    expected = (CODES & 15).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert_same(run_te(from_float4, CODES), expected)
    assert_same(from_float4_numpy(CODES), expected)


@pytest.mark.parametrize("form", ["e2m3fn", "e3m2fn"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_six_bits(form, dtype) -> None:
    kind = np.dtype(getattr(ml_dtypes, f"float6_{form}"))
    values = (CODES & 63).view(kind).astype(np.float32)
    assert_same(run_te(from_float6, CODES, format=form), values)
    assert_same(from_float6_numpy(CODES, format=form), values)
    numbers = np.sort(np.unique(values)).astype(dtype)
    ties = (numbers[1:] + numbers[:-1]) / 2
    for array in (numbers, ties, numbers * 1.3, np.array([1e9, -np.inf], dtype)):
        wanted = array.astype(kind).view(np.uint8)
        assert_same(run_te(to_float6, array, format=form), wanted)
        assert_same(to_float6_numpy(array, format=form), wanted)
    assert (run_te(to_float6, ties, format=form) & 1 == 0).all()
    nan = np.array([np.nan, -0.0], dtype)
    assert_same(run_te(to_float6, nan, format=form), np.array([0, 32], np.uint8))


def test_ill_formed_calls_are_refused() -> None:
    (floats,) = tensors((2,))
    (codes,) = tensors((2,), dtype="uint8")
    (words,) = tensors((2,), dtype="int32")
    with pytest.raises(UserError, match="to_float8: 'e4m3' is not one of its formats"):
        to_float8(floats, format="e4m3")
    with pytest.raises(UserError, match="from_float8: 'x' is not one of its formats"):
        from_float8(codes, format="x")
    with pytest.raises(UserError, match="to_float8 takes float tensors, not i32"):
        to_float8(words, format="e5m2")
    with pytest.raises(UserError, match="to_float4 takes float tensors, not i32"):
        to_float4(words)
    with pytest.raises(UserError, match="from_float8 takes bit patterns in u8, not i32"):
        from_float8(words, format="e5m2")
    with pytest.raises(UserError, match="to_float6: 'e4m1' is not one of its formats"):
        to_float6(floats, format="e4m1")
    with pytest.raises(UserError, match="from_float6 takes bit patterns in u8, not i32"):
        from_float6(words, format="e2m3fn")
    with pytest.raises(UserError, match="from_float4 cannot return i32"):
        from_float4(codes, dtype="int32")
