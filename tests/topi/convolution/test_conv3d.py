"""Convolution of volumes: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv3d import conv3d, conv3d_numpy
from tests.strategies.operands import assert_same, run_te, tensors


@pytest.mark.parametrize("layout", ["NCDHW", "NDHWC"])
def test_sums_over_boxes(layout: str) -> None:
    volume = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    shape = {"NCDHW": (1, 1, 3, 3, 3), "NDHWC": (1, 3, 3, 3, 1)}[layout]
    kernel = {"NCDHW": (1, 1, 2, 3, 1), "NDHWC": (2, 3, 1, 1, 1)}[layout]
    operands = (volume.reshape(shape), np.ones(kernel, np.float32))
    found = run_te(conv3d, *operands, layout=layout)
    expected = volume[:2].sum(axis=1) + volume[1:].sum(axis=1)
    np.testing.assert_array_equal(found.reshape(2, 3), expected)
    assert_same(conv3d_numpy(*operands, layout=layout), found)


def test_padding_is_before_and_after_each_axis() -> None:
    data = np.ones((1, 1, 1, 1, 1), np.float32)
    found = run_te(conv3d, data, data, padding=(0, 1, 0, 0, 0, 2))
    expected = np.zeros((1, 1, 1, 2, 3), np.float32)
    expected[0, 0, 0, 1, 0] = 1
    assert_same(found, expected)


def test_ill_formed_convolutions_are_refused() -> None:
    with pytest.raises(UserError, match="conv3d: the data has 4 dimensions instead of 5"):
        conv3d(*tensors((1, 2, 5, 5), (3, 2, 3, 3, 3)))
    with pytest.raises(UserError, match="conv3d: the data's channel extent is 2 instead of 4"):
        conv3d(*tensors((1, 2, 5, 5, 5), (4, 2, 3, 3, 3)), groups=2)
    with pytest.raises(UserError, match="conv3d does not have the layout 'NCHW'"):
        conv3d(*tensors((1, 2, 5, 5, 5), (4, 2, 3, 3, 3)), layout="NCHW")
    with pytest.raises(UserError, match="conv3d cannot use the padding"):
        conv3d(*tensors((1, 2, 5, 5, 5), (4, 2, 3, 3, 3)), padding=(1, 1, 1))
