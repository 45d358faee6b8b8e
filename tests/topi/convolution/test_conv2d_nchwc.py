"""Convolution with channels in blocks: te against its meaning, and that against the plain one."""

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


borders = st.tuples(*[st.integers(0, 2)] * 4)
groupings = st.integers(1, 3)


@pytest.mark.search
@given(
    batches, blocks, blocks, sizes, kernels, pairs, borders, pairs, groupings, st.booleans(), seeds
)
def test_conv2d_nchwc_is_its_meaning(
    n, depth, outs, size, kernel, strides, padding, dilation, groups, biased, seed
):
    padded = (size[k] + padding[k] + padding[k + 2] for k in range(2))
    spans = ((kernel[k] - 1) * dilation[k] + 1 for k in range(2))
    assume(all(map(int.__le__, spans, padded)))
    data = integers(seed, n, depth * groups, *size, 3)
    weight = integers(seed + 1, outs * groups, depth, *kernel, 3, 2)
    bias = integers(seed + 2, outs * groups, 2) if biased else None
    attributes = {"strides": strides, "padding": padding, "dilation": dilation}
    assert_same(
        run_te(conv2d_nchwc, data, weight, bias, groups=groups, **attributes),
        conv2d_nchwc_numpy(data, weight, bias, groups=groups, **attributes),
    )


def test_the_meaning_is_that_of_the_plain_layout() -> None:
    data, weight, bias = integers(1, 2, 6, 5, 5), integers(2, 4, 3, 3, 3), integers(3, 4)
    attributes = {"padding": (1, 1, 0, 1), "strides": (2, 1), "groups": 2}
    blocked = weight.reshape(2, 2, 1, 3, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    result = conv2d_nchwc_numpy(block_channels(data, 3), blocked, bias.reshape(2, 2), **attributes)
    assert_same(unblock_channels(result), conv2d_numpy(data, weight, bias, **attributes))


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


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"groups": 2}, "cannot divide 1 output channels into 2 groups"),
        ({"padding": (1, 1)}, r"cannot use the padding \(1, 1\)"),
        ({"dilation": (1,)}, r"cannot have the dilation \(1,\)"),
    ],
)
def test_ill_formed_attributes_are_refused(attributes, message) -> None:
    with pytest.raises(UserError, match=message):
        conv2d_nchwc(*tensors((1, 2, 5, 5, 4), (1, 2, 3, 3, 4, 4)), **attributes)


def test_mixed_dtypes_are_refused() -> None:
    (data,) = tensors((1, 2, 5, 5, 4))
    (weight,) = tensors((1, 2, 3, 3, 4, 4), dtype="float64")
    with pytest.raises(UserError, match="conv2d_nchwc cannot combine f32 with f64"):
        conv2d_nchwc(data, weight)
