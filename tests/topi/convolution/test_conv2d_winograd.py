"""Winograd's convolution: exact on small integers, NaN by tiles, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.conv2d_winograd import (
    conv2d_winograd,
    conv2d_winograd_numpy,
    conv2d_winograd_weight_transform,
    conv2d_winograd_weight_transform_numpy,
    conv2d_winograd_without_weight_transform,
    conv2d_winograd_without_weight_transform_numpy,
)
from tests.strategies.operands import assert_same, integers, run_te, tensors


@pytest.mark.parametrize("tile_size", [2, 4])
def test_small_integers_are_convolved(tile_size: int) -> None:
    data, weight = integers(1, 2, 3, 6, 5), integers(2, 2, 3, 3, 3)
    bias = integers(3, 2)
    how = {"padding": (1, 0, 1, 2)}
    found = run_te(conv2d_winograd, data, weight, bias, **how, tile_size=tile_size)
    expected = conv2d_numpy(data, weight, bias, **how)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert_same(conv2d_winograd_numpy(data, weight, bias, **how, tile_size=tile_size), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_spoil_their_tiles(bad: float) -> None:
    data, weight = integers(1, 1, 1, 8, 8), integers(2, 1, 1, 3, 3)
    data[0, 0, 0, 0] = bad
    found = run_te(conv2d_winograd, data, weight, tile_size=2)
    expected = np.zeros((6, 6), bool)
    expected[:2, :2] = True
    np.testing.assert_array_equal(np.isnan(found[0, 0]), expected)
    meant = conv2d_winograd_numpy(data, weight, tile_size=2)
    np.testing.assert_array_equal(np.isnan(meant[0, 0]), expected)


def test_ill_formed_convolutions_are_refused() -> None:
    with pytest.raises(UserError, match="does not take kernels of 3 x 5"):
        conv2d_winograd(*tensors((1, 2, 5, 5), (4, 2, 3, 5)))
    with pytest.raises(UserError, match="conv2d_winograd does not have tiles of 3"):
        conv2d_winograd(*tensors((1, 2, 5, 5), (4, 2, 3, 3)), tile_size=3)
    with pytest.raises(UserError, match="conv2d_winograd takes float tensors, not i32"):
        conv2d_winograd(*tensors((1, 2, 5, 5), (4, 2, 3, 3), dtype="int32"))
    with pytest.raises(UserError, match="the data's channel extent is 2 instead of 1"):
        conv2d_winograd(*tensors((1, 2, 5, 5), (4, 1, 3, 3)))
    with pytest.raises(UserError, match="height or width must be a constant"):
        conv2d_winograd(*tensors((1, 2, var("h"), 5), (4, 2, 3, 3)))
    with pytest.raises(UserError, match="conv2d_winograd cannot use the padding"):
        conv2d_winograd(*tensors((1, 2, 5, 5), (4, 2, 3, 3)), padding=(1, 1))


@pytest.mark.parametrize("tile_size", [2, 4])
def test_kernels_may_be_transformed_in_advance(tile_size: int) -> None:
    data, weight = integers(1, 2, 3, 6, 5), integers(2, 2, 3, 3, 3)
    bias = integers(3, 2)
    how = {"padding": (1, 0, 1, 2)}
    kernels = conv2d_winograd_weight_transform_numpy(weight.astype(np.float64), tile_size=tile_size)
    found = conv2d_winograd_without_weight_transform_numpy(
        data.astype(np.float64), kernels, bias, **how, tile_size=tile_size
    )
    np.testing.assert_allclose(found, conv2d_numpy(data, weight, bias, **how), atol=1e-12)


def test_ill_formed_transforms_are_refused() -> None:
    name = "conv2d_winograd_weight_transform"
    with pytest.raises(UserError, match=f"{name} does not take kernels of 5 x 3"):
        conv2d_winograd_weight_transform(*tensors((4, 2, 5, 3)))
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i8"):
        conv2d_winograd_weight_transform(*tensors((4, 2, 3, 3), dtype="int8"))
    with pytest.raises(UserError, match=f"{name} does not have tiles of 6"):
        conv2d_winograd_weight_transform(*tensors((4, 2, 3, 3)), tile_size=6)
    operator = conv2d_winograd_without_weight_transform
    with pytest.raises(UserError, match="the edge of the weight is 4 instead of 6"):
        operator(*tensors((1, 2, 5, 5), (4, 4, 3, 2)))
    with pytest.raises(UserError, match="the data's channel extent is 2 instead of 3"):
        operator(*tensors((1, 2, 5, 5), (6, 6, 2, 3)))
    with pytest.raises(UserError, match="transform: the bias' extent is 2 instead of 3"):
        operator(*tensors((1, 2, 5, 5), (6, 6, 3, 2), (2,)))
