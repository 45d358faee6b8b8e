"""Functions that stand before the kernels; what they compute is tested in test_c_expressions."""

from tests.codegen.opencl.kernels import print_body

PARAMS = "R: i64[8] out, i: i64, j: i64, a: i8, x: f32"


def test_a_function_is_defined_once_and_before_its_use():
    text = print_body("R@[0] = i // j R@[1] = j // i", PARAMS)
    assert text.count("static long floordiv_i64(long a, long b) {") == 1
    assert text.index("static long floordiv_i64") < text.index("__kernel")


def test_each_dtype_has_its_own():
    text = print_body("R@[0] = i64(a // (a - 1i8)) + i // j", PARAMS)
    assert "static char floordiv_i8(char a, char b) {" in text
    assert "if (b == -1) return (char)(0 - (uint)a);" in text
    assert "static long floordiv_i64" in text


def test_shifts_ask_whether_the_amount_is_within_the_width():
    text = print_body("R@[0] = i << j R@[1] = i64(a >> a)", PARAMS)
    assert "return (ulong)b < 64 ? (long)((ulong)a << b) : 0;" in text
    assert "return a >> ((uchar)b < 8 ? b : 8 - 1);" in text


def test_the_lesser_of_floats_takes_nan():
    text = print_body("R@[0] = i64(min(x, 0.0f32) + max(x, 1.0f32))", PARAMS)
    assert "static float least_f32(float a, float b) {\n  return b < a || b != b ? b : a;" in text
    assert "static float greatest_f32(float a, float b) {\n  return b > a" in text
