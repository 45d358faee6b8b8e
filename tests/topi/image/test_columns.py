"""Windows as columns and back: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.image.columns import col2im, im2col, im2col_numpy
from tests.strategies.operands import assert_same, integers, run_te, tensors


def test_columns_by_hand():
    data = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    made = run_te(im2col, data, kernel=(2, 2), strides=(1, 1))
    np.testing.assert_array_equal(made[0, :, 0], [0, 1, 3, 4])
    np.testing.assert_array_equal(made[0, :, 3], [4, 5, 7, 8])
    padded = run_te(im2col, data, kernel=(1, 1), padding=(1, 0, 0, 0), strides=(2, 2))
    np.testing.assert_array_equal(padded[0, 0], [0, 0, 3, 5])


def test_a_convolution_is_a_product_with_columns():
    data, weight = integers(0, 2, 3, 5, 4), integers(1, 4, 3, 3, 2)
    columns = im2col_numpy(data, kernel=(3, 2), padding=(1, 0, 1, 1))
    product = (weight.reshape(4, -1) @ columns).reshape(2, 4, 5, 4)
    y, x = 2, 1
    window = data[:, None, :, y - 1 : y + 2, x : x + 2] * weight
    np.testing.assert_array_equal(product[:, :, y, x], window.sum((2, 3, 4)))


def test_col2im_is_the_adjoint_of_im2col():
    how = {"strides": (2, 1), "padding": (1, 0, 2, 1), "dilation": (1, 2)}
    image = integers(0, 1, 2, 5, 4)
    columns = run_te(im2col, image, kernel=(2, 2), **how)
    other = integers(1, *columns.shape)
    back = run_te(col2im, other, image_shape=(5, 4), block_shape=(2, 2), **how)
    assert (columns * other).sum() == (image * back).sum()


def test_places_without_a_window_are_zero():
    made = run_te(
        col2im, np.ones((1, 1, 2), np.float32), image_shape=(4,), block_shape=(1,), strides=(2,)
    )
    assert_same(made, np.array([[[1, 0, 1, 0]]], np.float32))


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 4), {}, "im2col takes a batch, channels and spatial axes, not 2 dimensions"),
        ((1, 1, var("w")), {}, "a spatial extent must be a constant"),
        ((1, 1, 4), {"kernel": (2, 2)}, r"im2col cannot have the kernel \(2, 2\)"),
        ((1, 1, 4), {"kernel": (0,)}, r"im2col cannot have the kernel \(0,\)"),
        ((1, 1, 4), {"strides": (0,)}, r"im2col cannot have the strides \(0,\)"),
        ((1, 1, 4), {"dilation": (0,)}, r"im2col cannot have the dilation \(0,\)"),
        ((1, 1, 4), {"padding": (1,)}, r"im2col cannot use the padding \(1,\)"),
        ((1, 1, 1), {}, "a window of 2 does not fit in 1 elements"),
    ],
)
def test_ill_formed_im2cols_are_refused(shape, options, message):
    with pytest.raises(UserError, match=message):
        im2col(*tensors(shape), **{"kernel": (2,), **options})


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((2, 3), {}, "col2im: the data has 2 dimensions"),
        ((1, 2, 3), {"image_shape": ()}, r"col2im cannot make an image of the shape \(\)"),
        ((1, 2, 3), {"image_shape": (0,)}, r"col2im cannot make an image of the shape \(0,\)"),
        ((1, 3, 3), {}, "col2im cannot divide 3 rows into channels of 2 places"),
        ((1, 2, 4), {}, "col2im: the number of columns is 4 instead of 3"),
        ((1, var("c"), 3), {}, "the number of rows of col2im must be a constant"),
    ],
)
def test_ill_formed_col2ims_are_refused(shape, options, message):
    with pytest.raises(UserError, match=message):
        col2im(*tensors(shape), **{"image_shape": (4,), "block_shape": (2,), **options})
