"""Numbers for scalar parameters: what is taken as it is, rounded, or refused."""

import math
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.artifacts import ScalarParam
from refcomp.foundation.dtype import SCALAR_DTYPES, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.scalars import scalar_reader, typed_scalar

INTEGERS = [dtype for dtype in SCALAR_DTYPES if dtype.is_int]


def _read(dtype: str | DType, value: Any) -> Any:
    return scalar_reader(ScalarParam("x", as_dtype(dtype)), "f(x)")(value)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_up_to_their_limits(dtype: DType) -> None:
    for value in (0, 1, dtype.min_value, dtype.max_value):
        assert _read(dtype, value) == value
    for value in (dtype.min_value - 1, dtype.max_value + 1, 10**30):
        with pytest.raises(UserError) as caught:
            _read(dtype, value)
        assert caught.value.what == f"argument x is {value}, which {dtype} cannot hold"
        assert caught.value.remedy == f"values are {dtype.min_value} to {dtype.max_value}"
        assert caught.value.where == "f(x)"


def test_numpy_integers_are_integers() -> None:
    assert _read("i8", np.int64(-128)) == -128
    assert type(_read("i64", np.uint8(3))) is int
    with pytest.raises(UserError, match="argument x is -1, which u8 cannot hold"):
        _read("u8", np.int8(-1))


@pytest.mark.parametrize("value", [1.0, np.float32(1), True, np.bool_(True), "1", None, [1]])
def test_what_is_no_integer(value: Any) -> None:
    name = type(value).__name__
    with pytest.raises(
        UserError, match=rf"argument x is a {name}, expected a scalar i32\n.*f\(x\)"
    ):
        _read("i32", value)


def test_bool_takes_bools_only() -> None:
    assert [_read("bool", v) for v in (True, False, np.bool_(True), np.bool_(False))] == [
        1,
        0,
        1,
        0,
    ]
    for value in (1, 0, 1.0, None):
        with pytest.raises(UserError, match=r"expected a scalar bool\n.*\n.*pass bool\(value\)"):
            _read("bool", value)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(
    "value", ["1", None, True, np.bool_(True), 1j, np.complex64(1), np.array(1)]
)
def test_what_is_no_real_number(dtype: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"expected a scalar {dtype}\n.*\n.*pass float\(value\)"):
        _read(dtype, value)


@pytest.mark.parametrize("value", [2, np.int8(2), np.float16(2), np.longdouble(2), 2.0])
def test_any_real_number_is_a_float(value: Any) -> None:
    assert _read("f64", value) == 2.0
    assert _read("f32", value) == 2.0
    assert _read("f16", value) == 0x4000
    assert _read("bf16", value) == 0x4000


def test_bfloat16_scalars_are_real_numbers() -> None:
    assert _read("f32", ml_dtypes.bfloat16(1.5)) == 1.5
    assert _read("bf16", ml_dtypes.bfloat16(1.5)) == 0x3FC0


@given(st.floats())
def test_floats_have_the_bits_that_numpy_gives_them(value: float) -> None:
    for dtype, numpy_dtype in (
        ("f16", np.dtype(np.float16)),
        ("bf16", np.dtype(ml_dtypes.bfloat16)),
    ):
        with np.errstate(over="ignore"):
            expected = numpy_dtype.type(value)
        if math.isinf(float(expected)) and not math.isinf(value):
            with pytest.raises(UserError, match=f"which {dtype} cannot hold"):
                _read(dtype, value)
        else:
            assert _read(dtype, value) == int(expected.view(np.uint16))


@given(st.floats())
def test_doubles_pass_unchanged(value: float) -> None:
    assert struct.pack("d", _read("f64", value)) == struct.pack("d", value)


def test_f32_rounds_but_never_to_infinity() -> None:
    largest = float(np.finfo(np.float32).max)
    half_a_step = 2.0**103
    assert _read("f32", largest) == largest
    assert _read("f32", math.nextafter(largest + half_a_step, 0)) == largest
    assert _read("f32", -math.inf) == -math.inf
    assert math.isnan(_read("f32", math.nan))
    with pytest.raises(UserError) as caught:
        _read("f32", largest + half_a_step)
    assert caught.value.remedy == "values are -3.40282e+38 to 3.40282e+38, or infinite"


def test_integers_too_large_for_any_float() -> None:
    with pytest.raises(UserError, match="which f64 cannot hold"):
        _read("f64", 10**400)


@pytest.mark.parametrize(("dtype", "limit"), [("f16", "65504"), ("bf16", "3.38953e+38")])
def test_the_limit_is_told(dtype: str, limit: str) -> None:
    with pytest.raises(UserError, match=rf"values are -{limit.replace('+', '.')} to"):
        _read(dtype, 1e300)


@pytest.mark.parametrize("dtype", SCALAR_DTYPES, ids=str)
def test_typed_scalars_are_numpy_scalars(dtype: DType) -> None:
    value = typed_scalar(dtype, True if dtype.is_bool else 1)
    assert as_dtype(value.dtype) == dtype
    assert value == 1
