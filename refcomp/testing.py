"""Comparison of results and gradients in tests, under the classic names of `refcomp.testing`.

Example::

    >>> rc.testing.assert_allclose(rc.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.ndarray import NDArray

# Arrays by name, or in order.
Arrays = Mapping[str, NDArray | ArrayLike] | Sequence[NDArray | ArrayLike]
_LISTED = 5  # elements that a message lists


def assert_allclose(
    actual: NDArray | ArrayLike,
    desired: NDArray | ArrayLike,
    rtol: float = 1e-7,
    atol: float = 1e-7,
) -> None:
    """Raise AssertionError unless |actual - desired| <= atol + rtol * |desired| everywhere.

    NaN equals NaN, and an infinity equals itself. The message lists the elements that differ.

    Args:
        actual: an array on any device, a numpy array or a number.
        desired: the same, of the same shape.
        rtol: the relative tolerance, a number of at least 0.
        atol: the absolute tolerance, a number of at least 0.

    Raises:
        AssertionError: an element differs by more, or the shapes differ.

    Source: TVM, tvm.testing.assert_allclose; numpy.testing.assert_allclose.

    Example::

        >>> rc.testing.assert_allclose(rc.array([1.0, np.nan]), np.array([1.0, np.nan]))
        >>> rc.testing.assert_allclose(1.0, 1.1)
        Traceback (most recent call last):
            ...
        AssertionError: ...
    """
    found = as_numpy(actual)
    wanted = as_numpy(desired)
    # numpy's own function would broadcast one shape to the other.
    assert found.shape == wanted.shape, (
        f"shapes differ: {found.shape}, expected {wanted.shape}"
    )
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, verbose=True)


def as_numpy(value: NDArray | ArrayLike) -> np.ndarray:
    """Return a numpy array with the elements of an array or number.

    Args:
        value: an array on any device, a numpy array or a number.

    Example::

        >>> rc.testing.as_numpy(rc.array([1, 2]))
        array([1, 2])
    """
    if isinstance(value, NDArray):
        return value.asnumpy()
    return np.asarray(value)


@dataclass(frozen=True, slots=True)
class CentralDifference:
    """The slope of a function at a point, by two pairs of neighbours.

    With D(h) = (f(x + h) - f(x - h)) / (2 * h), Taylor's theorem gives D(h) - D(h / 2) = 3/4 of the
    truncation error of D(h), up to h**4.

    Attributes:
        wide: D(h).
        close: D(h / 2).
        change: the distance of both, which bounds the truncation error of `close`.
        slope: both combined, so that their errors of order h**2 cancel (Richardson).

    Reference: W. H. Press et al., Numerical Recipes, section 5.7.

    Example::

        >>> found = rc.testing.central_difference(lambda h: (2.0 + h) ** 3, 0.5)
        >>> found.wide, found.close, found.change, found.slope
        (12.25, 12.0625, 0.1875, 12.0)
    """

    wide: float
    close: float

    @property
    def change(self) -> float:
        """Return a bound of the truncation error of `close`."""
        return abs(self.wide - self.close)

    @property
    def slope(self) -> float:
        """Return the slope without errors of order h**2."""
        return (4 * self.close - self.wide) / 3


def central_difference(
    function: Callable[[float], ArrayLike],
    step: float,
    rounded: Callable[[float], float] = float,
) -> CentralDifference:
    """Return the slope of a function of an offset, at 0.

    Args:
        function: takes an offset, and returns a number, or the terms of a sum as an array.
        step: the larger one of two offsets, a number greater than 0.
        rounded: returns the offset that is used for a wanted one, if not all can be.

    Returns:
        The differences. They are NaN if the number of terms changes, or no offsets can be used.

    Example::

        >>> rc.testing.central_difference(lambda h: np.array([3 * h, 4 * h]), 0.25).slope
        7.0
    """

    def difference(offset: float) -> float:
        above = rounded(offset)
        below = rounded(-offset)
        after = np.asarray(function(above))
        before = np.asarray(function(below))
        if after.shape != before.shape or above == below:
            return np.nan
        # Term by term, since the sums may be large and their difference small.
        return float((after - before).sum() / (above - below))

    return CentralDifference(difference(step), difference(step / 2))


def check_numerical_grads(
    function: Callable[..., NDArray | ArrayLike],
    input_values: Arrays,
    grad_values: Arrays,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Raise AssertionError unless gradients agree with central differences of a function.

    The gradients are those of the sum of all elements that the function returns. For each element,
    |gradient - difference| <= atol + rtol * |difference|. The classic function compares the lengths
    of whole vectors, so that a single wrong element of a long gradient passes.

    Args:
        function: takes the inputs as numpy arrays, by name or by position as `input_values` holds
            them. It returns an array or a number. It is called four times for each element.
        input_values: the inputs by name, or a list: arrays of floats.
        grad_values: the gradients by name, or a list: arrays of the shapes of their inputs. Inputs
            that are missing in a dict are not checked.
        delta: the distance at which differences are taken, a number greater than 0.
        atol: the absolute tolerance, a number of at least 0.
        rtol: the relative tolerance, a number of at least 0.

    Raises:
        AssertionError: a gradient differs by more, has another shape, or is not finite.
        UserError: an input is not of floats, a gradient belongs to no input, a list has fewer
            gradients than inputs, or `delta` is not greater than 0.

    Source: TVM, tvm.testing.check_numerical_grads.

    Example::

        >>> x = np.array([1.0, 2.0, 3.0])
        >>> rc.testing.check_numerical_grads(lambda x: x**2, {"x": x}, {"x": 2 * x})
        >>> rc.testing.check_numerical_grads(lambda x: x**2, [x], [x])
        Traceback (most recent call last):
            ...
        AssertionError: the gradient by input 0 differs from central differences...
    """
    if not callable(function):
        raise UserError(
            f"{function!r} is not a function",
            remedy="pass a function of numpy arrays",
        )
    if not delta > 0:
        raise UserError(
            f"differences cannot be taken at the distance {delta}",
            remedy="use a small number greater than 0, such as 1e-3",
        )
    inputs = _by_name(input_values)
    for name, value in inputs.items():
        if value.dtype.kind != "f":
            raise UserError(
                f"input {name} has the dtype {value.dtype}",
                why="the slope by an integer is not defined",
                remedy="pass floats; bind other arguments in a lambda",
            )

    def call(values: dict[Any, np.ndarray]) -> np.ndarray:
        is_named = isinstance(input_values, Mapping)
        made = function(**values) if is_named else function(*values.values())
        return as_numpy(made).astype(np.float64)

    gradients = _by_name(grad_values)
    if not isinstance(grad_values, Mapping) and len(gradients) < len(inputs):
        raise UserError(
            f"{len(gradients)} gradients are given for {len(inputs)} inputs",
            why="gradients without names belong to the inputs in order",
            remedy="pass one for each input, or a dict of those to check",
        )
    for name, gradient in gradients.items():
        if name not in inputs:
            known = ", ".join(map(str, inputs))
            raise UserError(
                f"a gradient is given for input {name}, which does not exist",
                remedy=f"the inputs are {known or 'none'}",
            )
        assert gradient.shape == inputs[name].shape, (
            f"the gradient by input {name} has the shape {gradient.shape}, "
            f"but the input has {inputs[name].shape}"
        )
        numerical = _numerical_gradient(call, inputs, name, delta)
        _compare(name, gradient, numerical, atol, rtol)


def _by_name(values: Arrays) -> dict[Any, np.ndarray]:
    if isinstance(values, Mapping):
        return {name: as_numpy(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return dict(enumerate(map(as_numpy, values)))
    raise UserError(
        f"{type(values).__name__} holds no arrays by name or by position",
        remedy='pass {"x": x} for a function of x=..., or [x] for a function of one argument',
    )


def _numerical_gradient(
    call: Callable[[dict[Any, np.ndarray]], np.ndarray],
    inputs: dict[Any, np.ndarray],
    name: object,
    delta: float,
) -> np.ndarray:
    """Return the slopes of the sum of `call` by each element of the input `name`."""
    slopes = np.zeros(inputs[name].shape, np.float64)
    point = inputs[name]
    for place in np.ndindex(slopes.shape):
        at = float(point[place])

        def result(offset: float, place: tuple[int, ...] = place) -> np.ndarray:
            moved = point.copy()
            moved[place] += offset
            return call({**inputs, name: moved})

        def rounded(offset: float, at: float = at) -> float:
            return float(point.dtype.type(at + offset)) - at

        slopes[place] = central_difference(result, delta, rounded).slope
    return slopes


def _compare(
    name: object, gradient: np.ndarray, numerical: np.ndarray, atol: float, rtol: float
) -> None:
    differences = np.abs(gradient.astype(np.float64) - numerical)
    # Also where either is NaN, which compares as false.
    is_wrong = ~(differences <= atol + rtol * np.abs(numerical))
    listed = "".join(
        f"\n  {tuple(map(int, at))}: {gradient[tuple(at)]}, numerically {numerical[tuple(at)]}"
        for at in np.argwhere(is_wrong)[:_LISTED]
    )
    assert not is_wrong.any(), (
        f"the gradient by input {name} differs from central differences "
        f"in {is_wrong.sum()} of {gradient.size} elements, such as{listed}"
    )
