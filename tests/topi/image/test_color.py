"""Conversions of colours: known values, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.tensor import var
from refcomp.topi.image import color
from tests.strategies.operands import assert_same, floats, run_te, tensors


def test_yuv_and_back():
    data = floats(0, 2, 3, 4)
    there = run_te(color.rgb_to_yuv, data, axis=1)
    assert_same(run_te(color.yuv_to_rgb, there, axis=1), data, 1e-5)
    grey = run_te(color.rgb_to_grayscale, data, axis=1)
    assert_same(grey, there[:, :1], 2e-3)


def test_grey_has_no_chroma():
    grey = np.full((1, 3), 0.5, np.float32)
    np.testing.assert_allclose(run_te(color.rgb_to_yuv, grey), [[0.5, 0, 0]], atol=1e-7)
    assert_same(run_te(color.yuv_to_rgb, np.array([[0.5, 0, 0]], np.float32)), grey)


def test_an_infinity_does_not_reach_colours_without_it():
    data = np.array([[0, np.inf, 0]], np.float32)
    assert run_te(color.yuv_to_rgb, data).tolist() == [[0, -np.inf, np.inf]]


@pytest.mark.parametrize("operator", [color.rgb_to_grayscale, color.rgb_to_yuv, color.yuv_to_rgb])
def test_unfit_tensors_are_refused(operator):
    name = operator.__name__
    with pytest.raises(UserError, match=f"{name} takes three colours along axis -1"):
        operator(*tensors((2, 4)))
    with pytest.raises(UserError, match=f"{name} takes three colours along axis 0"):
        operator(*tensors((var("n"), 3)), axis=0)
    with pytest.raises(UserError, match=f"{name}: axis 1 is out of range"):
        operator(*tensors((3,)), axis=1)
    with pytest.raises(UserError, match=f"{name} takes float tensors, not u8"):
        operator(*tensors((3,), dtype="uint8"))
