"""Tensors and numbers, by operators of Python and by name."""

import operator

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from tests.graph.symbol.applied import numbers, one, positive, run

X = rc.sym.Variable("x")
CASES = {
    "__add_scalar__": (X + 2.5, lambda x: x + 2.5),
    "added": (2.5 + X, lambda x: x + 2.5),
    "__sub_scalar__": (X - 2, lambda x: x - 2),
    "__rsub_scalar__": (2 - X, lambda x: 2 - x),
    "__mul_scalar__": (X * 3, lambda x: x * 3),
    "multiplied": (3 * X, lambda x: x * 3),
    "__div_scalar__": (X / 4, lambda x: x / 4),
    "__rdiv_scalar__": (4 / X, lambda x: np.float32(4) / x),
    "negated": (-X, lambda x: -x),
}


@pytest.mark.parametrize("name", CASES)
def test_operator_of_python_agrees_with_numpy(name: str) -> None:
    net, expected = CASES[name]
    x = positive(3, 4)
    np.testing.assert_array_equal(one(net, x), expected(x))
    if name.startswith("__"):
        assert net.name is not None
        assert net.name.startswith(name)


def test_powers_agree_with_numpy() -> None:
    x = positive(3, 4)
    np.testing.assert_array_equal(one(X**2, x), (x.astype("float64") ** 2).astype("float32"))
    expected = (2.0 ** x.astype("float64")).astype("float32")
    np.testing.assert_array_max_ulp(one(2**X, x), expected, 1)
    named = rc.sym.Group([rc.sym.__pow_scalar__(X, scalar=2), rc.sym.__rpow_scalar__(X, scalar=2)])
    for made, same in zip(run(named, x), run(rc.sym.Group([X**2, 2**X]), x), strict=True):
        np.testing.assert_array_equal(made, same)


def test_shifts_by_a_number() -> None:
    x = numbers(3, 4, dtype="int32")
    left = rc.sym.__left_shift_scalar__(X, scalar=2)
    np.testing.assert_array_equal(one(left, x), x << 2)
    np.testing.assert_array_equal(one(rc.sym.__right_shift_scalar__(X, scalar=1), x), x >> 1)


@pytest.mark.parametrize(("scalar", "remedy"), [(0.5, "a whole number"), (1e30, "a smaller num")])
def test_integers_refuse_numbers_that_they_cannot_hold(scalar: float, remedy: str) -> None:
    with pytest.raises(
        UserError, match=rf"(?s)is not a value of i32.*__add_scalar__ node.*{remedy}"
    ):
        (X + scalar).to_graph({"x": (2,)}, {"x": "int32"})


def test_two_symbols_broadcast() -> None:
    y = rc.sym.Variable("y")
    a, b = positive(2, 3), positive(3, seed=1)
    for combine in (operator.add, operator.sub, operator.mul, operator.truediv):
        np.testing.assert_array_equal(one(combine(X, y), a, b), combine(a, b))
    expected = (a.astype("float64") ** b).astype("float32")
    np.testing.assert_array_max_ulp(one(X**y, a, b), expected, 1)


@pytest.mark.parametrize("other", ["text", None, True, [1]])
def test_other_operands_are_refused(other: object) -> None:
    with pytest.raises(UserError, match="a symbol cannot be combined with a .*\n.*a number"):
        X + other
    with pytest.raises(UserError, match="a symbol cannot be combined with a"):
        other / X
