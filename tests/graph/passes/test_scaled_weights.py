"""Weights times scales: rounded once, and which products are exact enough."""

import numpy as np

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
