"""Deformable convolution: offsets, masks, borders, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv2d import conv2d_numpy
from refcomp.topi.convolution.deformable_conv2d import deformable_conv2d, deformable_conv2d_numpy
from tests.strategies.operands import assert_same, integers, run_te, tensors


def _moved(operands: tuple, **how: object) -> np.ndarray:
    found = run_te(deformable_conv2d, *operands, is_symbolic=False, **how)
    assert_same(deformable_conv2d_numpy(*operands, **how), found)
    return found


def test_without_offsets_it_is_conv2d() -> None:
    data, weight = integers(1, 2, 4, 5, 4), integers(2, 4, 2, 2, 3)
    how = {"strides": (2, 1), "padding": (1, 0, 0, 2), "dilation": (2, 1), "groups": 2}
    expected = conv2d_numpy(data, weight, **how)
    offset = np.zeros((2, 12, *expected.shape[2:]), np.float32)
    assert_same(_moved((data, offset, weight), **how), expected)


def test_positions_between_and_outside_of_pixels() -> None:
    data = np.array([[[[8, 16]]]], np.float32)
    one = np.ones((1, 1, 1, 1), np.float32)
    cases = {0.5: 12, -0.75: 2, -1: 0, 1.5: 8, 2: 0, np.nan: 0, np.inf: 0, -np.inf: 0, 1e30: 0}
    for across, expected in cases.items():
        offset = np.zeros((1, 2, 1, 2), np.float32)
        offset[0, 1, 0, 0] = across
        assert _moved((data, offset, one))[0, 0, 0, 0] == expected, across
        turned = offset[:, ::-1].transpose(0, 1, 3, 2).copy()
        found = _moved((data.transpose(0, 1, 3, 2).copy(), turned, one))
        assert found[0, 0, 0, 0] == expected, across


def test_masks_scale_and_groups_have_their_own_offsets() -> None:
    data = np.array([[[[1, 2]], [[10, 20]]]], np.float32)
    weight = np.ones((1, 2, 1, 1), np.float32)
    offset = np.zeros((1, 4, 1, 2), np.float32)
    offset[0, 3] = 1  # across, of the second group
    mask = np.array([[[[1, 0]], [[0.5, 1]]]], np.float32)
    found = _moved((data, offset, weight, None, mask), offset_groups=2)
    np.testing.assert_array_equal(found.ravel(), [1 + 10, 0])


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 2, 5), (1, 18, 3, 3), (4, 2, 3, 3)), {}, "the data has 3 dimensions instead of 4"),
        (((1, 2, 5, 5), (1, 18, 3), (4, 2, 3, 3)), {}, "the offset has 3 dimensions"),
        (
            ((1, 2, 5, 5), (1, 9, 3, 3), (4, 2, 3, 3)),
            {},
            "offset's extent 1 is 9 instead of 18",
        ),
        (
            ((1, 2, 5, 5), (1, 18, 3, 5), (4, 2, 3, 3)),
            {},
            "offset's extent 3 is 5 instead of 3",
        ),
        (((1, 2, 5, 5), (1, 18, 3, 3), (4, 3, 3, 3)), {}, "channel extent is 2 instead of 3"),
        (
            ((1, 2, 5, 5), (1, 54, 3, 3), (4, 2, 3, 3)),
            {"offset_groups": 3},
            "cannot divide 2 channels into 3 groups of offsets",
        ),
        (
            ((1, 2, 5, 5), (1, 18, 3, 3), (4, 2, 3, 3), (4,), (1, 18, 3, 3)),
            {},
            "the mask's extent 1 is 18 instead of 9",
        ),
        (((1, 2, 5, 5), (1, 18, 3, 3), (4, 2, 3, 3), (3,)), {}, "the bias' extent is 3"),
    ],
)
def test_ill_formed_convolutions_are_refused(shapes, options, message) -> None:
    with pytest.raises(UserError, match=f"deformable_conv2d.*{message}"):
        deformable_conv2d(*tensors(*shapes), **options)


def test_integers_are_refused() -> None:
    operands = tensors((1, 2, 5, 5), (1, 18, 3, 3), (4, 2, 3, 3), dtype="int32")
    with pytest.raises(UserError, match="deformable_conv2d takes float tensors, not i32"):
        deformable_conv2d(*operands)
