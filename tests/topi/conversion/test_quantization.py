"""Quantization: known values, limits, NaN, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.conversion.quantization import (
    dequantize,
    dequantize_numpy,
    dynamic_quantize_linear,
    dynamic_quantize_linear_numpy,
    fake_quantize,
    fake_quantize_numpy,
    quantize,
    quantize_numpy,
    requantize,
    requantize_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

HALF = np.array(0.5, np.float32)


def test_ties_limits_and_nan() -> None:
    data = np.array([0.25, 0.75, -0.25, 100, -100, np.inf, -np.inf, np.nan], np.float32)
    for dtype, low, high in (("uint8", 0, 255), ("int8", -128, 127)):
        zero = np.array(3, dtype)
        wanted = [3, 5, 3, min(203, high), max(-197, low), high, low, 3]
        # NaN has no number, so the zero point is not added to one.
        wanted[-1] = 0
        assert_same(run_te(quantize, data, HALF, zero), np.array(wanted, dtype))
        assert_same(quantize_numpy(data, HALF, zero), np.array(wanted, dtype))


def test_dtype_of_the_result() -> None:
    data, scale = tensors((2,), ())
    (zero,) = tensors((), dtype="int16")
    assert str(quantize(data, scale).dtype) == "u8"
    assert str(quantize(data, scale, zero).dtype) == "i16"
    assert str(quantize(data, scale, dtype="int32").dtype) == "i32"


@pytest.mark.parametrize(
    ("dtype", "expected"), [("int8", [-8, -2, 7, 7]), ("uint8", [0, 0, 10, 15])]
)
def test_fewer_bits_than_the_dtype_has(dtype, expected) -> None:
    data = np.array([-100, -1, 5, 100], np.float32)
    wanted = np.array(expected, dtype)
    assert_same(run_te(quantize, data, HALF, dtype=dtype, bits=4), wanted)
    assert_same(quantize_numpy(data, HALF, dtype=dtype, bits=4), wanted)


def test_scales_per_axis_and_per_block() -> None:
    data = np.array([[1, 1, 1], [2, 2, 2]], np.float32)
    rows = np.array([1, 0.5], np.float32)
    wanted = np.array([[1, 1, 1], [4, 4, 4]], np.uint8)
    assert_same(run_te(quantize, data, rows, axis=0, is_symbolic=False), wanted)
    assert_same(quantize_numpy(data, rows, axis=0), wanted)
    blocks = np.array([[1, 0.5], [0.25, 2]], np.float32)
    wanted = np.array([[1, 1, 2], [8, 8, 1]], np.uint8)
    attributes = {"axis": 1, "block_size": 2}
    assert_same(run_te(quantize, data, blocks, is_symbolic=False, **attributes), wanted)
    assert_same(quantize_numpy(data, blocks, **attributes), wanted)


def test_extreme_differences_are_exact() -> None:
    data = np.array([2**31 - 1, -(2**31)], np.int32)
    zero = np.array(-(2**31), np.int32)
    scale = np.array(1.0)
    wanted = np.array([2.0**32 - 1, 0])
    assert_same(run_te(dequantize, data, scale, zero), wanted)
    assert_same(dequantize_numpy(data, scale, zero), wanted)


def test_requantize_to_8_bits() -> None:
    data = np.array([[100, 7], [-100000, 5]], np.int32)
    parameters = (
        np.array([0.5, 0.25], np.float32),
        np.array([0, 1], np.int32),
        np.array(1, np.float32),
        np.array(-1, np.int8),
    )
    wanted = np.array([[49, 1], [-128, 0]], np.int8)
    assert_same(run_te(requantize, data, *parameters), wanted)
    assert_same(requantize_numpy(data, *parameters), wanted)


def test_fake_quantize() -> None:
    data = np.array([0.3, -1.1, 1000, np.nan], np.float32)
    wanted = np.array([0.5, -1, 63.5, 0], np.float32)
    assert_same(run_te(fake_quantize, data, HALF, dtype="int8"), wanted)
    assert_same(fake_quantize_numpy(data, HALF, dtype="int8"), wanted)


@pytest.mark.parametrize(
    ("values", "expected", "scale", "zero"),
    [
        ([-51, 0, 204], [0, 51, 255], 1, 51),
        ([51, 510], [26, 255], 2, 0),
        ([0, -0.0], [0, 0], 1, 0),
        ([], [], 1, 0),
        ([np.nan, 1], [0, 0], np.nan, 0),
        ([np.inf, 1], [0, 0], np.inf, 0),
    ],
)
def test_dynamic_range(values, expected, scale, zero) -> None:
    data = np.array(values, np.float32)
    wanted = [np.array(expected, np.uint8), np.array(scale, np.float32), np.array(zero, np.uint8)]
    for found in (run_te(dynamic_quantize_linear, data), dynamic_quantize_linear_numpy(data)):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)


def test_ill_formed_calls_are_refused() -> None:
    data, scale, wide = tensors((2, 3), (), (2, 3))
    (integers,) = tensors((2, 3), dtype="int8")
    (double,) = tensors((), dtype="float64")
    with pytest.raises(UserError, match="quantize takes float tensors, not i8"):
        quantize(integers, scale)
    with pytest.raises(UserError, match="quantize cannot return i64"):
        quantize(data, scale, dtype="int64")
    for bits in (0, 9):
        with pytest.raises(UserError, match=f"quantize cannot return {bits} bits as u8"):
            quantize(data, scale, bits=bits)
    with pytest.raises(UserError, match="dequantize takes integers of at most 32 bits, not f32"):
        dequantize(data, scale)
    with pytest.raises(UserError, match="requantize: the scale has 2 dimensions"):
        requantize(integers, wide, integers, wide, integers)
    with pytest.raises(UserError, match="fake_quantize cannot combine f32 with a scale of f64"):
        fake_quantize(data, double)
    with pytest.raises(UserError, match="dynamic_quantize_linear takes f32, not f64"):
        dynamic_quantize_linear(double)
