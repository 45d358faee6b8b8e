"""Regions of interest: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.detection.roi import roi_align, roi_align_numpy, roi_pool, roi_pool_numpy
from tests.strategies.operands import assert_same, run_te, tensors

RAMP = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


def align(*box, image=0, **how):
    """The bins of one region; te and numpy agree."""
    arrays = (RAMP, np.array([box], np.float32), np.array([image], np.int64))
    made = run_te(roi_align, *arrays, is_symbolic=False, **how)
    assert_same(made, roi_align_numpy(*arrays, **how), 1e-6)
    return made[0, 0].tolist()


def pool(*box, **how):
    arrays = (RAMP, np.array([box], np.float32))
    made = run_te(roi_pool, *arrays, is_symbolic=False, **how)
    assert_same(made, roi_pool_numpy(*arrays, **how))
    return made[0, 0].tolist()


def test_aligned_means_of_a_ramp_are_its_centres():
    assert align(0, 0, 4, 4, pooled_size=(2, 2)) == [[2.5, 4.5], [10.5, 12.5]]
    how = {"pooled_size": (1, 1), "coordinates": "output_half_pixel"}
    assert align(1, 1, 1, 1, sampling_ratio=1, **how) == [[7.5]]  # one element at least


def test_aligned_maxima_are_of_samples():
    assert align(0, 0, 4, 4, pooled_size=(1, 1), sampling_ratio=2, mode="max") == [[12.5]]


def test_weighted_maxima_are_of_products():
    how = {"pooled_size": (1, 1), "sampling_ratio": 1, "mode": "max_weighted"}
    # The centre of four elements, the last of which is 15: each weighs a quarter.
    assert align(2, 2, 4, 4, **how) == [[15 / 4]]


def test_samples_outside_are_zero_and_near_the_border_are_its_elements():
    assert align(-9, 0, -5, 4, pooled_size=(1, 1), sampling_ratio=1) == [[0]]
    assert align(-1, 0, 0, 1, pooled_size=(1, 1), sampling_ratio=1) == [[0]]
    assert align(4, 3, 5, 4, pooled_size=(1, 1), sampling_ratio=1) == [[15]]


def test_an_image_out_of_range_is_the_nearest():
    assert align(0, 0, 4, 4, image=9, pooled_size=(1, 1)) == [[7.5]]


def test_empty_and_undefined_regions():
    assert align(2, 2, 1, 1, pooled_size=(1, 1)) == [[0]]  # no samples
    assert np.isnan(align(np.nan, 0, 1, 1, pooled_size=(1, 1), sampling_ratio=1)).all()


def test_pooled_bins_by_hand():
    assert pool(0, 0, 0, 3, 3, pooled_size=(2, 2)) == [[5, 7], [13, 15]]
    assert pool(0, 0, 0, 2, 2, pooled_size=(2, 2)) == [[5, 6], [9, 10]]  # bins overlap
    assert pool(0, 2, 2, 6, 6, pooled_size=(1, 1), spatial_scale=0.5) == [[15]]
    assert pool(9, -9, 0, -5, 0, pooled_size=(1, 1)) == [[0]]  # no elements
    assert pool(0, np.nan, 0, 0, 0, pooled_size=(1, 1)) == [[0]]


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 4, 4), (2, 4), (2,)), {}, "roi_align: the data has 3 dimensions"),
        (((1, 1, 4, 4), (4,), (2,)), {}, "the tensor of boxes has 1 dimensions"),
        (((1, 1, 4, 4), (2, 5), (2,)), {}, "the extent of a box is 5 instead of 4"),
        (((1, 1, 4, 4), (2, 4), (3,)), {}, "the number of batch indices is 3 instead of 2"),
        (((1, 1, 4, 4), (2, 4), (2, 1)), {}, "the tensor of batch indices has 2 dimensions"),
        (((1, 1, 0, 4), (2, 4), (2,)), {}, "cannot pool images without elements"),
        (((0, 1, 4, 4), (2, 4), (2,)), {}, "cannot pool images without elements"),
        (((1, 1, var("h"), 4), (2, 4), (2,)), {}, "a spatial extent must be a constant"),
        (((1, 1, 4, 4), (2, 4), (2,)), {"pooled_size": (0, 1)}, r"the pooled size \(0, 1\)"),
        (((1, 1, 4, 4), (2, 4), (2,)), {"spatial_scale": 0.0}, "cannot scale boxes by 0.0"),
        (((1, 1, 4, 4), (2, 4), (2,)), {"sampling_ratio": -1}, "cannot take -1 samples"),
        (((1, 1, 4, 4), (2, 4), (2,)), {"mode": "mean"}, "does not know the mode 'mean'"),
        (((1, 1, 4, 4), (2, 4), (2,)), {"coordinates": "x"}, "not know the coordinates 'x'"),
    ],
)
def test_ill_formed_alignments_are_refused(shapes, options, message):
    data, rois = tensors(*shapes[:2])
    (indices,) = tensors(shapes[2], dtype="int64")
    with pytest.raises(UserError, match=message):
        roi_align(data, rois, indices, **{"pooled_size": (2, 2), **options})


def test_other_ill_formed_calls_are_refused():
    with pytest.raises(UserError, match="takes integer batch indices, not f32"):
        roi_align(*tensors((1, 1, 4, 4), (2, 4), (2,)), pooled_size=(2, 2))
    with pytest.raises(UserError, match="roi_pool: the extent of a box is 4 instead of 5"):
        roi_pool(*tensors((1, 1, 4, 4), (2, 4)), pooled_size=(2, 2))
    with pytest.raises(UserError, match="roi_pool takes float tensors, not i8"):
        roi_pool(*tensors((1, 1, 4, 4), (2, 5), dtype="int8"), pooled_size=(2, 2))
