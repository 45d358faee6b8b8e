"""Tensors of one number."""

import numpy as np

import refcomp as rc
from tests.graph.symbol.applied import numbers, one


def test_tensors_without_inputs() -> None:
    np.testing.assert_array_equal(one(rc.sym.zeros(shape=(2, 3))), np.zeros((2, 3), "float32"))
    made = one(rc.sym.ones(shape=(2,), dtype="int32"))
    np.testing.assert_array_equal(made, np.ones(2, "int32"))
    for function in (rc.sym.full, rc.sym.fill):
        made = one(function(shape=(2, 3), fill_value=2.5, dtype="float64"))
        np.testing.assert_array_equal(made, np.full((2, 3), 2.5))


def test_tensors_like_another() -> None:
    x = rc.sym.Variable("x")
    data = numbers(2, 3)
    np.testing.assert_array_equal(one(rc.sym.zeros_like(x), data), np.zeros_like(data))
    np.testing.assert_array_equal(one(rc.sym.ones_like(x), data), np.ones_like(data))
    made = one(rc.sym.full_like(x, fill_value=-2), data)
    np.testing.assert_array_equal(made, np.full_like(data, -2))
