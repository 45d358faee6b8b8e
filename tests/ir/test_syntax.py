"""The spelling of constants and words."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.dtype import BOOL, F32, F64, I64, SCALAR_DTYPES, as_dtype
from refcomp.ir.expr import FloatImm, round_to_dtype
from refcomp.ir.syntax import (
    OPERATORS,
    float_to_text,
    int_to_text,
    is_reserved,
    word_to_dtype,
)

FLOATS = [dtype for dtype in SCALAR_DTYPES if dtype.is_float]
F16, BF16 = as_dtype("f16"), as_dtype("bf16")


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (7, I64, "7"),
        (-7, I64, "-7"),
        (7, as_dtype("i32"), "7i32"),
        (255, as_dtype("u8"), "255u8"),
        (1, BOOL, "true"),
        (0, BOOL, "false"),
    ],
)
def test_integers(value, dtype, text):
    assert int_to_text(value, dtype) == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, F64, "0.1f64"),
        (0.1, F32, "0.1f32"),
        (0.1, F16, "0.1f16"),
        (0.1, BF16, "0.1bf16"),
        (-0.0, F32, "-0.0f32"),
        (65504.0, F16, "65504.0f16"),
        (1e-8, F32, "1e-08f32"),
        (math.inf, F32, "f32.inf"),
        (-math.inf, BF16, "-bf16.inf"),
        (math.nan, F16, "f16.nan"),
    ],
)
def test_floats_have_the_fewest_digits(value, dtype, text):
    assert float_to_text(FloatImm(value, dtype).value, dtype) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(FLOATS))
def test_floats_read_back_to_the_same_bits(value: float, dtype):
    held = round_to_dtype(value, dtype)
    text = float_to_text(held, dtype).removesuffix(str(dtype))
    if math.isfinite(held):
        back = round_to_dtype(float(text), dtype)
        assert (back, math.copysign(1, back)) == (held, math.copysign(1, held))


def test_words_with_a_meaning_of_their_own_are_reserved():
    for word in ("for", "let", "and", "true", "f32", "i64", "f32x8", "bool", "f16.inf", "bf16.nan"):
        assert is_reserved(word)
    for word in ("out", "range", "parallel", "exp", "i.outer", "f33", "f32.x", "float"):
        assert not is_reserved(word)


def test_words_of_dtypes():
    assert word_to_dtype("f32x8") == F32.with_lanes(8)
    assert word_to_dtype("f31") is None and word_to_dtype("f32x0") is None


def test_operators_bind_as_in_python():
    def level(text: str) -> int:
        return OPERATORS[text][1]

    order = ["or", "and", "==", "|", "^", "&", "<<", "+", "*"]
    assert [level(text) for text in order] == sorted({level(text) for text in OPERATORS})
    assert all(re.fullmatch(r"[a-z]+|[-+*/%&|^<>=!]+", text) for text in OPERATORS)
