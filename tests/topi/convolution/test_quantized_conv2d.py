"""Quantized convolution: zero points in the border, saturation, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.operation import placeholder
from refcomp.topi.convolution.quantized_conv2d import (
    conv2d_integer,
    conv2d_integer_numpy,
    qlinear_conv2d,
    qlinear_conv2d_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_border_holds_zero_points() -> None:
    data = np.full((1, 1, 2, 2), 200, np.uint8)
    weight = np.array([[[[1, 2], [3, 4]]]], np.int8)
    zeros = (np.array(200, np.uint8), np.array([-7], np.int8))
    found = run_te(conv2d_integer, data, weight, *zeros, is_symbolic=False, padding=(1, 1, 1, 1))
    assert_same(found, np.zeros((1, 1, 3, 3), np.int32))
    assert_same(conv2d_integer_numpy(data, weight, *zeros, padding=(1, 1, 1, 1)), found)


def test_sums_of_bytes_do_not_wrap() -> None:
    data = np.full((1, 4, 1, 1), 255, np.uint8)
    found = run_te(conv2d_integer, data, data, None, np.array([255], np.uint8), is_symbolic=False)
    assert_same(found, np.zeros((1, 1, 1, 1), np.int32))
    found = run_te(conv2d_integer, data, data)
    assert_same(found, np.full((1, 1, 1, 1), 4 * 255 * 255, np.int32))


@pytest.mark.parametrize(("value", "expected"), [(5, 2), (7, 4), (127, 64), (-128, -64)])
def test_results_round_to_even(value: int, expected: int) -> None:
    one, zero = np.array([[[[1]]]], np.int8), np.array(0, np.int8)
    data = np.array([[[[value]]]], np.int8)
    scale, unit = np.array(0.5, np.float32), np.array(1, np.float32)
    operands = (data, scale, zero, one, unit, zero, unit, zero)
    result = np.array([[[[expected]]]], np.int8)
    assert_same(run_te(qlinear_conv2d, *operands, is_symbolic=False), result)
    assert_same(qlinear_conv2d_numpy(*operands), result)


def test_results_saturate_after_bias_and_zero_point() -> None:
    one = np.array([[[[1]]]], np.uint8)
    zero, point = np.array(0, np.uint8), np.array(10, np.uint8)
    unit, many = np.array(1, np.float32), np.array([1], np.float32)
    for bias, expected in ((500, 255), (-500, 0), (4, 15)):
        operands = (one, unit, zero, one, many, zero, unit, point, np.array([bias], np.int32))
        found = run_te(qlinear_conv2d, *operands, is_symbolic=False)
        assert_same(found, np.array([[[[expected]]]], np.uint8))


def test_ill_formed_convolutions_are_refused() -> None:
    data, weight = tensors((1, 2, 5, 5), (4, 2, 3, 3), dtype="int8")
    byte, many = placeholder((), "int8"), placeholder((3,), "int8")
    scale, scales = placeholder(()), placeholder((3,))
    with pytest.raises(UserError, match="conv2d_integer: the data is f32, not int8 or uint8"):
        conv2d_integer(*tensors((1, 2, 5, 5), (4, 2, 3, 3)))
    with pytest.raises(UserError, match="conv2d_integer: the weight has 3 dimensions"):
        conv2d_integer(data, placeholder((4, 2, 3), "int8"))
    with pytest.raises(UserError, match="a zero point's extent is 3 instead of 1"):
        conv2d_integer(data, weight, many)
    with pytest.raises(UserError, match="a zero point's extent is 3 instead of 4"):
        conv2d_integer(data, weight, byte, many)
    with pytest.raises(UserError, match="the data's channel extent is 2 instead of 4"):
        conv2d_integer(data, weight, groups=2)
    rest = (scale, byte)
    with pytest.raises(UserError, match="a scale's extent is 3 instead of 4"):
        qlinear_conv2d(data, scale, byte, weight, scales, byte, *rest)
    with pytest.raises(UserError, match="a scale's extent is 3 instead of 1"):
        qlinear_conv2d(data, scales, byte, weight, scale, byte, *rest)
    with pytest.raises(UserError, match="the result's zero point's extent is 3 instead of 1"):
        qlinear_conv2d(data, scale, byte, weight, scale, byte, scale, many)
    with pytest.raises(UserError, match="the result's zero point is f32, not int8 or uint8"):
        qlinear_conv2d(data, scale, byte, weight, scale, byte, scale, scale)
    with pytest.raises(UserError, match="qlinear_conv2d: the bias' extent is 3 instead of 4"):
        bias = placeholder((3,), "int32")
        qlinear_conv2d(data, scale, byte, weight, scale, byte, *rest, bias)
