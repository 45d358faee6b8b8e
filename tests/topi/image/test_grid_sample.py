"""Sampling at positions, and affine grids: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.image.grid_sample import (
    affine_grid,
    affine_grid_numpy,
    grid_sample,
    grid_sample_numpy,
)
from tests.strategies.operands import assert_same, floats, run_te, tensors

ROW = np.array([1, 2, 4], np.float32).reshape(1, 1, 1, 3)


def sample_row(*coordinates, **how):
    """Samples of ROW, along x; te and numpy agree."""
    grid = np.zeros((1, 1, len(coordinates), 2), np.float32)
    grid[..., 0] = coordinates
    made = run_te(grid_sample, ROW, grid, is_symbolic=False, **how)
    assert_same(made, grid_sample_numpy(ROW, grid, **how), 1e-6)
    return made.ravel().tolist()


def test_padding_by_hand():
    far = (-3.0, -1.0, 0.0, 2.0)
    assert sample_row(*far, align_corners=True) == [0, 1, 2, 0]
    assert sample_row(*far, align_corners=True, padding="border") == [1, 1, 2, 4]
    assert sample_row(-1.0, 1.0) == [0.5, 2]  # half of each pixel lies outside
    assert sample_row(-1.2, 1.2, padding="reflection", mode="nearest") == [1, 4]


def test_reflection_at_centres_repeats_no_element():
    found = sample_row(-2.0, -3.0, 2.0, padding="reflection", align_corners=True)
    assert found == [2, 4, 2]


def test_nearest_takes_the_even_of_two():
    assert sample_row(-0.5, 0.5, mode="nearest", align_corners=True) == [1, 4]


def test_infinite_and_undefined_positions():
    assert sample_row(np.inf, -np.inf) == [0, 0]
    assert sample_row(np.inf, -np.inf, padding="border", mode="cubic") == [4, 1]
    for mode in ("nearest", "linear", "cubic"):
        assert np.isnan(sample_row(np.nan, mode=mode)).all()


def test_the_identity_grid_gives_the_image():
    data = floats(0, 2, 3, 4, 5)
    theta = np.tile(np.eye(2, 3, dtype=np.float32), (2, 1, 1))
    for align_corners in (False, True):
        how = {"align_corners": align_corners}
        grid = affine_grid_numpy(theta, size=(4, 5), **how)
        assert_same(run_te(affine_grid, theta, size=(4, 5), **how), grid, 1e-6)
        assert_same(grid_sample_numpy(data, grid, **how), data, 1e-5)


def test_halves_are_summed_in_f32():
    data = np.array([2048, 1], np.float16).reshape(1, 1, 1, 2)
    grid = np.zeros((1, 1, 1, 2), np.float16)
    assert_same(run_te(grid_sample, data, grid, is_symbolic=False), np.array([[[[1024.5]]]], "f2"))


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 1, 2), (1, 2, 1)), {}, "data of 3 dimensions by a grid of 3"),
        (((1, 1, 2, 2), (1, 2, 2, 2, 3)), {}, "data of 4 dimensions by a grid of 5"),
        (((1, 1, 2, 2), (2, 2, 2, 2)), {}, "the batch of the grid is 2 instead of 1"),
        (((1, 1, 2, 2), (1, 2, 2, 3)), {}, "the last extent of the grid is 3 instead of 2"),
        (((1, 1, 2, 0), (1, 2, 2, 2)), {}, "cannot sample an image without elements"),
        (((1, 1, 2, var("w")), (1, 2, 2, 2)), {}, "a spatial extent must be a constant"),
        (((1, 1, 2, 2), (1, 2, 2, 2)), {"mode": "bicubic"}, "does not know the mode 'bicubic'"),
        (((1, 1, 2, 2), (1, 2, 2, 2)), {"padding": "zero"}, "does not know the padding 'zero'"),
    ],
)
def test_ill_formed_samplings_are_refused(shapes, options, message):
    with pytest.raises(UserError, match=message):
        grid_sample(*tensors(*shapes), **options)


def test_other_dtypes_are_refused():
    (data,) = tensors((1, 1, 2, 2))
    (half,) = tensors((1, 2, 2, 2), dtype="float16")
    (whole,) = tensors((1, 2, 3), dtype="int32")
    with pytest.raises(UserError, match="grid_sample cannot combine f32 with f16"):
        grid_sample(data, half)
    with pytest.raises(UserError, match="affine_grid takes float tensors, not i32"):
        affine_grid(whole, size=(2, 2))


@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        ((1, 2, 3), (2,), r"cannot make a grid of the size \(2,\)"),
        ((1, 2, 3), (2, 0), r"cannot make a grid of the size \(2, 0\)"),
        ((1, 2, 3), (2, 2, 2), r"takes theta of the shape \[n, 3, 4\] for a grid of 3 axes"),
        ((2, 3), (2, 2), r"takes theta of the shape \[n, 2, 3\]"),
    ],
)
def test_ill_formed_affine_grids_are_refused(shape, size, message):
    with pytest.raises(UserError, match=message):
        affine_grid(*tensors(shape), size=size)
