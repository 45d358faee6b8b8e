"""quantized_conv2d_nchwc: the sums of conv2d_integer, ends of the range, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.operation import placeholder
from refcomp.topi.convolution.conv2d_nchwc import block_channels, unblock_channels
from refcomp.topi.convolution.quantized_conv2d import conv2d_integer_numpy, qlinear_conv2d_numpy
from refcomp.topi.convolution.quantized_conv2d_nchwc import (
    pair_channels_numpy,
    quantized_conv2d_nchwc,
    quantized_conv2d_nchwc_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors

_CASES = [
    {"padding": (1, 1, 0, 1), "strides": (2, 1)},
    {"strides": (2, 2)},
    {"dilation": (2, 1), "padding": (2, 0, 2, 0)},
]


def _image(channels: int, dtype="uint8", size=5):
    rng = np.random.default_rng(channels)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, (2, channels, size, size)).astype(dtype)


@pytest.mark.parametrize("attributes", _CASES, ids=str)
@pytest.mark.parametrize(("block", "kernel"), [(1, 3), (3, 1), (4, 2)])
def test_sums_are_those_of_the_plain_layout(block, kernel, attributes) -> None:
    data = _image(2 * block)
    rng = np.random.default_rng(1)
    weight = rng.integers(-255, 256, (8, 2 * block, kernel, kernel))
    zero = np.array(7, np.uint8)
    operands = (block_channels(data, block), pair_channels_numpy(weight, block, 4), None, None)
    found = run_te(quantized_conv2d_nchwc, *operands, zero, is_symbolic=False, **attributes)
    expected = conv2d_integer_numpy(data, weight, zero, **attributes)
    assert_same(unblock_channels(found), expected)
    assert_same(quantized_conv2d_nchwc_numpy(*operands, zero, **attributes), found)


def test_groups_read_their_own_blocks() -> None:
    data = _image(4, "int8")
    weight = np.random.default_rng(1).integers(-128, 128, (8, 2, 3, 3))
    packed = pair_channels_numpy(weight, 2, 4)
    blocked = block_channels(data, 2)
    found = run_te(quantized_conv2d_nchwc, blocked, packed, is_symbolic=False, groups=2)
    assert_same(unblock_channels(found), conv2d_integer_numpy(data, weight, groups=2))


def test_results_are_scaled_and_rounded_as_in_the_plain_layout() -> None:
    data = _image(4)
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)
    bias = rng.integers(-9999, 9999, 4).astype(np.int32)
    scales = np.float32(0.5), np.array([1, 0.5, 2, 4], np.float32), np.float32(512)
    zeros = np.array(100, np.uint8), np.zeros(4, np.int8), np.array(-3, np.int8)
    expected = qlinear_conv2d_numpy(
        data, scales[0], zeros[0], weight, scales[1], zeros[1], scales[2], zeros[2], bias
    )
    ratio = (scales[0] * scales[1] / scales[2]).reshape(2, 2)
    packed = pair_channels_numpy(weight, 4, 2)
    operands = (block_channels(data, 4), packed, ratio, bias.reshape(2, 2), zeros[0], zeros[2])
    found = run_te(quantized_conv2d_nchwc, *operands, is_symbolic=False)
    assert_same(unblock_channels(found), expected)
    assert len(np.unique(expected)) > 20
    assert_same(quantized_conv2d_nchwc_numpy(*operands), found)


def test_a_ratio_of_one_number_and_no_zero_point() -> None:
    data = np.array([10, 3], np.int8).reshape(1, 1, 1, 1, 2)
    weight = pair_channels_numpy(np.array([10, 3]).reshape(1, 2, 1, 1), 2, 1)
    for ratio in (np.array(0.5, np.float32), np.array([0.5])):
        found = run_te(quantized_conv2d_nchwc, data, weight, ratio, is_symbolic=False)
        assert found.dtype == np.int8
        assert found.item() == 54  # 54.5, to even
        assert quantized_conv2d_nchwc_numpy(data, weight, ratio).item() == 54


def _refused(match: str, *operands, **attributes) -> None:
    with pytest.raises(UserError, match=match):
        quantized_conv2d_nchwc(*operands, **attributes)


def test_ill_formed_operands_are_refused() -> None:
    data = placeholder((1, 2, 5, 5, 3), "int8")
    weight = placeholder((4, 2, 3, 3, 2, 8), "int32")
    assert quantized_conv2d_nchwc(data, weight).shape[1].value == 4
    _refused("the data is f32, not int8 or uint8", *tensors((1, 2, 5, 5, 3)), weight)
    _refused("the data has 4 dimensions instead of 5", *tensors((1, 2, 5, 5), dtype="int8"), weight)
    _refused("the weight is i8, not int32", data, placeholder((4, 2, 3, 3, 2, 8), "int8"))
    _refused("the weight has 5 dimensions instead of 6", data, placeholder((4,) * 5, "int32"))
    wide = placeholder((4, 2, 3, 3, 3, 8), "int32")
    _refused("the number of pairs in a channel block is 3 instead of 2", data, wide)
    _refused("the number of the data's channel blocks is 2 instead of 4", data, weight, groups=2)
    _refused("cannot divide 4 output channels into 3 groups", data, weight, groups=3)
    point, byte = placeholder((), "int8"), placeholder((), "uint8")
    _refused(
        "a zero point of the result is given without a ratio", data, weight, y_zero_point=point
    )
    _refused("cannot combine i8 with u8", data, weight, data_zero_point=byte)
    _refused("the ratio is i32, not float32", data, weight, placeholder((), "int32"))
    _refused("the ratio's extent is 3 instead of 8", data, weight, placeholder((4, 3)))
    _refused("the ratio's extent is 3 instead of 1", data, weight, placeholder((3,)))
    _refused("the bias is f32, not int32", data, weight, bias=placeholder((4, 8)))
    _refused("the bias' extent is 2 instead of 4", data, weight, bias=placeholder((2, 8), "int32"))
    one, two = placeholder(()), placeholder((2,), "int8")
    _refused(
        "the result's zero point's extent is 2 instead of 1", data, weight, one, y_zero_point=two
    )
