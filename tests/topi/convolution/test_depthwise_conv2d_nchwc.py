"""Depthwise convolution with channels in blocks: te against its meaning, and what is refused."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.conv2d_nchwc import block_channels, unblock_channels
from refcomp.topi.convolution.depthwise_conv2d_nchwc import (
    depthwise_conv2d_nchwc,
    depthwise_conv2d_nchwc_numpy,
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

blocks = st.integers(1, 3)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))
borders = st.tuples(*[st.integers(0, 2)] * 4)


@pytest.mark.search
@given(batches, blocks, sizes, kernels, pairs, borders, pairs, st.booleans(), seeds)
def test_it_is_its_meaning(n, depth, size, kernel, strides, padding, dilation, biased, seed):
    padded = (size[k] + padding[k] + padding[k + 2] for k in range(2))
    spans = ((kernel[k] - 1) * dilation[k] + 1 for k in range(2))
    assume(all(map(int.__le__, spans, padded)))
    data = integers(seed, n, depth, *size, 3)
    weight = integers(seed + 1, depth, *kernel, 3)
    bias = integers(seed + 2, depth, 3) if biased else None
    attributes = {"strides": strides, "padding": padding, "dilation": dilation}
    assert_same(
        run_te(depthwise_conv2d_nchwc, data, weight, bias, **attributes),
        depthwise_conv2d_nchwc_numpy(data, weight, bias, **attributes),
    )


def test_the_meaning_is_that_of_as_many_groups_as_channels() -> None:
    data, weight, bias = integers(1, 2, 6, 5, 5), integers(2, 6, 1, 3, 3), integers(3, 6)
    attributes = {"padding": (1, 1, 0, 1), "strides": (2, 1)}
    blocked = weight.reshape(2, 3, 3, 3).transpose(0, 2, 3, 1)
    result = depthwise_conv2d_nchwc_numpy(
        block_channels(data, 3), blocked, bias.reshape(2, 3), **attributes
    )
    expected = conv2d_numpy(data, weight, bias, groups=6, **attributes)
    assert_same(unblock_channels(result), expected)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 2, 5, 5), (2, 3, 3, 4)), "the data has 4 dimensions instead of 5"),
        (((1, 2, 5, 5, 4), (2, 3, 3)), "the weight has 3 dimensions instead of 4"),
        (((1, 2, 5, 5, 4), (3, 3, 3, 4)), "channel blocks is 2 instead of 3"),
        (((1, 2, 5, 5, 4), (2, 3, 3, 8)), "channel block is 4 instead of 8"),
        (((1, 2, 5, 5, 4), (2, 7, 3, 4)), "a window of 7 does not fit in 5"),
        (((1, 2, 5, 5, 4), (2, 3, 3, 4), (3, 4)), "extent is 3 instead of 2"),
        (((1, 2, 5, 5, 4), (2, 3, 3, 4), (8,)), "the bias has 1 dimensions instead of 2"),
    ],
)
def test_ill_formed_convolutions_are_refused(shapes, message) -> None:
    with pytest.raises(UserError, match=message):
        depthwise_conv2d_nchwc(*tensors(*shapes))
