"""The format e8m0: all bytes, modes of rounding, limits, and refusals."""

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.conversion.powers_of_two import (
    from_float8_e8m0,
    from_float8_e8m0_numpy,
    to_float8_e8m0,
    to_float8_e8m0_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

CODES = np.arange(256).astype(np.uint8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_each_byte_has_its_value(dtype) -> None:
    with np.errstate(over="ignore"):
        expected = CODES.view(ml_dtypes.float8_e8m0fnu).astype(np.float64).astype(dtype)
    assert_same(run_te(from_float8_e8m0, CODES, dtype=dtype), expected)
    assert_same(from_float8_e8m0_numpy(CODES, dtype=dtype), expected)


@pytest.mark.parametrize("mode", ["nearest", "up", "down"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_power_has_its_byte(mode, dtype) -> None:
    powers = from_float8_e8m0_numpy(CODES, dtype=dtype)
    assert_same(run_te(to_float8_e8m0, powers, round_mode=mode), CODES)
    assert_same(to_float8_e8m0_numpy(powers, round_mode=mode), CODES)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("nearest", [127, 128, 128, 0, 1]),
        ("up", [128, 128, 128, 0, 1]),
        ("down", [127, 127, 127, 0, 0]),
    ],
)
def test_modes_of_rounding(mode, expected) -> None:
    data = np.array([1.25, 1.5, 1.75, 2.0**-140, 1.5 * 2.0**-127], np.float32)
    wanted = np.array(expected, np.uint8)
    assert_same(run_te(to_float8_e8m0, data, round_mode=mode), wanted)
    assert_same(to_float8_e8m0_numpy(data, round_mode=mode), wanted)


@pytest.mark.parametrize(("saturate", "over", "under"), [(True, 254, 0), (False, 255, 255)])
def test_values_without_a_power(saturate, over, under) -> None:
    small = [0, -0.0, 2.0**-128, 1e-300]
    data = np.array([np.inf, 2.0**200, *small, -1, -np.inf, np.nan, 2.0**127, 2.0**-127])
    wanted = np.array([over, over, *[under] * 4, 255, 255, 255, 254, 0], np.uint8)
    assert_same(run_te(to_float8_e8m0, data, saturate=saturate), wanted)
    assert_same(to_float8_e8m0_numpy(data, saturate=saturate), wanted)


def test_ill_formed_calls_are_refused() -> None:
    (data,) = tensors((2,))
    (words,) = tensors((2,), dtype="int32")
    (codes,) = tensors((2,), dtype="uint8")
    with pytest.raises(UserError, match="to_float8_e8m0 takes float tensors, not i32"):
        to_float8_e8m0(words)
    with pytest.raises(UserError, match="to_float8_e8m0 cannot round by 'upp'"):
        to_float8_e8m0(data, round_mode="upp")
    with pytest.raises(UserError, match="from_float8_e8m0 takes bit patterns in u8, not i32"):
        from_float8_e8m0(words)
    with pytest.raises(UserError, match="from_float8_e8m0 cannot return i32"):
        from_float8_e8m0(codes, dtype="int32")
