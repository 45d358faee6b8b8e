"""Weights times scales: rounded once, and which products are exact enough."""

import numpy as np

from refcomp.graph.passes.scaled_weights import is_normal, scaled_along, scaled_filters
from tests.strategies.operands import floats

WEIGHT = floats(0, 4, 3, 2, 2)
SCALE = floats(1, 4).astype(np.float64)


def test_products_are_rounded_once() -> None:
    expected = (WEIGHT.astype(np.float64) * SCALE.reshape(4, 1, 1, 1)).astype("float32")
    np.testing.assert_array_equal(scaled_filters(WEIGHT, SCALE), expected)
    np.testing.assert_array_equal(scaled_along(WEIGHT, SCALE, 0), expected)
    along = scaled_along(WEIGHT, SCALE[:3], 1)
    expected = (WEIGHT.astype(np.float64) * SCALE[:3].reshape(3, 1, 1)).astype("float32")
    np.testing.assert_array_equal(along, expected)
    assert along.dtype == np.float32


def test_products_must_be_normal_numbers() -> None:
    def check(weight: list[float], scale: float) -> bool:
        array = np.array(weight, "float32")
        scales = np.full(len(weight), scale)
        with np.errstate(all="ignore"):
            return is_normal(scaled_along(array, scales, 0), array, scales)

    assert check([1, 2, 0], 3)
    assert check([1, 2], 0)
    assert not check([1, 2], np.inf)
    assert not check([1, np.nan], 1)
    assert not check([1e30, 1], 1e30)
    assert not check([1e-30, 1], 1e-30)
