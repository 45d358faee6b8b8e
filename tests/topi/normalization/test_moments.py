"""Sums along axes: what is refused, in which dtype they are formed, and means of nothing."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.normalization.moments import (
    check_axes,
    mean_numpy,
    moments_along,
    rounded,
    sum_dtype,
)
from tests.strategies.operands import run_te, tensors


def test_axes_are_counted_from_0() -> None:
    assert check_axes((-1, 0), 3, "op") == (0, 2)


@pytest.mark.parametrize("axes", [(), (0, 0), (1, -1)])
def test_missing_and_repeated_axes_are_refused(axes):
    with pytest.raises(UserError, match=r"op cannot reduce along the axes \("):
        check_axes(axes, 2, "op")


def test_an_axis_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="op: axis 2 is out of range for 2 dimensions"):
        check_axes((2,), 2, "op")


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [("float16", "f32"), ("bfloat16", "f32"), ("float32", "f32"), ("float64", "f64")],
)
def test_short_floats_are_added_up_in_f32(dtype, wide):
    (data,) = tensors((2,), dtype=dtype)
    assert str(sum_dtype(data)) == wide


def test_constants_are_rounded_as_in_computes() -> None:
    assert rounded(0.1, np.zeros(1, np.float16)) == np.float32(0.1)
    assert rounded(0.1, np.zeros(1, np.float64)) == 0.1


@pytest.mark.filterwarnings("error")
def test_mean_of_nothing_is_nan() -> None:
    assert np.isnan(mean_numpy(np.zeros((2, 0)), (1,))).all()


def test_variance_does_not_cancel() -> None:
    data = np.array([[4096, 4097]], np.float32)
    variance = run_te(lambda t: moments_along(t, (1,)).variance, data)
    assert variance.tolist() == [[0.25]]
