"""What conversions look like; that they are right is tested in test_c_expressions."""

import pytest

from tests.codegen.opencl.kernels import print_body

PARAMS = "A: f32[64], M: bool[64], I: i64[64], B: {dtype}[64] out"


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("i8", "i8(I@[0])", "(char)I[0l]"),
        ("i8", "i8(A@[0])", "convert_char_sat(A[0l])"),
        ("f32", "f32(I@[0])", "(float)I[0l]"),
        ("bool", "A@[0] != 0.0f32", "A[0l] != 0.0f"),
        ("bool", "bool(I@[0])", "I[0l] != 0l"),
        ("bool", "M@[0]", "M[0l] != 0"),
        ("f32", "f32(M@[0])", "(float)(M[0l] != 0)"),
    ],
)
def test_single_values(dtype, value, text):
    assert f"B[0l] = {text};" in print_body(f"B@[0] = {value}", PARAMS.format(dtype=dtype))


def test_vectors_convert_by_functions():
    params = PARAMS.format(dtype="i32")
    text = print_body("B@[ramp(0, 1, 4)] = i32x4(A@[ramp(0, 1, 4)])", params)
    assert "vstore4(convert_int4_sat(vload4(0, &A[0l])), 0, &B[0l]);" in text
    text = print_body("B@[ramp(0, 1, 4)] = i32x4(M@[ramp(0, 1, 4)])", params)
    assert "convert_int4((vload4(0, &M[0l]) != (uchar4)(0)) & (char4)(1))" in text


def test_a_lane_of_bools_is_minus_one_as_a_value_and_one_in_memory():
    text = print_body("B@[ramp(0, 1, 4)] = not M@[ramp(0, 1, 4)]", PARAMS.format(dtype="bool"))
    assert (
        "vstore4(as_uchar4(~(vload4(0, &M[0l]) != (uchar4)(0)) & (char4)(1)), 0, &B[0l]);" in text
    )
