"""Gradients of depthwise convolutions as operators: against te.gradient, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.depthwise_conv2d import depthwise_conv2d_nhwc
from refcomp.topi.convolution.depthwise_gradients import (
    depthwise_conv2d_backward_input_nhwc,
    depthwise_conv2d_backward_weight_nhwc,
)
from tests.strategies.operands import integers, tensors


@pytest.mark.parametrize(
    "how", [{}, {"strides": (2, 3), "padding": (1, 0, 2, 1)}, {"dilation": (2, 1)}]
)
def test_both_are_gradients(how: dict) -> None:
    x, w = integers(1, 2, 5, 6, 3), integers(2, 2, 3, 3, 2)
    data, weight = tensors(x.shape, w.shape)
    result = depthwise_conv2d_nhwc(data, weight, **how)
    (head,) = tensors(result.shape)
    g = integers(3, *(int(extent) for extent in result.shape))
    made = [
        depthwise_conv2d_backward_input_nhwc(head, weight, size=(5, 6), **how),
        depthwise_conv2d_backward_weight_nhwc(head, data, kernel_size=(2, 3), **how),
    ]
    expected = rc.te.gradient(result, [data, weight], head)
    feeds = {data: x, weight: w, head: g}
    for found, meant in zip(
        rc.oracle.evaluate(made, feeds), rc.oracle.evaluate(expected, feeds), strict=True
    ):
        np.testing.assert_array_equal(found, meant)


def test_ill_formed_gradients_are_refused() -> None:
    grad, weight, data = tensors((1, 3, 3, 4), (3, 3, 2, 2), (1, 5, 5, 2))
    with pytest.raises(UserError, match="the gradient's extent along H is 3 instead of 4"):
        depthwise_conv2d_backward_input_nhwc(grad, weight, size=(6, 5))
    with pytest.raises(UserError, match="nhwc cannot have the size"):
        depthwise_conv2d_backward_input_nhwc(grad, weight, size=(5, 5, 5))
    with pytest.raises(UserError, match="the data's channel extent is 2 instead of 4"):
        depthwise_conv2d_backward_input_nhwc(data, weight, size=(7, 7))
    with pytest.raises(UserError, match="the gradient's extent along W is 3 instead of 2"):
        depthwise_conv2d_backward_weight_nhwc(grad, data, kernel_size=(3, 4))
    with pytest.raises(UserError, match="the gradient's channel extent is 3 instead of 2"):
        odd, _ = tensors((1, 3, 3, 3), (1, 5, 5, 2))
        depthwise_conv2d_backward_weight_nhwc(odd, data, kernel_size=(3, 3))
    with pytest.raises(UserError, match="the gradient has 3 dimensions instead of 4"):
        depthwise_conv2d_backward_weight_nhwc(*tensors((3, 3, 3), (1, 5, 5, 2)), kernel_size=(3, 3))
