"""Data types are read from every spelling, printed in one, and stored as numpy stores them."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import (
    BOOL,
    F32,
    I32,
    I64,
    SCALAR_DTYPES,
    STRING,
    DType,
    as_dtype,
    find_dtype,
    to_numpy,
)
from refcomp.foundation.errors import UserError

VECTORS = st.builds(DType.with_lanes, st.sampled_from(SCALAR_DTYPES), st.integers(1, 64))


@given(VECTORS)
def test_text_is_read_back(dtype: DType) -> None:
    assert as_dtype(str(dtype)) == dtype
    assert hash(as_dtype(str(dtype))) == hash(dtype)


@given(VECTORS)
def test_equal_types_are_one_object(dtype: DType) -> None:
    assert DType(dtype.kind, dtype.bits, dtype.lanes) is dtype
    assert DType(dtype.kind, np.int64(dtype.bits), np.int64(dtype.lanes)) is dtype
    assert type(dtype.bits) is int
    assert copy.deepcopy(dtype) is copy.copy(dtype) is dtype


@pytest.mark.parametrize("fields", [("int", "32"), (["int"], 32), ("int", 32, None), ("int", 1.5)])
def test_fields_of_wrong_types_are_refused(fields: Any) -> None:
    with pytest.raises(UserError, match="no dtype has the kind"):
        DType(*fields)


@given(VECTORS, VECTORS)
def test_different_types_have_different_texts(a: DType, b: DType) -> None:
    assert (str(a) == str(b)) == (a == b)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("float32", "f32"),
        ("int8", "i8"),
        ("uint64", "u64"),
        ("bfloat16", "bf16"),
        ("float16x8", "f16x8"),
        ("bool", "bool"),
        ("boolx4", "boolx4"),
        ("f32x1", "f32"),
        (np.float64, "f64"),
        (np.dtype("int16"), "i16"),
        (np.bool_, "bool"),
        (bool, "bool"),
        (float, "f64"),
        (F32, "f32"),
    ],
)
def test_spellings(value: object, text: str) -> None:
    assert str(as_dtype(value)) == text


def test_a_type_equals_its_numpy_dtype_from_both_sides() -> None:
    assert F32 == np.dtype("float32") != I64
    assert np.dtype("int64") == I64 != np.dtype("uint64")


@given(VECTORS)
def test_a_type_equals_each_text_that_names_it(dtype: DType) -> None:
    assert dtype == str(dtype)
    assert str(dtype) == dtype
    assert dtype != "float33"
    assert dtype != None  # noqa: E711 (the operator is under test)


def test_a_type_equals_its_long_name() -> None:
    assert F32 == "float32" != I64
    assert I64 == "int64" != "uint64"
    assert {F32: 1}[as_dtype("float32")] == 1


@pytest.mark.parametrize(
    "value",
    [
        "f33",
        "i1",
        "u128",
        "bf32",
        "float",
        "f32x0",
        "f32x",
        "f32x-1",
        "boolx0",
        "bool8",
        "",
        " f32",
        "f32\n",
        "f032",
        "f\uff13\uff12",
        "boolx\u0664",
        "handle",
        np.complex64,
        np.dtype("M8[s]"),
        np.dtype("O"),
        "complex64",
        object(),
    ],
)
def test_what_is_no_type_is_refused_with_those_there_are(value: object) -> None:
    with pytest.raises(UserError, match="unknown dtype") as caught:
        as_dtype(value)
    assert "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bf16" in str(caught.value)


def test_a_name_that_is_not_a_dtype_costs_no_search_for_near_ones(monkeypatch) -> None:
    monkeypatch.setattr("refcomp.foundation.dtype.advise", None)
    assert find_dtype("threadIdx") is None and find_dtype("f33") is None
    assert find_dtype("f32x4") == as_dtype("float32x4")


@pytest.mark.parametrize("dtype", SCALAR_DTYPES, ids=str)
def test_numpy_stores_as_many_bytes_and_names_the_same_type(dtype: DType) -> None:
    assert to_numpy(dtype).itemsize == dtype.bytes
    assert as_dtype(to_numpy(dtype)) == dtype
    assert to_numpy(dtype.with_lanes(4)) == to_numpy(dtype)


@pytest.mark.parametrize("dtype", [d for d in SCALAR_DTYPES if d.is_int], ids=str)
def test_integer_ranges_are_those_of_numpy(dtype: DType) -> None:
    info = np.iinfo(to_numpy(dtype))
    assert (dtype.min_value, dtype.max_value) == (info.min, info.max)


def test_bool_has_one_bit_as_a_value_and_one_byte_in_memory() -> None:
    assert (BOOL.bits, BOOL.bytes) == (1, 1)
    assert (BOOL.min_value, BOOL.max_value) == (0, 1)


@pytest.mark.parametrize(
    ("text", "is_float", "is_int", "is_bool"),
    [
        ("f16", True, False, False),
        ("bf16", True, False, False),
        ("i8", False, True, False),
        ("u8x4", False, True, False),
        ("boolx4", False, False, True),
    ],
)
def test_kinds(text: str, is_float: bool, is_int: bool, is_bool: bool) -> None:
    dtype = as_dtype(text)
    assert (dtype.is_float, dtype.is_int, dtype.is_bool) == (is_float, is_int, is_bool)


def test_lanes() -> None:
    vector = I32.with_lanes(8)
    assert (str(vector), vector.lanes, vector.element) == ("i32x8", 8, I32)
    assert vector.bytes == 4
    assert I32.with_lanes(1) is I32
    assert I32.element is I32


def test_each_scalar_type_is_listed_once() -> None:
    assert len(set(SCALAR_DTYPES)) == len(SCALAR_DTYPES) == 13
    assert {BOOL, F32, I32, I64} <= set(SCALAR_DTYPES)
    assert STRING not in SCALAR_DTYPES


def test_numpy_takes_a_dtype_as_its_own():
    assert np.zeros(3, as_dtype("f32")).dtype == np.float32
    assert np.ones(3).astype(as_dtype("i8")).dtype == np.int8
    assert np.dtype(as_dtype("bf16")).name == "bfloat16"
