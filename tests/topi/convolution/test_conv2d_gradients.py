"""Gradients of convolutions as operators: against te.gradient, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv2d import conv2d
from refcomp.topi.convolution.conv2d_gradients import conv2d_backward_data, conv2d_backward_weight
from tests.strategies.operands import integers, tensors


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"strides": (2, 3), "padding": (1, 0, 2, 1)},
        {"dilation": (2, 1), "groups": 2, "padding": (0, 1, 0, 0)},
    ],
)
def test_both_are_gradients_of_conv2d(how: dict) -> None:
    x, w = integers(1, 2, 4, 5, 6), integers(2, 4, 4 // how.get("groups", 1), 2, 3)
    data, weight = tensors(x.shape, w.shape)
    result = conv2d(data, weight, **how)
    (head,) = tensors(result.shape)
    g = integers(3, *rc.oracle.evaluate([result], {data: x, weight: w})[0].shape)
    made = [
        conv2d_backward_data(head, weight, size=(5, 6), **how),
        conv2d_backward_weight(head, data, kernel_size=(2, 3), **how),
    ]
    expected = rc.te.gradient(result, [data, weight], head)
    feeds = {data: x, weight: w, head: g}
    for found, meant in zip(
        rc.oracle.evaluate(made, feeds), rc.oracle.evaluate(expected, feeds), strict=True
    ):
        np.testing.assert_array_equal(found, meant)


def test_ill_formed_gradients_are_refused() -> None:
    grad, weight, data = tensors((1, 4, 3, 3), (4, 2, 3, 3), (1, 2, 5, 5))
    with pytest.raises(UserError, match="the gradient's extent along H is 3 instead of 4"):
        conv2d_backward_data(grad, weight, size=(6, 5))
    with pytest.raises(UserError, match=r"conv2d_backward_data cannot have the size \(5,\)"):
        conv2d_backward_data(grad, weight, size=(5,))
    with pytest.raises(UserError, match="the data's channel extent is 2 instead of 4"):
        conv2d_backward_data(data, weight, size=(7, 7))
    with pytest.raises(UserError, match="conv2d_backward_data cannot divide 4 output channels"):
        conv2d_backward_data(grad, weight, size=(5, 5), groups=3)
    with pytest.raises(UserError, match="the gradient's extent along W is 3 instead of 2"):
        conv2d_backward_weight(grad, data, kernel_size=(3, 4))
    with pytest.raises(UserError, match="cannot have the kernel_size"):
        conv2d_backward_weight(grad, data, kernel_size=(0, 3))
    with pytest.raises(UserError, match="cannot divide 2 channels into 4 groups"):
        conv2d_backward_weight(grad, data, kernel_size=(3, 3), groups=4)
    with pytest.raises(UserError, match="the gradient has 3 dimensions instead of 4"):
        conv2d_backward_weight(*tensors((4, 3, 3), (1, 2, 5, 5)), kernel_size=(3, 3))
    with pytest.raises(UserError, match="the number of gradients is 2 instead of 1"):
        conv2d_backward_weight(*tensors((2, 4, 3, 3), (1, 2, 5, 5)), kernel_size=(3, 3))
