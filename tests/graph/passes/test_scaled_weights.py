"""Weights times scales: rounded once, and which products are exact enough."""

import numpy as np
import pytest

from refcomp.graph.passes import scaled_weights
from refcomp.graph.passes.scaled_weights import scaled, scaled_filters
from tests.strategies.operands import floats

WEIGHT = floats(0, 4, 3, 2, 2)
SCALE = floats(1, 4).astype(np.float64)


def test_products_are_rounded_once() -> None:
    expected = (WEIGHT.astype(np.float64) * SCALE.reshape(4, 1, 1, 1)).astype("float32")
    np.testing.assert_array_equal(scaled_filters(WEIGHT, SCALE), expected)
    np.testing.assert_array_equal(scaled(WEIGHT, SCALE.reshape(4, 1, 1, 1)), expected)
    along = scaled(WEIGHT, SCALE[:3].reshape(3, 1, 1))
    expected = (WEIGHT.astype(np.float64) * SCALE[:3].reshape(3, 1, 1)).astype("float32")
    np.testing.assert_array_equal(along, expected)
    assert along is not None and along.dtype == np.float32


def test_products_must_be_normal_numbers() -> None:
    def check(weight: list[float], *factors: float) -> bool:
        return scaled(np.array(weight, "float32"), np.array(factors)) is not None

    assert check([1, 2, 0], 3)
    assert check([1, 2], 0)
    assert check([1e30, 1], 1, 1e30)
    assert not check([1, 2], np.inf)
    assert not check([1, np.nan], 1)
    assert not check([1e30, 1], 1e30)
    assert not check([1e-30, 1], 1e-30)
    # A factor of 0 does not excuse the other one.
    assert not check([1e-30, 1], 1e-30, 0)


def test_integers_are_not_scaled() -> None:
    assert scaled(np.ones(2, np.int32), np.ones(2)) is None


@pytest.mark.parametrize("block", [1, 7, 25, 1000])
def test_blocks_of_rows_make_no_difference(block, monkeypatch) -> None:
    monkeypatch.setattr(scaled_weights, "_BLOCK", block)
    for shape in [(), (0, 3), (5,), (4, 3, 2, 2), (1, 30)]:
        weight = floats(2, *shape)
        for factor in (floats(3), floats(4, *shape)):
            expected = (weight.astype(np.float64) * factor).astype("float32")
            np.testing.assert_array_equal(scaled(weight, factor), expected)
    tiny = np.array([1, 1, 1e-30], "float32")
    assert scaled(tiny, np.array([1, 1, 1e-30])) is None
