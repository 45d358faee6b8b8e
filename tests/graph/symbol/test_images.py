"""Operators of images, compared with plain numpy."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from tests.graph.symbol.applied import numbers, one

X = rc.sym.Variable("x")
DATA = numbers(2, 3, 6, 8)
LAST = DATA.transpose(0, 2, 3, 1)


def blocks(data: np.ndarray) -> np.ndarray:
    """Return [n, c, h / 2, w / 2, 4]: each block of two rows and columns."""
    n, c, h, w = data.shape
    parts = data.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return parts.reshape(n, c, h // 2, w // 2, 4)


@pytest.mark.parametrize(("name", "reduce"), [("max_pool2d", np.max), ("avg_pool2d", np.mean)])
def test_pools_reduce_windows(name: str, reduce: object) -> None:
    pool = getattr(rc.sym, name)
    made = one(pool(X, pool_size=(2, 2), strides=(2, 2)), DATA)
    expected = reduce(blocks(DATA), axis=-1)
    np.testing.assert_array_equal(made, expected)
    made = one(pool(X, pool_size=(2, 2), strides=(2, 2), layout="NHWC"), LAST)
    np.testing.assert_array_equal(made, expected.transpose(0, 2, 3, 1))


def test_padding_may_count_in_the_mean() -> None:
    options = {"pool_size": (2, 2), "padding": (0, 0, 1, 0)}
    counted = one(rc.sym.avg_pool2d(X, count_include_pad=True, **options), np.ones_like(DATA))
    assert counted.shape == (2, 3, 6, 7)
    assert (counted[:, :, :-1] == 1).all()
    assert (counted[:, :, -1] == 0.5).all()
    odd = {"pool_size": (3, 3), "padding": (1, 1)}
    plain = one(rc.sym.avg_pool2d(X, **odd), np.ones_like(DATA))
    assert (plain == 1).all()


def test_last_window_may_reach_beyond_the_image() -> None:
    options = {"pool_size": (3, 3), "strides": (2, 2)}
    assert one(rc.sym.max_pool2d(X, **options), DATA).shape == (2, 3, 2, 3)
    made = one(rc.sym.max_pool2d(X, ceil_mode="True", **options), DATA)
    assert made.shape == (2, 3, 3, 4)
    np.testing.assert_array_equal(made[:, :, 2, 3], DATA[:, :, 4:, 6:].max(axis=(2, 3)))


def test_global_pools_reduce_channels() -> None:
    made = one(rc.sym.global_max_pool2d(X), DATA)
    np.testing.assert_array_equal(made, DATA.max(axis=(2, 3), keepdims=True))
    made = one(rc.sym.global_avg_pool2d(X, layout="NHWC"), LAST)
    expected = LAST.astype("float64").mean(axis=(1, 2), keepdims=True).astype("float32")
    np.testing.assert_array_equal(made, expected)


def test_nearest_upsampling_repeats_pixels() -> None:
    made = one(rc.sym.upsampling(X, scale=2), DATA)
    np.testing.assert_array_equal(made, DATA.repeat(2, 2).repeat(2, 3))
    made = one(rc.sym.upsampling(X, scale=2, layout="NHWC"), LAST)
    np.testing.assert_array_equal(made, LAST.repeat(2, 1).repeat(2, 2))


def test_bilinear_upsampling_interpolates() -> None:
    made = one(rc.sym.upsampling(X, scale=2, method="BILINEAR"), DATA)
    np.testing.assert_array_equal(made[:, :, ::2, ::2], DATA)
    between = (DATA[..., :-1] + DATA[..., 1:]) / 2
    np.testing.assert_array_equal(made[:, :, ::2, 1:-1:2], between)


def test_resized_images_keep_aligned_corners() -> None:
    made = one(rc.sym.resize(X, size=(11, 15), align_corners=True), DATA)
    np.testing.assert_allclose(made[:, :, ::2, ::2], DATA, atol=1e-6)
    made = one(rc.sym.resize(X, size=(3, 4), method="NEAREST_NEIGHBOR"), DATA)
    np.testing.assert_array_equal(made, DATA[:, :, ::2, ::2])


def test_padding_agrees_with_numpy() -> None:
    width = ((0, 0), (1, 0), (2, 3), (0, 1))
    expected = np.pad(DATA, width, constant_values=-1.5)
    np.testing.assert_array_equal(
        one(rc.sym.pad(X, pad_width=width, pad_value=-1.5), DATA), expected
    )
    texts = rc.sym.pad(X, pad_width=str(width), pad_value="-1.5")
    np.testing.assert_array_equal(one(texts, DATA), expected)
    whole = numbers(2, 3, dtype="int32")
    made = one(rc.sym.pad(X, pad_width=((1, 1), (0, 0)), pad_value=7), whole)
    np.testing.assert_array_equal(made, np.pad(whole, ((1, 1), (0, 0)), constant_values=7))


def test_response_normalization_divides_by_neighbours() -> None:
    made = one(rc.sym.lrn(X, size=3, alpha=0.5, beta=0.75, bias=2), DATA)
    squares = np.pad(DATA.astype("float64") ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    np.testing.assert_allclose(made, DATA / (2 + 0.5 / 3 * sums) ** 0.75, rtol=1e-6)


def test_wrong_layouts_and_paddings_are_refused() -> None:
    with pytest.raises(UserError, match=r"layout of max_pool2d is 'NCWH'(.|\n)*one of NCHW, NHWC"):
        rc.sym.max_pool2d(X, pool_size=(2, 2), layout="NCWH")
    with pytest.raises(UserError, match=r"out_layout is 'NHWC', but layout is 'NCHW'"):
        rc.sym.max_pool2d(X, pool_size=(2, 2), out_layout="NHWC").infer_shape(x=(1, 3, 8, 8))
    with pytest.raises(
        UserError, match=r"the padding \(1, 2, 3\) has 3 numbers(.|\n)*or four \(top"
    ):
        rc.sym.max_pool2d(X, pool_size=(2, 2), padding=(1, 2, 3)).infer_shape(x=(1, 3, 8, 8))
