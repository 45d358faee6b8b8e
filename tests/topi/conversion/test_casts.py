"""Casts: limits, NaN, rounding, and refusals."""

import ml_dtypes
import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.conversion.casts import (
    bitcast,
    bitcast_numpy,
    cast,
    cast_like,
    cast_like_numpy,
    cast_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def _check(data: np.ndarray, expected: np.ndarray, **attributes: object) -> None:
    dtype = expected.dtype.name
    assert_same(run_te(cast, data, dtype=dtype, **attributes), expected)
    assert_same(cast_numpy(data, dtype=dtype, **attributes), expected)


@pytest.mark.parametrize("source", ["float32", "float64", "float16"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_floats_are_truncated_and_clamped(source, target) -> None:
    kind = rc.as_dtype(target)
    data = np.array([1.9, np.inf, -np.inf, np.nan, 0.5, -0.5], source)
    expected = [1, kind.max_value, kind.min_value, 0, 0, 0]
    _check(data, np.array(expected, target))


def test_integers_wrap_or_are_clamped() -> None:
    data = np.array([300, -1, 128, 5], np.int32)
    _check(data, np.array([44, 255, 128, 5], np.uint8))
    _check(data, np.array([255, 0, 128, 5], np.uint8), saturate=True)
    _check(data, np.array([127, -1, 127, 5], np.int8), saturate=True)
    large = np.array([2**64 - 1], np.uint64)
    _check(large, np.array([2**63 - 1], np.int64), saturate=True)


def test_truth() -> None:
    _check(np.array([0, -0.0, np.nan, 0.5], np.float32), np.array([False, False, True, True]))
    _check(np.array([True, False]), np.array([1, 0], np.float32))


def test_floats_round_once() -> None:
    # Rounded to f32 first, both would be ties.
    data = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40])
    expected = np.array([1 + 2.0**-7, 1 + 2.0**-7], ml_dtypes.bfloat16)
    _check(data, expected)
    integers = np.array([2**60 + 2**52 + 1, -(2**60 + 2**52 + 1)], np.int64)
    top = 2.0**60 + 2.0**53
    _check(integers, np.array([top, -top], ml_dtypes.bfloat16))
    _check(np.array([70000.0, -70000.0], np.float32), np.array([np.inf, -np.inf], np.float16))


def test_dtype_of_another_tensor() -> None:
    data = np.array([1.5, -1.5], np.float32)
    like = np.zeros((3,), np.int64)
    wanted = np.array([1, -1], np.int64)
    one, other = tensors((2,), (3,))
    assert str(cast_like(one, other).dtype) == "f32"
    wide = rc.placeholder((3,), "int64", name="like")
    (found,) = rc.oracle.evaluate([cast_like(one, wide)], {one: data})
    assert_same(found, wanted)
    assert_same(cast_like_numpy(data, like), wanted)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.array([1, -0.0], np.float32), np.array([0x3F800000, -(2**31)], np.int32)),
        (np.array([0x3C00], np.uint16), np.array([1], np.float16)),
        (np.array([0x3F80], np.int16), np.array([1], ml_dtypes.bfloat16)),
        (np.array([1], ml_dtypes.bfloat16), np.array([1.875], np.float16)),
        (np.array([-1], np.int64), np.array([2**64 - 1], np.uint64)),
        (np.array([2.0]), np.array([2.0])),
    ],
)
def test_bits(data, expected) -> None:
    assert_same(run_te(bitcast, data, dtype=expected.dtype.name), expected)
    assert_same(bitcast_numpy(data, dtype=expected.dtype.name), expected)


def test_ill_formed_calls_are_refused() -> None:
    (data,) = tensors((2,))
    (flags,) = tensors((2,), dtype="bool")
    with pytest.raises(UserError, match="cast cannot convert to f32x4"):
        cast(data, dtype="float32x4")
    with pytest.raises(UserError, match="cast is applied to a int"):
        cast(3, dtype="float32")
    with pytest.raises(UserError, match="cast_like is applied to a str"):
        cast_like(data, "float32")
    with pytest.raises(UserError, match="bitcast cannot view f32 as i64"):
        bitcast(data, dtype="int64")
    with pytest.raises(UserError, match="bitcast cannot view bool as u8"):
        bitcast(flags, dtype="uint8")
