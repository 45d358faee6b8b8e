"""Constants of C: what they look like, and that reading them back gives the same bits."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.codegen.c_family.literals import spell_literal
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.dtype import BOOL, F32, F64, DType, as_dtype
from refcomp.foundation.errors import CompilerBug
from refcomp.ir.expr import round_to_dtype

SPELLING = load_spelling("c_family", "opencl")


def _text(value: float, dtype: DType) -> str:
    return spell_literal(SPELLING.macros, SPELLING.tables, value, dtype)[0]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (3, "i64", "3l"),
        (-3, "i32", "-3"),
        (7, "u8", "(uchar)7"),
        (2**64 - 1, "u64", "18446744073709551615ul"),
        (-(2**31), "i32", "INT_MIN"),
        (-(2**63), "i64", "LONG_MIN"),
        (-128, "i8", "(char)-128"),
        (1, "bool", "true"),
        (0.5, "f32", "0.5f"),
        (-0.0, "f32", "-0.0f"),
        (1e30, "f64", "0x1.93e5939a08ceap+99"),
        (0.1, "f64", "0x1.999999999999ap-4"),
        (2.0**-149, "f32", "0x1p-149f"),
        (0.25, "f16", "0.25h"),
        (float("inf"), "f32", "as_float(0x7f800000)"),
        (float("-inf"), "f64", "as_double(0xfff0000000000000)"),
        (float("nan"), "f16", "as_half((ushort)0x7e00)"),
    ],
)
def test_literals(value, dtype, text):
    assert _text(value, as_dtype(dtype)) == text


def _read(text: str) -> float:
    digits = text.rstrip("f") if "as_" not in text else text
    if digits.startswith("as_"):
        bits = bytes.fromhex(digits.partition("0x")[2].rstrip(")"))
        return struct.unpack({4: ">f", 8: ">d"}[len(bits)], bits)[0]
    return float.fromhex(digits) if "0x" in digits else float(digits)


@given(st.floats(), st.sampled_from([F32, F64]))
def test_floats_read_back_to_the_same_bits(value, dtype):
    value = round_to_dtype(value, dtype)
    kind = np.dtype(f"f{dtype.bytes}")
    read = np.array(_read(_text(value, dtype)), np.float64).astype(kind)
    assert np.isnan(value) == np.isnan(read)
    if not np.isnan(value):
        assert read.tobytes() == np.array(value, kind).tobytes()


def test_only_what_binds_like_a_name_needs_no_parentheses():
    def is_atom(value, dtype):
        return spell_literal(SPELLING.macros, SPELLING.tables, value, dtype)[1]

    assert is_atom(3, as_dtype("i64")) and is_atom(1, BOOL) and is_atom(float("inf"), F32)
    assert not is_atom(-3, as_dtype("i64")) and not is_atom(-0.0, F32)
    assert not is_atom(3, as_dtype("i8"))


def test_vectors_are_no_literals():
    with pytest.raises(CompilerBug, match="a constant of dtype f32x4 is printed as a scalar"):
        _text(1.0, as_dtype("f32x4"))
