"""Winograd's convolution on blocks: exact on small integers, NaN by tiles, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.conv2d_nchwc import block_channels, unblock_channels
from refcomp.topi.convolution.conv2d_nchwc_winograd import (
    conv2d_nchwc_winograd,
    conv2d_nchwc_winograd_numpy,
    conv2d_nchwc_winograd_weight,
    conv2d_nchwc_winograd_weight_numpy,
)
from refcomp.topi.convolution.conv2d_winograd import conv2d_winograd_weight_transform_numpy
from tests.strategies.operands import (
    assert_same,
    batches,
    floats,
    integers,
    run_te,
    seeds,
    tensors,
)

blocks = st.integers(1, 2)
sizes = st.tuples(st.integers(3, 6), st.integers(3, 6))
borders = st.tuples(*[st.integers(0, 2)] * 4)
IMAGE, KERNELS = (1, 2, 5, 5, 4), (4, 4, 1, 2, 4, 4)


@pytest.mark.search
@given(batches, blocks, blocks, sizes, borders, st.booleans(), seeds)
def test_compute_is_its_meaning(n, depth, outs, size, padding, biased, seed):
    data = integers(seed, n, depth, *size, 3)
    weight = integers(seed + 1, 4, 4, outs, depth, 3, 2)
    bias = integers(seed + 2, outs, 2) if biased else None
    assert_same(
        run_te(conv2d_nchwc_winograd, data, weight, bias, padding=padding),
        conv2d_nchwc_winograd_numpy(data, weight, bias, padding=padding),
    )


def test_kernels_are_transformed_as_in_the_plain_layout() -> None:
    weight = integers(1, 2, 3, 3, 3, 2, 4)
    found = run_te(conv2d_nchwc_winograd_weight, weight, is_symbolic=False)
    assert_same(found, conv2d_nchwc_winograd_weight_numpy(weight))
    plain = weight.transpose(0, 5, 1, 4, 2, 3).reshape(8, 6, 3, 3)
    expected = conv2d_winograd_weight_transform_numpy(plain, tile_size=2)
    assert_same(found.transpose(0, 1, 2, 5, 3, 4).reshape(4, 4, 8, 6), expected)


@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 2, 0)])
def test_small_integers_are_convolved(padding: tuple[int, ...]) -> None:
    data, plain, bias = integers(1, 2, 6, 5, 6), integers(2, 4, 6, 3, 3), integers(3, 4)
    weight = plain.reshape(2, 2, 2, 3, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    kernels = conv2d_nchwc_winograd_weight_numpy(weight)
    how = {"padding": padding}
    blocked = block_channels(data, 3), kernels, bias.reshape(2, 2)
    expected = conv2d_numpy(data, plain, bias, **how)
    assert_same(unblock_channels(run_te(conv2d_nchwc_winograd, *blocked, **how)), expected)
    assert_same(unblock_channels(conv2d_nchwc_winograd_numpy(*blocked, **how)), expected)


def test_the_error_is_about_that_of_direct_sums() -> None:
    data, plain = floats(1, 1, 64, 8, 8), floats(2, 16, 64, 3, 3)
    exact = conv2d_numpy(data.astype(np.float64), plain.astype(np.float64))
    weight = plain.reshape(1, 16, 4, 16, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    kernels = conv2d_nchwc_winograd_weight_numpy(np.ascontiguousarray(weight))
    found = run_te(conv2d_nchwc_winograd, block_channels(data, 16), kernels)
    error = np.abs(unblock_channels(found) - exact).max()
    assert error < 2e-6 * np.abs(exact).max()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_spoil_only_their_tile(bad: float) -> None:
    data, weight = integers(1, 1, 1, 8, 8, 1), integers(2, 4, 4, 1, 1, 1, 1)
    data[0, 0, 0, 0] = bad
    found = run_te(conv2d_nchwc_winograd, data, weight)
    meant = conv2d_nchwc_winograd_numpy(data, weight)
    for result in (found, meant):
        is_spoilt = ~np.isfinite(result[0, 0, :, :, 0])
        assert is_spoilt[0, 0]
        assert not is_spoilt[2:].any()
        assert not is_spoilt[:, 2:].any()
    np.testing.assert_array_equal(found, meant)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ((IMAGE[1:], KERNELS), "the data has 4 dimensions instead of 5"),
        ((IMAGE, KERNELS[1:]), "the weight has 5 dimensions instead of 6"),
        ((IMAGE, KERNELS, (4,)), "the bias has 1 dimensions instead of 2"),
        ((IMAGE, (4, 3, 1, 2, 4, 4)), "the edge of the weight is 3 instead of 4"),
        ((IMAGE, (4, 4, 1, 3, 4, 4)), "channel blocks is 2 instead of 3"),
        ((IMAGE, (4, 4, 1, 2, 8, 4)), "channel block is 4 instead of 8"),
        ((IMAGE, KERNELS, (2, 4)), "the bias' extent is 2 instead of 1"),
        (((1, 2, 2, 5, 4), KERNELS), "a window of 3 does not fit in 2"),
        (((1, 2, var("h"), 5, 4), KERNELS), "height or width must be a constant"),
        ((IMAGE, (4, 4, var("o"), 2, 4, 4)), "the weight's shape must be a constant"),
    ],
)
def test_ill_formed_convolutions_are_refused(shapes, message) -> None:
    with pytest.raises(UserError, match=message):
        conv2d_nchwc_winograd(*tensors(*shapes))


def test_other_dtypes_and_paddings_are_refused() -> None:
    with pytest.raises(UserError, match="conv2d_nchwc_winograd takes float tensors, not i32"):
        conv2d_nchwc_winograd(*tensors(IMAGE, KERNELS, dtype="int32"))
    with pytest.raises(UserError, match="conv2d_nchwc_winograd does not take tensors of f16"):
        conv2d_nchwc_winograd(*tensors(IMAGE, KERNELS, dtype="float16"))
    with pytest.raises(UserError, match="conv2d_nchwc_winograd cannot combine f32 with f64"):
        conv2d_nchwc_winograd(*tensors(IMAGE), *tensors(KERNELS, dtype="float64"))
    with pytest.raises(UserError, match="conv2d_nchwc_winograd cannot use the padding"):
        conv2d_nchwc_winograd(*tensors(IMAGE, KERNELS), padding=(1, 1))


def test_ill_formed_kernels_are_refused() -> None:
    name = "conv2d_nchwc_winograd_weight"
    with pytest.raises(UserError, match=f"{name} does not take kernels of 5 x 3"):
        conv2d_nchwc_winograd_weight(*tensors((1, 2, 5, 3, 4, 4)))
    with pytest.raises(UserError, match="the weight has 4 dimensions instead of 6"):
        conv2d_nchwc_winograd_weight(*tensors((1, 2, 3, 3)))
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i8"):
        conv2d_nchwc_winograd_weight(*tensors((1, 2, 3, 3, 4, 4), dtype="int8"))
