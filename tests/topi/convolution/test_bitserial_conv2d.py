"""Bit-serial convolution: against the convolution of the numbers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.bitserial_conv2d import bitserial_conv2d, bitserial_conv2d_numpy
from refcomp.topi.convolution.conv2d import conv2d_numpy
from tests.strategies.operands import assert_same, run_te, tensors

RANDOM = np.random.default_rng(5)
DATA = RANDOM.integers(0, 4, (1, 9, 4, 4), np.uint8)
WEIGHT = RANDOM.integers(0, 2, (2, 9, 3, 3), np.uint8)


@pytest.mark.parametrize("unipolar", [True, False])
@pytest.mark.parametrize("pack_dtype", ["uint8", "uint32"])
def test_it_is_the_convolution_of_what_bits_mean(unipolar: bool, pack_dtype: str) -> None:
    how = {"padding": (1, 1, 0, 1), "strides": (1, 2)}
    factors = 2 * WEIGHT.astype(np.int32) - 1 if unipolar else WEIGHT.astype(np.int32)
    expected = conv2d_numpy(DATA.astype(np.int32), factors, **how)
    how.update(data_bits=2, weight_bits=1, unipolar=unipolar, pack_dtype=pack_dtype)
    assert_same(run_te(bitserial_conv2d, DATA, WEIGHT, **how), expected)
    assert_same(bitserial_conv2d_numpy(DATA, WEIGHT, **how), expected)
    last = (DATA.transpose(0, 2, 3, 1).copy(), WEIGHT.transpose(2, 3, 1, 0).copy())
    found = run_te(bitserial_conv2d, *last, layout="NHWC", **how)
    assert_same(found, expected.transpose(0, 2, 3, 1))


def test_ill_formed_convolutions_are_refused() -> None:
    data, weight = tensors((1, 2, 5, 5), (4, 2, 3, 3), dtype="uint8")
    bits = {"data_bits": 2, "weight_bits": 1}
    name = "bitserial_conv2d"
    with pytest.raises(UserError, match=f"{name} does not have the layout 'HWCN'"):
        bitserial_conv2d(data, weight, layout="HWCN", **bits)
    with pytest.raises(UserError, match="the data's channel extent is 5 instead of 3"):
        bitserial_conv2d(data, weight, layout="NHWC", **bits)
    with pytest.raises(UserError, match=f"{name} cannot take 9 bits of u8"):
        bitserial_conv2d(data, weight, data_bits=9, weight_bits=1)
    with pytest.raises(UserError, match=f"{name} cannot pack bits into i8"):
        bitserial_conv2d(data, weight, pack_dtype="int8", **bits)
    with pytest.raises(UserError, match=f"{name} cannot add up counts of bits in u32"):
        bitserial_conv2d(data, weight, out_dtype="uint32", **bits)
    with pytest.raises(UserError, match=f"{name} cannot take 2 bits of f32"):
        bitserial_conv2d(*tensors((1, 2, 5, 5), (4, 2, 3, 3)), **bits)
    with pytest.raises(UserError, match=f"{name}: the data has 3 dimensions instead of 4"):
        bitserial_conv2d(*tensors((1, 2, 5), (4, 2, 3, 3), dtype="uint8"), **bits)
