"""Resampling along axes: the tables of weights."""

import numpy as np
import pytest

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.topi.image.positions import as_fraction, positions_of
from refcomp.topi.image.resampling import Resampling, resample
from tests.strategies.operands import run_te, tensors


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_weights_of_a_position_add_up_to_one(mode, antialias):
    options = Resampling("resize", mode, "half_pixel", exclude_outside=True, antialias=antialias)
    axis = positions_of("half_pixel", size=7, count=3, scale=as_fraction(0.43))
    ones = np.ones((2, 7), np.float32)
    made = run_te(lambda data: resample(data, {1: axis}, options), ones)
    np.testing.assert_allclose(made, np.ones((2, 3)), rtol=1e-6)


def test_halves_are_interpolated_in_f32():
    options = Resampling("resize", "linear", "half_pixel")
    (data,) = tensors((4,), dtype="float16")
    axis = positions_of("half_pixel", size=4, count=8, scale=as_fraction(2))
    made = resample(data, {0: axis}, options)
    assert str(made.dtype) == "f16"
    assert made.op.inputs[0].dtype == F32


def test_interpolated_integers_are_refused():
    (data,) = tensors((4,), dtype="int8")
    with pytest.raises(UserError, match="upsampling takes float tensors in the mode cubic, not i8"):
        Resampling("upsampling", "cubic", "half_pixel").check(data)
