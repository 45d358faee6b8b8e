"""Resizing of images, and upsampling: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.image import resize_images as images
from tests.strategies.operands import assert_same, floats, run_te, tensors

SQUARE = np.array([[0, 4], [8, 12]], np.float32)


def test_bilinear_upsampling_by_hand():
    how = {"scale_h": 1.0, "scale_w": 2.0, "method": "bilinear"}
    made = run_te(images.upsampling, SQUARE.reshape(1, 1, 2, 2), **how)
    np.testing.assert_array_equal(made[0, 0], [[0, 2, 4, 4], [8, 10, 12, 12]])
    aligned = run_te(
        images.upsampling, SQUARE.reshape(1, 2, 2, 1), layout="NHWC", **how, align_corners=True
    )
    np.testing.assert_allclose(aligned[0, 0, :, 0], [0, 4 / 3, 8 / 3, 4], rtol=1e-6)


def test_nearest_upsampling_repeats_elements():
    data = floats(0, 1, 1, 2, 3, 2)
    made = run_te(
        images.upsampling3d, data, scale_d=2.0, scale_h=1.0, scale_w=3.0, align_corners=True
    )
    assert_same(made, data.repeat(2, axis=2).repeat(3, axis=4))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_layouts_are_transposed_to_each_other(rank):
    operator = getattr(images, f"resize{rank}d")
    spatial = "DHW"[3 - rank :]
    data = floats(0, 2, 3, *[4] * rank)
    size = (5, 2, 3)[:rank]
    first = run_te(operator, data, size=size)
    last = run_te(operator, np.moveaxis(data, 1, -1), size=size, layout=f"N{spatial}C")
    assert_same(np.moveaxis(last, -1, 1), first)


@pytest.mark.parametrize(
    ("operator", "shape", "options", "message"),
    [
        (images.resize1d, (1, 1, 2, 2), {"size": (2,)}, "resize1d: the data has 4 dim"),
        (images.resize2d, (1, 1, 2), {"size": (2, 2)}, "resize2d: the data has 3 dim"),
        (images.resize2d, (1, 1, 2, 2), {"size": (2,)}, r"resize2d cannot resize 2 axes by \(2,\)"),
        (
            images.resize2d,
            (1, 1, 2, 2),
            {"size": (2, 2), "layout": "HWCN"},
            "resize2d does not know the layout 'HWCN'",
        ),
        (
            images.resize3d,
            (1, 1, 2, 2, 2),
            {"size": (2, 2, 2), "mode": "quintic"},
            "resize3d does not know the mode 'quintic'",
        ),
        (
            images.upsampling,
            (1, 1, 2, 2),
            {"scale_h": 0.25, "scale_w": 1.0},
            "upsampling cannot make extents of",
        ),
        (
            images.upsampling,
            (1, 1, 2, 2),
            {"scale_h": 1.0, "scale_w": 1.0, "method": "linear"},
            "upsampling does not know the method 'linear'",
        ),
        (
            images.upsampling3d,
            (1, 1, 2, 2),
            {"scale_d": 1.0, "scale_h": 1.0, "scale_w": 1.0},
            "upsampling3d: the data has 4 dim",
        ),
        (
            images.upsampling3d,
            (1, 1, 2, 2, 2),
            {"scale_d": 1.0, "scale_h": 1.0, "scale_w": 1.0, "method": "bicubic"},
            "upsampling3d does not know the method 'bicubic'",
        ),
    ],
)
def test_ill_formed_calls_are_refused(operator, shape, options, message):
    with pytest.raises(UserError, match=message):
        operator(*tensors(shape), **options)
