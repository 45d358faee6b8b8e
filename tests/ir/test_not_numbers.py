"""Python and numpy cannot compute with expressions; each refusal names refcomp's function."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.ir.not_numbers import REFCOMP_NAMES

A = rc.placeholder((4,), name="A")
X = A[rc.var("i")]
N = rc.var("n", "int32")


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    assert caught.value.why
    assert caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(REFCOMP_NAMES))
def test_every_function_that_is_recommended_exists(name: str) -> None:
    assert callable(getattr(rc, REFCOMP_NAMES[name]))
    assert hasattr(np, name) or name == "bitwise_count"  # which numpy 2 has


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (np.exp, "use refcomp.exp(x)"),
        (np.arcsin, "use refcomp.asin(x)"),
        (np.abs, "use refcomp.abs(x)"),
        (np.sum, "use refcomp.sum(x, axis=k) with k = refcomp.reduce_axis((0, n))"),
        (np.cbrt, "write it with refcomp's functions, which help(refcomp.te) lists"),
        (np.clip, "write it with refcomp's functions, which help(refcomp.te) lists"),
        (lambda x: np.maximum(x, 0), "use refcomp.maximum(x, y)"),
        (lambda x: np.maximum(0, x), "use refcomp.maximum(x, y)"),
        (lambda x: np.where(x > 0, x, 0), "use refcomp.if_then_else(c, x, y)"),
        (lambda x: np.add.at(x, 0, 1), "help(refcomp.te)"),
    ],
)
def test_functions_of_numpy(function: Any, remedy: str) -> None:
    text = refusal(lambda: function(X))
    assert text.startswith("numpy's ")
    assert "cannot be applied to an expression" in text
    assert text.endswith(remedy) or remedy in text


def test_numpys_words_for_operators_are_operators() -> None:
    for both in (
        (np.add(X, 2.0), X + 2.0),
        (np.less(1.0, X), X > 1.0),
        (np.multiply(2.0, X), 2.0 * X),
    ):
        assert str(both[0]) == str(both[1])


@pytest.mark.parametrize("number", [np.float32(2), np.float64(2), np.int64(2), np.bool_(True)])
def test_a_number_of_numpy_means_the_same_on_both_sides(number: Any) -> None:
    for operate in (operator.add, operator.mul, operator.truediv):
        assert operate(number, X).dtype == operate(X, number).dtype


def test_arrays_of_numpy_are_not_multiplied_element_by_element() -> None:
    assert "ndarray" in refused(lambda: np.ones(3) * X)
    assert "ndarray" in refused(lambda: X * np.ones(3))


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "what", "remedy"),
    [
        (lambda: math.exp(X), "math module", "use refcomp.exp(x) for math.exp(x)"),
        (lambda: float(X), "float()", ".astype(dtype)"),
        (lambda: int(X), "int()", '.astype("int32")'),
        (lambda: range(N), "range()", "reduce_axis"),
        (lambda: [1, 2][N], "an index of Python's", "reduce_axis"),
        (lambda: np.zeros(N), "an index of Python's or numpy's", "reduce_axis"),
        (lambda: abs(X), "abs()", "refcomp.abs(x)"),
        (lambda: round(X), "round()", "refcomp.round(x)"),
        (lambda: round(X, 2), "round()", "refcomp.round(x)"),
        (lambda: math.floor(X), "math.floor()", "refcomp.floor(x)"),
        (lambda: math.ceil(X), "math.ceil()", "refcomp.ceil(x)"),
        (lambda: math.trunc(X), "math.trunc()", "refcomp.trunc(x)"),
        (lambda: X**2, "`**`", "x * x or refcomp.power(x, y)"),
        (lambda: 2**X, "`**`", "refcomp.exp2(y)"),
        (lambda: divmod(N, 2), "divmod()", "refcomp.floormod(x, y)"),
        (lambda: divmod(2, N), "divmod()", "refcomp.floormod(x, y)"),
        (lambda: X @ X, "`@`", "refcomp.topi.matmul(A, B)"),
        (lambda: np.ones(3) @ X, "`@`", "refcomp.topi.matmul(A, B)"),
        (lambda: np.array(X), "numpy's array()", "the built function"),
    ],
)
def test_functions_and_operators_of_python(call: Any, what: str, remedy: str) -> None:
    text = refusal(call)
    assert what in text.splitlines()[0]
    assert "cannot be applied to an expression" in text
    assert remedy in text


def test_elements_of_an_expression() -> None:
    matrix = rc.placeholder((2, 2), name="M")
    for use in (lambda: X[0], lambda: matrix[0, 1][0], lambda: matrix[0][1][0]):
        assert "as many indices as it has dimensions" in refused(use)


def test_constants_are_numbers() -> None:
    (extent,) = A.shape
    assert (int(extent), float(extent), list(range(extent))) == (4, 4.0, [0, 1, 2, 3])
    assert np.zeros(A.shape).shape == (4,)
    assert math.exp(rc.const(0.0)) == 1.0
    assert "int()" in refused(lambda: int(rc.const(2.5)))
