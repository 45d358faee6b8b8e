"""Cropping: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.image.crop import center_crop_pad, crop_and_resize, crop_and_resize_numpy
from tests.strategies.operands import assert_same, run_te, tensors

ROW = np.array([1, 2, 4], np.float32).reshape(1, 1, 3, 1)


@pytest.mark.parametrize(
    ("count", "wanted"),
    [
        (1, [2]),
        (2, [1, 2]),
        (3, [1, 2, 4]),
        (4, [1, 2, 4, 0]),
        (5, [0, 1, 2, 4, 0]),
        (6, [0, 1, 2, 4, 0, 0]),
        (0, []),
    ],
)
def test_the_centre_stays(count, wanted):
    made = run_te(center_crop_pad, ROW, shape=(count,), axes=(2,))
    assert made.ravel().tolist() == wanted


def crop(*box, image=0, width=3, **how):
    """The crops of one box; te and numpy agree."""
    arrays = (ROW, np.array([box], np.float32), np.array([image], np.int32))
    how["crop_size"] = (1, width)
    made = run_te(crop_and_resize, *arrays, is_symbolic=False, **how)
    assert_same(made, crop_and_resize_numpy(*arrays, **how))
    return made.ravel().tolist()


def test_the_whole_image_is_kept():
    assert crop(0, 0, 1, 1) == [1, 2, 4]
    assert crop(0, 1, 1, 0) == [4, 2, 1]  # a box may be flipped
    assert crop(0, 0, 1, 1, width=5) == [1, 1.5, 2, 3, 4]
    assert crop(0, 0, 1, 1, width=1) == [2]


def test_nearest_and_outside():
    assert crop(0, 0, 1, 1, width=5, method="nearest") == [1, 1, 2, 4, 4]
    assert crop(0, -0.5, 1, 1.5, extrapolation_value=9.0) == [9, 2, 9]
    assert crop(0, np.nan, 1, 1) == [0, 0, 0]
    assert crop(0, 0, 1, 1, image=-7) == [1, 2, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (1,)}, r"cannot give the axes \(0, 1\) the extents \(1,\)"),
        ({"shape": (1, -1)}, r"cannot give the axes \(0, 1\) the extents \(1, -1\)"),
        ({"shape": (1, 1), "axes": (1, -1)}, r"cannot give the axes \(1, -1\)"),
        ({"shape": (1,), "axes": (2,)}, "axis 2 is out of range"),
        ({"shape": (1,), "axes": (0,)}, "a cropped extent must be a constant"),
    ],
)
def test_ill_formed_central_crops_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        center_crop_pad(*tensors((var("n"), 3)), **options)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 4, 4), (2, 4), (2,)), {}, "crop_and_resize: the data has 3 dimensions"),
        (((1, 4, 4, 1), (4,), (2,)), {}, "the tensor of boxes has 1 dimensions"),
        (((1, 4, 4, 1), (2, 5), (2,)), {}, "the extent of a box is 5 instead of 4"),
        (((1, 4, 4, 1), (2, 4), (3,)), {}, "the number of box indices is 3 instead of 2"),
        (((1, 4, 4, 1), (2, 4), (2, 1)), {}, "the tensor of box indices has 2 dimensions"),
        (((0, 4, 4, 1), (2, 4), (2,)), {}, "cannot crop images without elements"),
        (((1, var("h"), 4, 1), (2, 4), (2,)), {}, "a spatial extent must be a constant"),
        (((1, 4, 4, 1), (2, 4), (2,)), {"crop_size": (0, 1)}, r"the crop size \(0, 1\)"),
        (((1, 4, 4, 1), (2, 4), (2,)), {"layout": "HWC"}, "does not know the layout 'HWC'"),
        (((1, 4, 4, 1), (2, 4), (2,)), {"method": "cubic"}, "does not know the method 'cubic'"),
    ],
)
def test_ill_formed_crops_are_refused(shapes, options, message):
    data, boxes = tensors(*shapes[:2])
    (indices,) = tensors(shapes[2], dtype="int32")
    with pytest.raises(UserError, match=message):
        crop_and_resize(data, boxes, indices, **{"crop_size": (2, 2), **options})


def test_float_indices_are_refused():
    with pytest.raises(UserError, match="takes integer box indices, not f32"):
        crop_and_resize(*tensors((1, 4, 4, 1), (2, 4), (2,)), crop_size=(2, 2))
