"""quantized_depthwise_conv2d_nchwc: the sums of conv2d_integer, scales, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.operation import placeholder
from refcomp.topi.convolution.conv2d_nchwc import block_channels, unblock_channels
from refcomp.topi.convolution.quantized_conv2d import conv2d_integer_numpy
from refcomp.topi.convolution.quantized_depthwise_conv2d_nchwc import (
    quantized_depthwise_conv2d_nchwc,
    quantized_depthwise_conv2d_nchwc_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


@pytest.mark.parametrize(
    "attributes",
    [{"padding": (1, 1, 0, 1), "strides": (2, 1)}, {}, {"dilation": (2, 2)}],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_sums_are_those_of_the_plain_layout(dtype, attributes) -> None:
    rng = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    data = rng.integers(limits.min, limits.max + 1, (2, 6, 6, 6)).astype(dtype)
    weight = rng.integers(-255, 256, (6, 1, 3, 2)).astype(np.int16)
    zero = np.array([limits.max], dtype)
    blocks = weight.reshape(2, 3, 3, 2).transpose(0, 2, 3, 1)
    operands = (block_channels(data, 3), blocks, None, None, zero)
    found = run_te(quantized_depthwise_conv2d_nchwc, *operands, is_symbolic=False, **attributes)
    expected = conv2d_integer_numpy(data, weight.astype(np.int32), zero, groups=6, **attributes)
    assert_same(unblock_channels(found), expected)
    assert_same(quantized_depthwise_conv2d_nchwc_numpy(*operands, **attributes), found)


def test_results_are_scaled_after_the_bias() -> None:
    data = np.array([[3, 4]], np.uint8).reshape(1, 1, 1, 1, 2)
    weight = np.array([2, -2], np.int16).reshape(1, 1, 1, 2)
    ratio = np.array([[0.5, 0.25]], np.float32)
    bias = np.array([[1, -6]], np.int32)
    zero = np.array(10, np.uint8)
    operands = (data, weight, ratio, bias, None, zero)
    found = run_te(quantized_depthwise_conv2d_nchwc, *operands, is_symbolic=False)
    assert found.tolist() == [[[[[14, 6]]]]]  # 3.5 and -3.5, to even, plus 10
    assert_same(quantized_depthwise_conv2d_nchwc_numpy(*operands), found)


def _refused(match: str, *operands, **attributes) -> None:
    with pytest.raises(UserError, match=match):
        quantized_depthwise_conv2d_nchwc(*operands, **attributes)


def test_ill_formed_operands_are_refused() -> None:
    data, weight = placeholder((1, 2, 5, 5, 8), "int8"), placeholder((2, 3, 3, 8), "int16")
    _refused("the data is f32, not int8 or uint8", *tensors((1, 2, 5, 5, 8)), weight)
    _refused("the weight is i8, not int16", data, placeholder((2, 3, 3, 8), "int8"))
    _refused("the weight has 3 dimensions instead of 4", data, placeholder((2, 3, 8), "int16"))
    other = placeholder((3, 3, 3, 8), "int16")
    _refused("the number of the data's channel blocks is 2 instead of 3", data, other)
    other = placeholder((2, 3, 3, 4), "int16")
    _refused("the data's channel block is 8 instead of 4", data, other)
    point = placeholder((), "int8")
    _refused("zero point of the result is given without a ratio", data, weight, y_zero_point=point)
