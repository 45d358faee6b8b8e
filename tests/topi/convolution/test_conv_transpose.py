"""Transposed convolutions as operators: extents, borders, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv_transpose import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_elements_without_a_window_are_the_bias() -> None:
    x, w = np.array([[[1, 10]]], np.float32), np.array([[[2]]], np.float32)
    found = run_te(
        conv1d_transpose, x, w, np.ones(1, np.float32), strides=(3,), output_padding=(2,)
    )
    assert_same(found, np.array([[[3, 1, 1, 21, 1, 1]]], np.float32))


def test_nan_spreads_over_its_window() -> None:
    x = np.array([[[np.nan, 1]]], np.float32)
    found = run_te(conv1d_transpose, x, np.ones((1, 1, 2), np.float32), strides=(2,))
    np.testing.assert_array_equal(found.ravel(), [np.nan, np.nan, 1, 1])


def test_padding_may_cut_off_the_window_of_the_first_element() -> None:
    x = np.arange(1, 4, dtype=np.float32).reshape(1, 1, 3)
    found = run_te(conv1d_transpose, x, np.ones((1, 1, 1), np.float32), padding=(1, 1))
    assert_same(found, np.array([[[2]]], np.float32))


@pytest.mark.parametrize("operator", [conv1d_transpose, conv2d_transpose, conv3d_transpose])
def test_stride_two_doubles_the_extents(operator) -> None:
    rank = {conv1d_transpose: 1, conv2d_transpose: 2, conv3d_transpose: 3}[operator]
    data, weight = tensors((1, 2, *[4] * rank), (2, 3, *[4] * rank))
    made = operator(data, weight, strides=(2,) * rank, padding=(1,) * (2 * rank))
    assert [int(extent) for extent in made.shape] == [1, 3, *[8] * rank]


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 2, 5), (2, 3, 3, 3)), {}, "the data has 3 dimensions instead of 4"),
        (((1, 2, 5, 5), (3, 3, 3)), {}, "the weight has 3 dimensions instead of 4"),
        (((1, 2, 5, 5), (3, 2, 3, 3)), {}, "the data's channel extent is 2 instead of 3"),
        (((1, 3, 5, 5), (3, 2, 3, 3)), {"groups": 2}, "divide 3 channels into 2 groups"),
        (((1, 2, 5, 5), (2, 3, 3, 3)), {"strides": (1,)}, "cannot have the strides"),
        (((1, 2, 5, 5), (2, 3, 3, 3)), {"output_padding": (1, 0)}, "the output padding"),
        (((1, 2, 5, 5), (2, 3, 3, 3)), {"output_padding": (-1, 0)}, "the output padding"),
        (((1, 2, 1, 5), (2, 3, 1, 1)), {"padding": (1, 0, 0, 0)}, "cuts off all elements along H"),
        (((1, 2, 5, 5), (2, 3, 3, 3)), {"layout": "NCW"}, "does not have the layout 'NCW'"),
        (((1, 2, 5, 5), (2, 3, 3, 3), (2,)), {}, "the bias' extent is 2 instead of 3"),
    ],
)
def test_ill_formed_convolutions_are_refused(shapes, options, message) -> None:
    with pytest.raises(UserError, match=f"conv2d_transpose.*{message}"):
        conv2d_transpose(*tensors(*shapes), **options)


def test_layouts_of_other_ranks_are_refused() -> None:
    with pytest.raises(UserError, match="conv1d_transpose does not have the layout 'NCHW'"):
        conv1d_transpose(*tensors((1, 2, 5), (2, 3, 3)), layout="NCHW")
    with pytest.raises(UserError, match="conv3d_transpose: the weight has 3 dimensions"):
        conv3d_transpose(*tensors((1, 2, 5, 5, 5), (2, 3, 3)))
