"""Comparing results as the classic API does."""

import warnings

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.testing import assert_allclose, central_difference, check_numerical_grads


def test_what_is_close() -> None:
    assert_allclose(1.0, 1.0 + 1e-9)
    assert_allclose(np.array([1.0, np.nan, np.inf]), [1.0, np.nan, np.inf])
    assert_allclose(refcomp.array([1.0, 2.0]), np.array([1.0, 2.1]), rtol=0.1)
    assert_allclose([0.0], [1e-9])
    refcomp.testing.assert_allclose([100.0], [101.0], atol=1.0)


def test_what_is_not() -> None:
    for actual, desired in ([[1.0], [1.1]], [[0.0], [1e-6]], [[np.nan], [0.0]], [[1], [2]]):
        with pytest.raises(AssertionError, match="Mismatched elements|nan location"):
            assert_allclose(np.array(actual), desired)


def test_shapes_are_not_stretched() -> None:
    with pytest.raises(AssertionError, match=r"shapes differ: \(1,\), expected \(2,\)"):
        assert_allclose([1.0], [1.0, 1.0])


@pytest.mark.pocl
def test_arrays_of_a_device() -> None:
    assert_allclose(refcomp.array([1.0, 2.0], refcomp.opencl()), [1.0, 2.0])


def test_central_differences_of_a_cubic_are_exact() -> None:
    found = central_difference(lambda h: (1.0 + h) ** 3, 0.5)
    assert (found.wide, found.close, found.slope) == (3.25, 3.0625, 3.0)
    # The bound holds: the error of `close` is 0.0625.
    assert found.change == 0.1875 >= abs(found.close - 3.0)


def test_central_difference_of_a_changing_number_of_terms_is_nan() -> None:
    assert np.isnan(central_difference(lambda h: np.ones(2 if h > 0 else 1), 0.1).slope)


def test_gradients_by_name_and_by_position() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    y = np.array([0.5, 1.5])

    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x**2 * y

    slopes = {"x": 2 * x * y, "y": (x**2).sum(0)}
    check_numerical_grads(f, {"y": y, "x": x}, slopes, rtol=1e-9, atol=1e-9)
    check_numerical_grads(f, [x, y], [slopes["x"], slopes["y"]], rtol=1e-9, atol=1e-9)
    check_numerical_grads(f, {"x": x, "y": y}, {"y": slopes["y"]})


@pytest.mark.parametrize("place", [0, 3])
def test_one_wrong_element_is_found_and_named(place: int) -> None:
    x = np.arange(1.0, 5.0)
    wrong = 2 * x
    wrong[place] += 1.0
    with pytest.raises(AssertionError, match="the gradient by input x differs") as caught:
        check_numerical_grads(lambda x: x**2, {"x": x}, {"x": wrong})
    assert f"in 1 of 4 elements, such as\n  ({place},): {wrong[place]}, nu" in str(caught.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_offsets_are_those_that_the_dtype_holds(dtype: str) -> None:
    # The ulp of an f16 near 2 is as large as twice the offset.
    x = np.array([0.3, 2.1, -7.3], dtype)
    check_numerical_grads(
        lambda x: 3.0 * x.astype("float64"), [x], [np.full(3, 3.0)], delta=1e-2, rtol=1e-6
    )


def test_offsets_that_the_dtype_does_not_hold_are_an_error() -> None:
    x = np.array([2048.0], "float16")
    # Nothing is divided by 0, so that no warning is shown.
    nan = pytest.raises(AssertionError, match="numerically nan")
    with np.errstate(divide="raise", invalid="raise"), warnings.catch_warnings(), nan:
        warnings.simplefilter("error")
        check_numerical_grads(lambda x: x, [x], [np.ones(1)])


def test_gradients_that_are_not_finite_are_an_error() -> None:
    x = np.array([1.0])
    with pytest.raises(AssertionError, match=r"in 1 of 1 elements, such as\n  \(0,\): nan"):
        check_numerical_grads(lambda x: x, [x], [np.array([np.nan])])


def test_gradient_of_another_shape_is_an_error() -> None:
    x = np.ones((2, 1))
    with pytest.raises(AssertionError, match=r"has the shape \(2,\), but the input has \(2, 1\)"):
        check_numerical_grads(lambda x: x, [x], [np.ones(2)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: check_numerical_grads(3, [x], [x]), "3 is not a function"),
        (lambda x: check_numerical_grads(abs, [x], [x], delta=0.0), "at the distance 0.0"),
        (lambda x: check_numerical_grads(abs, [x.astype(int)], [x]), "has the dtype int64"),
        (lambda x: check_numerical_grads(abs, {"x": x}, {"y": x}), "y, which does not exist"),
        (lambda x: check_numerical_grads(abs, x, x), r"holds no arrays(.|\n)*pass \{\"x\": x\}"),
    ],
)
def test_mistakes_are_refused(call, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(np.ones(2))


def test_gradient_of_te_agrees() -> None:
    a = refcomp.placeholder((3,), "float64", name="A")
    b = refcomp.compute((3,), lambda i: refcomp.exp(a[i]) * a[i], name="B")
    head = refcomp.placeholder((3,), "float64", name="head")
    (da,) = refcomp.te.gradient(b, [a], head)
    x = np.array([0.1, -1.0, 2.0])
    (slope,) = refcomp.oracle.evaluate([da], {a: x, head: np.ones(3)})
    check_numerical_grads(
        lambda x: refcomp.oracle.evaluate([b], {a: x})[0], [x], [slope], rtol=1e-6, atol=1e-6
    )


def test_a_list_has_a_gradient_for_each_input():
    x = np.ones(2)
    with pytest.raises(UserError, match="1 gradients are given for 2 inputs(.|\n)*a dict of those"):
        check_numerical_grads(lambda a, b: a + b, [x, x], [x])
