"""Resizing: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.image.resize import resize, resize_numpy
from tests.strategies.operands import assert_same, floats, run_te, tensors

LINE = np.array([0, 4, 8, 12], np.float32)


def both(data, **attributes):
    """What te gives, which is what numpy gives."""
    made = run_te(resize, data, is_symbolic=False, **attributes)
    assert_same(made, resize_numpy(data, **attributes), 1e-6)
    return made


@pytest.mark.parametrize(
    ("rounding", "wanted"),
    [
        ("round_prefer_floor", [0, 8]),
        ("round_prefer_ceil", [4, 12]),
        ("floor", [0, 8]),
        ("ceil", [4, 12]),
    ],
)
def test_nearest_rounds_the_middle(rounding, wanted):
    assert both(LINE, axes=(0,), sizes=(2,), rounding=rounding).tolist() == wanted


def test_linear_by_hand():
    how = {"axes": (0,), "mode": "linear"}
    assert both(LINE, scales=(2.0,), **how).tolist() == [0, 1, 3, 5, 7, 9, 11, 12]
    corners = both(LINE, sizes=(3,), coordinates="align_corners", **how)
    assert corners.tolist() == [0, 6, 12]
    smoothed = both(LINE, sizes=(2,), antialias=True, exclude_outside=True, **how)
    np.testing.assert_allclose(smoothed, [20 / 7, 64 / 7], rtol=1e-6)


def test_a_scale_that_keeps_the_extent_still_moves_elements() -> None:
    how = {"axes": (0,), "mode": "linear", "coordinates": "asymmetric"}
    made = both(np.array([0, 12], np.float32), scales=(1.2,), **how)
    assert made.tolist() == [0, 10]


def test_a_scale_decides_positions_and_a_size_the_extent():
    how = {"axes": (0,), "mode": "linear", "coordinates": "asymmetric"}
    assert both(LINE, scales=(2.0,), sizes=(3,), **how).tolist() == [0, 2, 4]


def test_cubic_reproduces_a_line_inside():
    line = np.arange(8, dtype=np.float32)
    made = both(line, axes=(0,), sizes=(16,), mode="cubic", cubic_coefficient=-0.5)
    np.testing.assert_allclose(made[4:12], (np.arange(4, 12) + 0.5) / 2 - 0.5, rtol=1e-6)


def test_cropping_extrapolates():
    how = {"axes": (0,), "sizes": (3,), "coordinates": "tf_crop_and_resize"}
    made = both(LINE, mode="linear", roi=(0.0, 2.0), extrapolation_value=9.0, **how)
    assert made.tolist() == [0, 12, 9]


def test_an_axis_that_keeps_its_positions_keeps_infinities():
    data = np.array([[np.inf, 1], [-np.inf, np.nan]], np.float32)
    assert_same(both(data, axes=(0, 1), sizes=(2, 2), mode="cubic"), data)
    assert np.isnan(both(data, axes=(1,), sizes=(3,), mode="linear")[1, 2])


def test_no_axes_and_no_elements():
    data = floats(0, 0, 3)
    assert both(data, axes=(1,), sizes=(6,), mode="linear").shape == (0, 6)
    assert_same(both(LINE, axes=()), LINE)


def test_symbolic_extents_of_other_axes_are_kept():
    data = floats(0, 3, 4)
    how = {"axes": (1,), "sizes": (6,), "mode": "cubic"}
    assert_same(run_te(resize, data, **how), resize_numpy(data, **how), 1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": (2,), "mode": "area"}, "resize does not know the mode 'area'"),
        ({"sizes": (2,), "coordinates": "x"}, "resize does not know the coordinates 'x'"),
        ({"sizes": (2,), "rounding": "up"}, "resize does not know the rounding 'up'"),
        ({"sizes": (2,), "axes": (2,)}, "axis 2 is out of range"),
        ({"sizes": (2, 2), "axes": (1, -1)}, r"cannot resize an axis twice: \(1, -1\)"),
        ({}, "needs sizes or scales"),
        ({"sizes": (2,), "scales": (2.0, 1.0)}, r"cannot resize 1 axes by \(2.0, 1.0\)"),
        ({"sizes": (2, 3)}, r"cannot resize 1 axes by \(2, 3\)"),
        ({"sizes": (0,)}, r"cannot resize 1 axes by \(0,\)"),
        ({"scales": (0.1,)}, r"cannot make extents of \[3\] by the scales \(0.1,\)"),
        ({"sizes": (2,), "roi": (0.0,)}, "cannot crop 1 axes by 1 numbers"),
    ],
)
def test_ill_formed_resizings_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        resize(*tensors((2, 3)), **{"axes": (1,), **options})


def test_unfit_tensors_are_refused():
    with pytest.raises(UserError, match="takes float tensors in the mode linear, not i32"):
        resize(*tensors((2,), dtype="int32"), axes=(0,), sizes=(3,), mode="linear")
    with pytest.raises(UserError, match="an axis of extent 0"):
        resize(*tensors((0,)), axes=(0,), sizes=(3,))
    with pytest.raises(UserError, match="a resized extent must be a constant"):
        resize(*tensors((var("n"),)), axes=(0,), sizes=(3,))
