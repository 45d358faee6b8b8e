"""The builder of reductions: axes, shapes, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te import reducer
from refcomp.te.tensor import var
from refcomp.topi.draws import Draws
from refcomp.topi.reduction.reduce import (
    accumulator_of,
    count_of,
    draw_reduction,
    normalize_axes,
    reduce_elements,
    reduced_shape,
)
from tests.strategies.operands import run_te, tensors


def total(data, *, axis=None, keepdims=False):
    return reduce_elements(data, reducer.sum, axis=axis, keepdims=keepdims, name="total")


@pytest.mark.parametrize(
    ("axis", "places"), [(None, (0, 1, 2)), (1, (1,)), (-1, (2,)), ((2, 0), (0, 2)), ((), ())]
)
def test_axes_are_counted_from_zero(axis, places):
    assert normalize_axes(axis, 3, "total") == places


def test_ill_formed_axes_are_refused():
    with pytest.raises(UserError, match="total names an axis twice: \\(0, -2\\)"):
        normalize_axes((0, -2), 2, "total")
    with pytest.raises(UserError, match="total: axis 2 is out of range for 2 dimensions"):
        normalize_axes(2, 2, "total")
    with pytest.raises(UserError, match="total: axis 0 is out of range for 0 dimensions"):
        normalize_axes(0, 0, "total")


def test_bools_and_arrays_are_refused():
    with pytest.raises(UserError, match="total takes numbers, not bool"):
        total(*tensors((2,), dtype="bool"))
    with pytest.raises(UserError, match="total is applied to a ndarray, not to a tensor"):
        total(np.zeros(2))


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (1, 2, 0), ()])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("is_symbolic", [True, False])
def test_reduced_axes_vanish_or_have_the_extent_one(axis, keepdims, is_symbolic):
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    found = run_te(total, data, axis=axis, keepdims=keepdims, is_symbolic=is_symbolic)
    np.testing.assert_array_equal(found, data.sum(axis=axis, keepdims=keepdims))


def test_shapes_and_counts_may_be_symbolic():
    n = var("n")
    (data,) = tensors((n, 3, 4))
    assert reduced_shape((n, 3, 4), (1,), keepdims=False) == (n, 4)
    assert reduced_shape((n, 3, 4), (1,), keepdims=True) == (n, 1, 4)
    assert count_of(data, (1, 2)) == 12
    assert str(count_of(data, (0, 1))) == "n * 3"


def test_half_floats_are_accumulated_in_f32():
    (half,) = tensors((2,), dtype="float16")
    (single,) = tensors((2,))
    assert str(accumulator_of(half.dtype)) == "f32"
    assert str(accumulator_of(single.dtype)) == "f32"
    large = np.float16([60000, 60000, -60000])
    np.testing.assert_array_equal(run_te(total, large), np.float16(60000))


def test_samples_have_valid_axes():
    for seed in range(50):
        sample = draw_reduction(Draws(seed), "int32")
        rank = sample.operands[0].ndim
        assert set(normalize_axes(sample.attributes["axis"], rank, "sample")) <= set(range(rank))
