"""Operators of layers: parameters, layouts, and agreement with numpy."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.layers import four_sides
from tests.graph.symbol.applied import numbers, one, positive

X = rc.sym.Variable("x")


def convolved(data: np.ndarray, weight: np.ndarray, stride: int = 1, pad: int = 0) -> np.ndarray:
    """Return the convolution of [n, c, h, w] with [o, c, kh, kw]."""
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], weight)


def test_dense_adds_a_bias() -> None:
    data, weight, bias = numbers(2, 3), numbers(4, 3, seed=1), numbers(4, seed=2)
    made = one(rc.sym.dense(X, units=4), data, weight, bias)
    np.testing.assert_array_equal(made, data @ weight.T + bias)
    made = one(rc.sym.dense(X, units=4, use_bias=False), data, weight)
    np.testing.assert_array_equal(made, data @ weight.T)


def test_convolution_in_both_layouts() -> None:
    data, weight, bias = numbers(2, 3, 6, 6), numbers(4, 3, 3, 3, seed=1), numbers(4, seed=2)
    expected = convolved(data, weight, 2, 1) + bias[:, None, None]
    options = {"channels": 4, "kernel_size": (3, 3), "strides": (2, 2), "padding": (1, 1)}
    np.testing.assert_array_equal(one(rc.sym.conv2d(X, **options), data, weight, bias), expected)
    last = data.transpose(0, 2, 3, 1)
    made = one(rc.sym.conv2d(X, layout="NHWC", **options), last, weight.transpose(2, 3, 1, 0), bias)
    np.testing.assert_array_equal(made, expected.transpose(0, 2, 3, 1))
    other = rc.sym.conv2d(X, layout="NHWC", kernel_layout="OIHW", **options)
    np.testing.assert_array_equal(one(other, last, weight, bias), expected.transpose(0, 2, 3, 1))


def test_depthwise_convolution_has_a_filter_for_each_channel() -> None:
    data, weight = numbers(1, 3, 5, 5), numbers(3, 1, 3, 3, seed=1)
    net = rc.sym.conv2d(X, channels=3, groups=3, kernel_size=(3, 3), use_bias=False)
    assert net.infer_shape(x=data.shape)[0][1] == (3, 1, 3, 3)
    parts = [convolved(data[:, c : c + 1], weight[c : c + 1]) for c in range(3)]
    np.testing.assert_array_equal(one(net, data, weight), np.concatenate(parts, 1))


def test_convolution_may_add_up_in_a_wider_dtype() -> None:
    data, weight = numbers(1, 3, 5, 5, dtype="int8"), numbers(2, 3, 3, 3, dtype="int8", seed=1)
    bias = numbers(2, dtype="int8", seed=2)
    net = rc.sym.conv2d(X, channels=2, kernel_size=(3, 3), out_dtype="int32")
    expected = convolved(data.astype("int32"), weight.astype("int32")) + bias[:, None, None]
    np.testing.assert_array_equal(one(net, data, weight, bias), expected)


def test_transposed_convolution_is_the_adjoint() -> None:
    data, weight, bias = numbers(1, 2, 4, 4), numbers(2, 3, 3, 3, seed=1), numbers(3, seed=2)
    net = rc.sym.conv2d_transpose(X, channels=3, kernel_size=(3, 3), strides=(2, 2))
    spread = np.zeros((1, 2, 7, 7), "float32")
    spread[:, :, ::2, ::2] = data
    flipped = weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
    expected = convolved(spread, flipped, 1, 2) + bias[:, None, None]
    np.testing.assert_array_equal(one(net, data, weight, bias), expected)
    last = rc.sym.conv2d_transpose(X, channels=3, kernel_size=(3, 3), strides=(2, 2), layout="NHWC")
    assert last.infer_shape(x=(1, 4, 4, 2))[0][1] == (3, 3, 2, 3)
    made = one(last, data.transpose(0, 2, 3, 1), weight.transpose(2, 3, 0, 1), bias)
    np.testing.assert_array_equal(made, expected.transpose(0, 2, 3, 1))


def test_rectifiers_agree_with_numpy() -> None:
    data = numbers(2, 3, 4)
    np.testing.assert_array_equal(one(rc.sym.relu(X), data), np.maximum(data, 0))
    made = one(rc.sym.leaky_relu(X, alpha=0.5), data)
    np.testing.assert_array_equal(made, np.where(data > 0, data, data * 0.5))
    for axis in (0, 1, 2, -1):
        alpha = positive(data.shape[axis])
        shape = [1, 1, 1]
        shape[axis] = data.shape[axis]
        net = rc.sym.prelu(X, axis=axis)
        assert net.infer_shape(x=data.shape)[0][1] == alpha.shape
        expected = np.where(data >= 0, data, data * alpha.reshape(shape))
        np.testing.assert_array_equal(one(net, data, alpha), expected)


def test_dropout_keeps_all_elements() -> None:
    data = numbers(2, 3)
    np.testing.assert_array_equal(one(rc.sym.dropout(X, rate=0.5), data), data)


@pytest.mark.parametrize("axis", [1, 3])
def test_batch_norm_may_leave_out_its_factors(axis: int) -> None:
    shape = (2, 3, 4, 3)
    data = numbers(*shape)
    gamma, beta, mean, variance = (positive(3, seed=seed) for seed in range(4))
    along = [1, 1, 1, 1]
    along[axis] = 3

    def expected(factor: np.ndarray, shift: np.ndarray) -> np.ndarray:
        wide = [part.astype("float64").reshape(along) for part in (factor, shift, mean, variance)]
        return (data - wide[2]) / np.sqrt(wide[3] + 1e-5) * wide[0] + wide[1]

    parameters = (gamma, beta, mean, variance)
    made = one(rc.sym.batch_norm(X, axis=axis, name="bn"), data, *parameters)
    np.testing.assert_allclose(made, expected(gamma, beta), rtol=1e-5, atol=1e-5)
    made = one(rc.sym.batch_norm(X, axis=axis, scale=False), data, *parameters)
    np.testing.assert_allclose(made, expected(np.ones(3), beta), rtol=1e-5, atol=1e-5)
    made = one(rc.sym.batch_norm(X, axis=axis, center=False), data, *parameters)
    np.testing.assert_allclose(made, expected(gamma, np.zeros(3)), rtol=1e-5, atol=1e-5)


def test_names_of_parameters_begin_with_the_name_of_the_layer() -> None:
    names = rc.sym.batch_norm(rc.sym.conv2d(X, channels=2, kernel_size=(1, 1), name="c"), name="b")
    assert names.list_input_names() == [
        *("x", "c_weight", "c_bias"),
        *("b_gamma", "b_beta", "b_moving_mean", "b_moving_var"),
    ]


def test_softmax_and_norms_agree_with_numpy() -> None:
    data = numbers(2, 3, 4)
    wide = np.exp(data.astype("float64"))
    share = wide / wide.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(one(rc.sym.softmax(X, axis=1), data), share, rtol=1e-6)
    np.testing.assert_allclose(one(rc.sym.log_softmax(X, axis=1), data), np.log(share), rtol=1e-6)
    norm = np.sqrt((data.astype("float64") ** 2).sum(axis=(1, 2), keepdims=True))
    made = one(rc.sym.l2_normalize(X, axis=(1, 2)), data)
    np.testing.assert_allclose(made, data / norm, rtol=1e-6)


def test_flatten_and_products() -> None:
    data = numbers(2, 3, 4)
    np.testing.assert_array_equal(one(rc.sym.flatten(X), data), data.reshape(2, 12))
    y = rc.sym.Variable("y")
    other = numbers(2, 5, 4, seed=1)
    made = one(rc.sym.matmul(X, y, transpose_b=True), data, other)
    np.testing.assert_array_equal(made, data @ other.transpose(0, 2, 1))


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda: rc.sym.dense(X, units=2), (1, 2, 3), "dense cannot be applied to 3 dimensions"),
        (
            lambda: rc.sym.dense(X, rc.sym.Variable("w", shape=(3, 3)), units=2),
            (1, 3),
            r"dense has 2 units, but the weights are w: f32\[3, 3\]",
        ),
        (
            lambda: rc.sym.conv2d(
                X, rc.sym.Variable("w", shape=(2, 3, 5, 5)), channels=2, kernel_size=(3, 3)
            ),
            (1, 3, 8, 8),
            r"the weights are w: f32\[2, 3, 5, 5\], but channels is 2 and kernel_size \(3, 3\)",
        ),
        (
            lambda: rc.sym.conv2d(X, channels=2, kernel_size=(1, 1), kernel_layout="OIHX"),
            (1, 3, 8, 8),
            "kernel_layout cannot be 'OIHX'",
        ),
        (
            lambda: rc.sym.conv2d(X, channels=4, kernel_size=(1, 1), groups=2),
            (1, 3, 8, 8),
            r"the shape of the variable 'conv2d\d+_weight' is unknown",
        ),
        (
            lambda: rc.sym.conv2d_transpose(
                X,
                rc.sym.Variable("w", shape=(3, 2, 1, 1)),
                rc.sym.Variable("b", shape=(4,)),
                channels=4,
                kernel_size=(1, 1),
                groups=3,
            ),
            (1, 3, 8, 8),
            "4 channels cannot be divided into 3 groups",
        ),
        (
            lambda: rc.sym.prelu(X, rc.sym.Variable("a", shape=(1,)), axis=4),
            (1, 2),
            "the data has no axis 4",
        ),
        (lambda: rc.sym.flatten(X), (), "flatten needs an axis"),
    ],
)
def test_what_does_not_fit_is_refused(make: object, shape: tuple[int, ...], message: str) -> None:
    with rc.sym.NameScope(), pytest.raises(UserError, match=message):
        make().infer_shape(x=shape)


def test_padding_of_one_two_or_four_numbers() -> None:
    assert four_sides((1,)) == (1, 1, 1, 1)
    assert four_sides((1, 2)) == (1, 2, 1, 2)
    assert four_sides((1, 2, 3, 4)) == (1, 2, 3, 4)
