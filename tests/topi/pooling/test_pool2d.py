"""Pooling: te against its numpy meaning, and the meaning against a few numbers by hand."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.topi.convolution.conv2d_nchwc import block_channels, unblock_channels
from refcomp.topi.pooling import pool2d as pool
from tests.strategies.operands import (
    assert_same,
    batches,
    extents,
    integers,
    kernels,
    pairs,
    run_te,
    seeds,
    tensors,
)

layouts = st.sampled_from(["NCHW", "NHWC", "NCHWc"])
sizes = st.tuples(st.integers(3, 7), st.integers(3, 7))


@st.composite
def windows(draw):
    kernel = draw(kernels)
    padding = tuple(draw(st.integers(0, kernel[k % 2] - 1)) for k in range(4))
    return {"kernel": kernel, "padding": padding, "strides": draw(pairs), "layout": draw(layouts)}


def images(seed: int, n: int, channels: int, size: tuple, layout: str) -> np.ndarray:
    shapes = {
        "NCHW": (n, channels, *size),
        "NHWC": (n, *size, channels),
        "NCHWc": (n, channels, *size, 2),
    }
    shape = shapes[layout]
    return integers(seed, *shape)


@pytest.mark.search
@given(batches, extents, sizes, windows(), pairs, seeds)
def test_max_pool2d_is_its_meaning(n, channels, size, window, dilation, seed):
    reach = [dilation[k] * (window["kernel"][k] - 1) + 1 for k in (0, 1)]
    assume(all(reach[k] <= size[k] for k in (0, 1)))
    data = images(seed, n, channels, size, window["layout"])
    how = {**window, "dilation": dilation}
    assert_same(run_te(pool.max_pool2d, data, **how), pool.max_pool2d_numpy(data, **how))


@pytest.mark.search
@given(batches, extents, sizes, windows(), st.booleans(), seeds)
def test_avg_pool2d_is_its_meaning(n, channels, size, window, count_include_pad, seed):
    data = images(seed, n, channels, size, window["layout"])
    how = {**window, "count_include_pad": count_include_pad}
    # The sum is exact here, and the division rounds once in both.
    assert_same(run_te(pool.avg_pool2d, data, **how), pool.avg_pool2d_numpy(data, **how), 1e-7)


def test_meanings_by_hand() -> None:
    data = np.array([[1, -2, 3], [4, 5, -6], [7, 8, 9]], np.float32).reshape(1, 1, 3, 3)
    how = {"kernel": (2, 2), "padding": (1, 0, 0, 0)}
    greatest = pool.max_pool2d_numpy(data, **how)[0, 0]
    np.testing.assert_array_equal(greatest, [[1, 3], [5, 5], [8, 9]])
    mean = pool.avg_pool2d_numpy(data, **how)[0, 0]
    np.testing.assert_array_equal(mean, [[-0.5, 0.5], [2, 0], [6, 4]])
    with_padding = pool.avg_pool2d_numpy(data, **how, count_include_pad=True)[0, 0]
    np.testing.assert_array_equal(with_padding[0], [-0.25, 0.25])


def test_average_of_a_window_in_the_padding() -> None:
    """As numpy's mean of nothing, and as ONNX's evaluator; ONNX Runtime refuses such padding."""
    data = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 1, 2, 2)
    how = {"kernel": (2, 2), "padding": (2, 3, 2, 0)}
    rows = [[np.nan] * 4, [np.nan, 1, 1.5, 2], [np.nan, 2, 2.5, 3], [np.nan, 3, 3.5, 4]]
    # Padding before is 2 at the top and 3 at the left; after it is 2 and 0.
    expected = np.array([[np.nan, *row][:4] for row in [*rows, rows[0]]], np.float32)
    mean = run_te(pool.avg_pool2d, data, **how)
    np.testing.assert_array_equal(mean[0, 0], expected)
    np.testing.assert_array_equal(pool.avg_pool2d_numpy(data, **how), mean)
    counted = run_te(pool.avg_pool2d, data, **how, count_include_pad=True)
    assert counted[0, 0, 0].tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(counted[0, 0, 2], [0, 0, 1, 2.5])
    np.testing.assert_array_equal(
        pool.avg_pool2d_numpy(data, **how, count_include_pad=True), counted
    )


def test_max_pool2d_of_integers_and_of_nan() -> None:
    data = np.array([[-128, -100], [-128, -128]], np.int8).reshape(1, 1, 2, 2)
    how = {"kernel": (2, 2), "padding": (1, 1, 1, 1)}
    assert_same(run_te(pool.max_pool2d, data, **how), pool.max_pool2d_numpy(data, **how))
    poisoned = np.array([[np.nan, 1], [2, 3]], np.float32).reshape(1, 1, 2, 2)
    assert np.isnan(run_te(pool.max_pool2d, poisoned, kernel=(2, 2))).all()
    assert np.isnan(pool.max_pool2d_numpy(poisoned, kernel=(2, 2))).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": (2, 2), "layout": "CHWN"}, "does not know the layout 'CHWN'"),
        ({"kernel": (2, 2), "padding": (2, 0, 0, 0)}, "a window would hold only padding"),
        ({"kernel": (0, 2)}, r"kernel \(0, 2\)"),
        ({"kernel": (5, 1)}, "a window of 5 does not fit in 4"),
        ({"kernel": (2, 2), "padding": (1, 1)}, r"max_pool2d cannot use the padding \(1, 1\)"),
        ({"kernel": (2, 2), "strides": (1,)}, r"max_pool2d cannot have the strides \(1,\)"),
        ({"kernel": (2, 2), "dilation": (1, 0)}, r"max_pool2d cannot have the dilation \(1, 0\)"),
    ],
)
def test_ill_formed_poolings_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        pool.max_pool2d(*tensors((1, 2, 4, 4)), **options)


def test_averages_of_integers_are_refused() -> None:
    (data,) = tensors((1, 2, 4, 4), dtype="int32")
    with pytest.raises(UserError, match="avg_pool2d takes float tensors"):
        pool.avg_pool2d(data, kernel=(2, 2))
    with pytest.raises(UserError, match="lp_pool2d takes float tensors"):
        pool.lp_pool2d(data, kernel=(2, 2))


def test_norm_of_a_degree_below_1_is_refused() -> None:
    (data,) = tensors((1, 2, 4, 4))
    with pytest.raises(UserError, match="lp_pool2d cannot take the norm of degree 0"):
        pool.lp_pool2d(data, kernel=(2, 2), p=0)


@pytest.mark.parametrize(("p", "expected"), [(1, 7), (2, 5)])
def test_norms_by_hand(p, expected):
    data = np.array([3, -4, 0, 0], np.float32).reshape(1, 1, 2, 2)
    how = {"kernel": (2, 2), "p": p}
    wanted = np.full((1, 1, 1, 1), expected, np.float32)
    assert_same(run_te(pool.lp_pool2d, data, **how), wanted)
    assert_same(pool.lp_pool2d_numpy(data, **how), wanted)


def test_poolings_of_blocks_are_those_of_the_channels() -> None:
    data = integers(1, 2, 6, 5, 5)
    how = {"kernel": (3, 2), "strides": (2, 1), "padding": (1, 0, 1, 1)}
    blocked = pool.max_pool2d_numpy(
        block_channels(data, 3), dilation=(1, 1), layout="NCHWc", ceil_mode=True, **how
    )
    plain = pool.max_pool2d_numpy(data, ceil_mode=True, **how)
    assert_same(unblock_channels(blocked), plain)


def test_blocks_need_five_dimensions() -> None:
    with pytest.raises(UserError, match="the data has 4 dimensions instead of 5"):
        pool.max_pool2d(*tensors((1, 2, 5, 5)), kernel=(2, 2), layout="NCHWc")
