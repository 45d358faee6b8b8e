"""Convolution with channels in blocks: te against its meaning, and that against the plain one."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.conv2d_nchwc import (
    block_channels,
    conv2d_nchwc,
    conv2d_nchwc_numpy,
    unblock_channels,
)
from tests.strategies.operands import (
    assert_same,
    batches,
    integers,
    kernels,
    pairs,
    run_te,
    seeds,
    tensors,
)

blocks = st.integers(1, 2)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))


@pytest.mark.search
@given(batches, blocks, blocks, sizes, kernels, pairs, st.booleans(), seeds)
def test_conv2d_nchwc_is_its_meaning(n, depth, outs, size, kernel, strides, biased, seed):
    assume(kernel[0] <= size[0] and kernel[1] <= size[1])
    data = integers(seed, n, depth, *size, 3)
    weight = integers(seed + 1, outs, depth, *kernel, 3, 2)
    bias = integers(seed + 2, outs, 2) if biased else None
    assert_same(
        run_te(conv2d_nchwc, data, weight, bias, strides=strides),
        conv2d_nchwc_numpy(data, weight, bias, strides=strides),
    )


def test_the_meaning_is_that_of_the_plain_layout_with_zeros_around_it() -> None:
    data, weight, bias = integers(1, 2, 6, 5, 5), integers(2, 4, 6, 3, 3), integers(3, 4)
    halo = np.zeros((2, 2, 7, 7, 3), np.float32)
    halo[:, :, 1:-1, 1:-1] = block_channels(data, 3)
    blocked = weight.reshape(2, 2, 2, 3, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    result = conv2d_nchwc_numpy(halo, blocked, bias.reshape(2, 2))
    expected = conv2d_numpy(data, weight, bias, padding=(1, 1, 1, 1))
    assert_same(unblock_channels(result), expected)


def test_blocks_and_back() -> None:
    data = integers(4, 2, 6, 3, 5)
    blocked = block_channels(data, 2)
    assert blocked.shape == (2, 3, 3, 5, 2)
    assert blocked[1, 2, 0, 4, 1] == data[1, 5, 0, 4]
    assert_same(unblock_channels(blocked), data)


@pytest.mark.parametrize(
    ("shapes", "strides", "message"),
    [
        (((1, 2, 5, 5), (1, 2, 3, 3, 4, 4)), (1, 1), "the data has 4 dimensions instead of 5"),
        (((1, 2, 5, 5, 4), (1, 2, 3, 3)), (1, 1), "the weight has 4 dimensions instead of 6"),
        (((1, 2, 5, 5, 4), (1, 3, 3, 3, 4, 4)), (1, 1), "channel blocks is 2 instead of 3"),
        (((1, 2, 5, 5, 4), (1, 2, 3, 3, 8, 4)), (1, 1), "channel block is 4 instead of 8"),
        (((1, 2, 5, 5, 4), (1, 2, 7, 3, 4, 4)), (1, 1), "a window of 7 does not fit in 5"),
        (((1, 2, 5, 5, 4), (1, 2, 3, 3, 4, 4)), (0, 1), r"strides \(0, 1\)"),
        (((1, 2, 5, 5, 4), (1, 2, 3, 3, 4, 4), (2, 4)), (1, 1), "extent is 2 instead of 1"),
    ],
)
def test_ill_formed_convolutions_are_refused(shapes, strides, message) -> None:
    with pytest.raises(UserError, match=message):
        conv2d_nchwc(*tensors(*shapes), strides=strides)


def test_mixed_dtypes_are_refused() -> None:
    (data,) = tensors((1, 2, 5, 5, 4))
    (weight,) = tensors((1, 2, 3, 3, 4, 4), dtype="float64")
    with pytest.raises(UserError, match="conv2d_nchwc cannot combine f32 with f64"):
        conv2d_nchwc(data, weight)
