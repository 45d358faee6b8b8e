"""The functions of `topi.testing` return what numpy computes, written out here once more."""

import numpy as np
import pytest

from refcomp.classic import topi
from refcomp.foundation.errors import UserError

testing = topi.testing
rng = np.random.default_rng(7)
x = rng.standard_normal((2, 4, 6, 6)).astype("float32")
m = rng.standard_normal((3, 5)).astype("float32")


def convolved(data: np.ndarray, kernel: np.ndarray, step: int, border: int) -> np.ndarray:
    """Return the convolution [n, c, h, w] with squares of zeros around the images."""
    data = np.pad(data, ((0, 0), (0, 0), (border, border), (border, border)))
    windows = np.lib.stride_tricks.sliding_window_view(data, kernel.shape[2:], (2, 3))
    return np.einsum("ncyxij,kcij->nkyx", windows[:, :, ::step, ::step], kernel)


def dilated(data: np.ndarray, step: int) -> np.ndarray:
    spread = np.zeros((*data.shape[:2], *((e - 1) * step + 1 for e in data.shape[2:])), "float32")
    spread[:, :, ::step, ::step] = data
    return spread


w = rng.standard_normal((3, 4, 3, 3)).astype("float32")
one = rng.standard_normal((4, 1, 3, 3)).astype("float32")
up = rng.standard_normal((4, 2, 3, 3)).astype("float32")
line = rng.standard_normal((3, 6, 2)).astype("float32")
row = x[:, 0]
each = np.eye(4, dtype="float32")[:, :, None, None] * one
powers = np.exp(m - m.max(-1, keepdims=True))
means = np.sqrt(np.maximum((x * x).sum(1, keepdims=True), 0.01))
squares = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
neighbours = sum(squares[:, i : i + 4] for i in range(3))
points = np.array([[0, 1], [2, 3]])
CASES = {
    "conv2d_nchw": (testing.conv2d_nchw_python(x, w, 2, 1), convolved(x, w, 2, 1)),
    "conv2d_nchw, groups": (
        testing.conv2d_nchw_python(x, one, 1, 0, groups=4),
        convolved(x, each, 1, 0),
    ),
    "conv2d_hwcn": (
        testing.conv2d_hwcn_python(x.transpose(2, 3, 1, 0), w.transpose(2, 3, 1, 0), 1, 1),
        convolved(x, w, 1, 1).transpose(2, 3, 1, 0),
    ),
    "conv2d_nhwc": (
        testing.conv2d_nhwc_python(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), 1, "SAME"),
        convolved(x, w, 1, 1).transpose(0, 2, 3, 1),
    ),
    "conv2d_transpose_nchw": (
        testing.conv2d_transpose_nchw_python(x, up, 2, 1),
        convolved(dilated(x, 2), up.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1], 1, 1),
    ),
    "depthwise nchw": (
        testing.depthwise_conv2d_python_nchw(x, one, 1, "SAME"),
        convolved(x, each, 1, 1),
    ),
    "depthwise nhwc": (
        testing.depthwise_conv2d_python_nhwc(
            x.transpose(0, 2, 3, 1), one.transpose(2, 3, 0, 1), 1, "VALID"
        ),
        convolved(x, each, 1, 0).transpose(0, 2, 3, 1),
    ),
    "conv1d_ncw": (
        testing.conv1d_ncw_python(row, line, 1, 0, 1),
        convolved(row[:, :, None], line[:, :, None], 1, 0)[:, :, 0],
    ),
    "dilate": (testing.dilate_python(x, (1, 1, 3, 3)), dilated(x, 3)),
    "softmax": (testing.softmax_python(m), powers / powers.sum(-1, keepdims=True)),
    "log_softmax": (
        testing.log_softmax_python(m),
        np.log(powers / powers.sum(-1, keepdims=True)),
    ),
    "upsampling": (testing.upsampling_python(x, (2, 3)), x.repeat(2, 2).repeat(3, 3)),
    "bilinear_resize": (
        testing.bilinear_resize_python(x, (11, 6), "NCHW")[:, :, 1::2],
        (x[:, :, 1:] + x[:, :, :-1]) / 2,
    ),
    "roi_pool_nchw": (
        testing.roi_pool_nchw_python(x, np.array([[1, 0, 0, 5, 5]], "float32"), 2, 1.0),
        x[1:].reshape(1, 4, 2, 3, 2, 3).max((3, 5)),
    ),
    "lrn": (
        testing.lrn_python(x, 3, 1, 2.0, 0.5, 0.75),
        x / (2 + 0.5 * neighbours / 3) ** 0.75,
    ),
    "l2_normalize": (testing.l2_normalize_python(x, 0.01, [1]), x / means),
    "gather_nd": (testing.gather_nd_python(m, points), m[points[0], points[1]]),
    "strided_slice": (testing.strided_slice_python(m, (2, 1), (0, 5), (-1, 2)), m[2:0:-1, 1:5:2]),
    "batch_matmul": (
        testing.batch_matmul(x[0], x[1]),
        x[0] @ x[1].transpose(0, 2, 1),
    ),
    "sequence_mask": (
        testing.sequence_mask(m, np.array([1, 3, 0, 2, 3], "int32"), 9.0, 0),
        np.where(np.arange(3)[:, None] < [1, 3, 0, 2, 3], m, 9),
    ),
    "one_hot": (
        testing.one_hot(np.array([2, 0], "int32"), 1.0, 0.0, 3, -1, "float32"),
        np.eye(3)[[2, 0]],
    ),
    "space_to_depth": (
        testing.space_to_depth_python(x, 2),
        x.reshape(2, 4, 3, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 16, 3, 3),
    ),
    "depth_to_space": (
        testing.depth_to_space_python(x, 2),
        x.reshape(2, 2, 2, 1, 6, 6).transpose(0, 3, 4, 1, 5, 2).reshape(2, 1, 12, 12),
    ),
    "slice_axis": (testing.slice_axis_python(x, -1, 1, 4), x[..., 1:4]),
    "slice_axis, the rest": (testing.slice_axis_python(x, 1, 2), x[:, 2:]),
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_numpy(case: str) -> None:
    result, expected = CASES[case]
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_results_of_regions_are_those_of_the_operators() -> None:
    rois = np.array([[0, 0, 0, 4, 4]], "float32")
    # Samples lie in the middle of quarters, between pixels: a plane is averaged exactly.
    plane = np.add.outer(np.arange(6), 2 * np.arange(6)).astype("float32")[None, None]
    result = testing.roi_align_nchw_python(plane, rois, 2, 1.0, 2)
    np.testing.assert_allclose(result[0, 0], [[3, 7], [5, 9]])
    assert testing.reorg_python(x, 2).shape == (2, 16, 3, 3)


def test_an_axis_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="an array of 2 axes has no axis 2"):
        testing.slice_axis_python(m, 2, 0)
