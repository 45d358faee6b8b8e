"""Quantized products: zero points, saturation, ties, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.operation import placeholder
from refcomp.topi.contraction.quantized import (
    matmul_integer,
    matmul_integer_numpy,
    qlinear_matmul,
    qlinear_matmul_numpy,
    quantized_dense,
    quantized_dense_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_zero_points_of_rows_and_columns() -> None:
    a = np.array([[255, 0], [3, 4]], np.uint8)
    b = np.array([[1, 127], [-1, -128]], np.int8)
    rows, columns = np.array([255, 3], np.uint8), np.array([1, -128], np.int8)
    expected = [[-255 * -2, 0], [-2, 0]]
    found = run_te(matmul_integer, a, b, rows, columns, is_symbolic=False)
    assert_same(found, np.array(expected, np.int32))
    assert_same(matmul_integer_numpy(a, b, rows, columns), np.array(expected, np.int32))


def _scalar(value: float, dtype: str = "float32") -> np.ndarray:
    return np.array(value, dtype)


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [(5, 0.5, 2), (7, 0.5, 4), (127, 1.0, 127), (-128, 2.0, -128), (100, 2.0, 127)],
)
def test_results_round_to_even_and_saturate(value: int, scale: float, expected: int) -> None:
    one = np.array([[1]], np.int8)
    data = np.array([[value]], np.int8)
    zero = _scalar(0, "int8")
    operands = (data, _scalar(scale), zero, one, _scalar(1), zero, _scalar(1), zero)
    result = np.array([[expected]], np.int8)
    assert_same(run_te(qlinear_matmul, *operands, is_symbolic=False), result)
    assert_same(qlinear_matmul_numpy(*operands), result)
    layer = (data, one, _scalar(scale), _scalar(1), _scalar(1))
    assert_same(run_te(quantized_dense, *layer, is_symbolic=False), result)
    assert_same(quantized_dense_numpy(*layer), result)


def test_scale_of_zero_saturates_and_gives_zero_for_nan() -> None:
    one = np.array([[1], [0]], np.int8)
    layer = (one, np.array([[1]], np.int8), _scalar(1), _scalar(1), _scalar(0))
    expected = np.array([[127], [0]], np.int8)
    assert_same(run_te(quantized_dense, *layer, is_symbolic=False), expected)
    with np.errstate(all="ignore"):
        assert_same(quantized_dense_numpy(*layer), expected)


def test_bias_is_added_before_scaling() -> None:
    one = np.array([[1]], np.int8)
    bias = np.array([9], np.int32)
    layer = (one, one, _scalar(0.5), _scalar(1), _scalar(1), bias)
    assert_same(run_te(quantized_dense, *layer, is_symbolic=False), np.array([[5]], np.int8))


def test_ill_formed_integer_products_are_refused() -> None:
    a, b = tensors((2, 3), (3, 4), dtype="int8")
    with pytest.raises(UserError, match="matmul_integer: a is f32, not int8 or uint8"):
        matmul_integer(*tensors((2, 3), (3, 4)))
    with pytest.raises(UserError, match="fewer than two dimensions"):
        matmul_integer(*tensors((3,), (3, 4), dtype="int8"))
    with pytest.raises(UserError, match="the reduced extent of b is 4 instead of 3"):
        matmul_integer(*tensors((2, 3), (4, 5), dtype="int8"))
    with pytest.raises(UserError, match="matmul_integer cannot combine i8 with u8"):
        matmul_integer(a, b, placeholder((), "uint8"))
    with pytest.raises(UserError, match="a zero point's extent is 3 instead of 2"):
        matmul_integer(a, b, placeholder((3,), "int8"))
    with pytest.raises(UserError, match="a zero point has 2 dimensions instead of 1"):
        matmul_integer(a, b, None, placeholder((1, 4), "int8"))


def test_ill_formed_scales_are_refused() -> None:
    data, weight = tensors((2, 3), (4, 3), dtype="int8")
    half, one, many = placeholder((), "float16"), placeholder((1,)), placeholder((4,))
    with pytest.raises(UserError, match="a scale is f16, not float32 or float64"):
        quantized_dense(data, weight, half, one, one)
    with pytest.raises(UserError, match="a scale's extent is 4 instead of 1"):
        quantized_dense(data, weight, many, one, one)
    with pytest.raises(UserError, match="a scale's extent is 4 instead of 1"):
        quantized_dense(data, weight, one, many, many)
    with pytest.raises(UserError, match="cannot combine f32 with f64"):
        quantized_dense(data, weight, one, placeholder((), "float64"), one)
    with pytest.raises(UserError, match="the bias' extent is 3 instead of 4"):
        quantized_dense(data, weight, one, one, one, placeholder((3,), "int32"))
    with pytest.raises(UserError, match="quantized_dense cannot combine i32 with f32"):
        quantized_dense(data, weight, one, one, one, placeholder((4,)))
    point = placeholder((2,), "int8")
    with pytest.raises(UserError, match="the data's zero point's extent is 2 instead of 1"):
        quantized_dense(data, weight, one, one, one, None, point)
    with pytest.raises(UserError, match="the result's zero point's extent is 2 instead of 1"):
        quantized_dense(data, weight, one, one, one, None, None, None, point)
    with pytest.raises(UserError, match="the result's zero point is i32, not int8 or uint8"):
        quantized_dense(data, weight, one, one, one, None, None, None, placeholder((), "int32"))
