"""Convolution of sequences: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv1d import conv1d, conv1d_numpy
from tests.strategies.operands import assert_same, run_te, tensors


@pytest.mark.parametrize("layout", ["NCW", "NWC"])
def test_both_layouts_agree_with_numpy(layout: str) -> None:
    x, w = np.array([1, 2, 3, 4, 5], np.float32), np.array([1, 10, 100], np.float32)
    expected = np.correlate(x, w, "valid")[::2]
    shape = {"NCW": ((1, 1, 5), (1, 1, 3)), "NWC": ((1, 5, 1), (3, 1, 1))}[layout]
    operands = (x.reshape(shape[0]), w.reshape(shape[1]))
    found = run_te(conv1d, *operands, layout=layout, strides=(2,))
    np.testing.assert_array_equal(found.ravel(), expected)
    assert_same(conv1d_numpy(*operands, layout=layout, strides=(2,)), found)


def test_sums_of_bytes_need_not_wrap() -> None:
    data = np.full((1, 2, 1), 100, np.int8)
    expected = np.array([[[20007]]], np.int32)
    bias = np.array([7], np.int32)
    assert_same(run_te(conv1d, data, data, bias, out_dtype="int32"), expected)
    assert_same(run_te(conv1d, data, data), np.array([[[20000 % 256]]], np.int8))


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 2, 5, 1), (3, 2, 3)), {}, "conv1d: the data has 4 dimensions instead of 3"),
        (((1, 2, 5), (3, 2)), {}, "conv1d: the weight has 2 dimensions instead of 3"),
        (((1, 2, 5), (3, 3, 3)), {}, "the data's channel extent is 2 instead of 3"),
        (((1, 2, 5), (3, 1, 3)), {"groups": 2}, "conv1d cannot divide 3 output channels"),
        (((1, 2, 5), (3, 2, 7)), {}, "a window of 7 does not fit in 5 elements"),
        (((1, 2, 5), (3, 2, 3)), {"strides": (1, 1)}, "conv1d cannot have the strides"),
        (((1, 2, 5), (3, 2, 3)), {"padding": (1,)}, "conv1d cannot use the padding"),
        (((1, 2, 5), (3, 2, 3)), {"layout": "NHWC"}, "does not have the layout 'NHWC'"),
        (((1, 2, 5), (3, 2, 3), (4,)), {}, "conv1d: the bias' extent is 4 instead of 3"),
        (((1, 2, 5), (3, 2, 3)), {"out_dtype": "int64"}, "add up products of f32 in i64"),
    ],
)
def test_ill_formed_convolutions_are_refused(shapes, options, message) -> None:
    with pytest.raises(UserError, match=message):
        conv1d(*tensors(*shapes), **options)
