"""Convolution: te against its numpy meaning, and the meaning against a few numbers by hand."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.te.extents import extents as extents_of
from refcomp.te.tensor import var
from refcomp.topi.convolution.conv2d import conv2d, conv2d_nhwc, conv2d_nhwc_numpy, conv2d_numpy
from tests.strategies.operands import (
    assert_same,
    batches,
    integers,
    kernels,
    pairs,
    run_te,
    seeds,
    tensors,
)

paddings = st.tuples(*[st.integers(0, 2)] * 4)
sizes = st.tuples(st.integers(3, 7), st.integers(3, 7))


def window_fits(size: tuple, kernel: tuple, padding: tuple, dilation: tuple) -> bool:
    spans = [size[k] + padding[k] + padding[k + 2] - dilation[k] * (kernel[k] - 1) for k in (0, 1)]
    return min(spans) >= 1


@pytest.mark.search
@given(batches, sizes, kernels, pairs, paddings, pairs, st.integers(1, 3), st.booleans(), seeds)
def test_conv2d_is_its_meaning(n, size, kernel, strides, padding, dilation, groups, biased, seed):
    assume(window_fits(size, kernel, padding, dilation))
    data = integers(seed, n, 2 * groups, *size)
    weight = integers(seed + 1, 3 * groups, 2, *kernel)
    bias = integers(seed + 2, 3 * groups) if biased else None
    how = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    assert_same(run_te(conv2d, data, weight, bias, **how), conv2d_numpy(data, weight, bias, **how))


@pytest.mark.search
@given(batches, sizes, kernels, pairs, paddings, pairs, st.booleans(), seeds)
def test_conv2d_nhwc_is_its_meaning(n, size, kernel, strides, padding, dilation, biased, seed):
    assume(window_fits(size, kernel, padding, dilation))
    data, weight = integers(seed, n, *size, 2), integers(seed + 1, *kernel, 2, 3)
    bias = integers(seed + 2, 3) if biased else None
    how = {"strides": strides, "padding": padding, "dilation": dilation}
    assert_same(
        run_te(conv2d_nhwc, data, weight, bias, **how),
        conv2d_nhwc_numpy(data, weight, bias, **how),
    )


def test_meaning_by_hand() -> None:
    data = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    weight = np.array([[[[1, 0], [0, 10]]]], np.float32)
    expected = [[0 + 40, 1 + 50], [3 + 70, 4 + 80]]
    np.testing.assert_array_equal(conv2d_numpy(data, weight)[0, 0], expected)
    shifted = conv2d_numpy(data, weight, np.array([1], np.float32), padding=(1, 1, 0, 0))
    np.testing.assert_array_equal(shifted[0, 0, 0], [1, 11, 21])


def test_extents_stay_constant_where_they_can() -> None:
    data, weight = tensors((var("n"), 2, 8, 8), (4, 2, 3, 3))
    shape = extents_of(conv2d(data, weight, padding=(1, 1, 1, 1)))
    assert shape[1:] == (4, 8, 8)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((1, 2, 5), (3, 2, 3, 3)), {}, "the data has 3 dimensions instead of 4"),
        (((1, 2, 5, 5), (3, 3, 3, 3)), {}, "the data's channel extent is 2 instead of 3"),
        (
            ((1, 2, 5, 5), (3, 1, 3, 3)),
            {"groups": 2},
            "cannot divide 3 output channels into 2 groups",
        ),
        (((1, 2, 5, 5), (3, 2, 7, 3)), {}, "a window of 7 does not fit in 5 elements"),
        (((1, 2, 5, 5), (3, 2, 3, 3)), {"strides": (0, 1)}, "strides"),
        (((1, 2, 5, 5), (3, 2, 3, 3)), {"padding": (1, 1)}, "padding"),
        (((1, 2, 5, 5), (3, 2, 3, 3), (4,)), {}, "the bias' extent is 4 instead of 3"),
    ],
)
def test_ill_formed_convolutions_are_refused(shapes, options, message) -> None:
    with pytest.raises(UserError, match=message):
        conv2d(*tensors(*shapes), **options)


def test_mixed_dtypes_are_refused() -> None:
    (data,), (weight,) = tensors((1, 2, 5, 5)), tensors((3, 2, 3, 3), dtype="float64")
    with pytest.raises(UserError, match="conv2d cannot combine f32 with f64"):
        conv2d(data, weight)
