"""Adjoints of expressions: each rule against a difference quotient in f64."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import Unsupported
from refcomp.te.gradients.elements import adjoints

STEP = 1e-6
# Name -> a point away from kinks, in the domain of the function.
ONE = {
    "abs": -0.7,
    "exp": 0.3,
    "exp2": 0.3,
    "exp10": 0.3,
    "expm1": 0.3,
    "log": 0.6,
    "log2": 0.6,
    "log10": 0.6,
    "log1p": 0.6,
    "erf": 0.4,
    "sqrt": 0.6,
    "rsqrt": 0.6,
    "sin": 0.4,
    "cos": 0.4,
    "tan": 0.4,
    "asin": 0.4,
    "acos": 0.4,
    "atan": 0.4,
    "sinh": 0.4,
    "cosh": 0.4,
    "tanh": 0.4,
    "asinh": 0.4,
    "acosh": 1.4,
    "atanh": 0.4,
    "sigmoid": 0.4,
}
TWO = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a / b": lambda a, b: a / b,
    "pow": rc.power,
    "atan2": rc.atan2,
    "hypot": rc.hypot,
    "fmod": rc.fmod,
    "copysign": lambda a, b: rc.copysign(a, -b),
    "max": rc.maximum,
    "min": rc.minimum,
    "fma": lambda a, b: rc.fma(a, b, a),
    "select": lambda a, b: rc.select(a > b, a * b, b),
    "if_then_else": lambda a, b: rc.if_then_else(a > b, a * b, b),
    "shared": lambda a, b: (a * b + rc.exp(a)) * (a * b),
}


def _values(function, points):
    """Return the value of function(a, b), and its adjoints, at points of f64."""
    tensors = [rc.placeholder((1,), "float64", name=f"p{k}") for k in range(len(points))]
    feeds = {t: np.array([x]) for t, x in zip(tensors, points, strict=True)}

    def evaluated(element):
        (found,) = rc.oracle.evaluate([rc.compute((1,), element)], feeds)
        return float(found[0])

    value = evaluated(lambda i: function(*(t[i] for t in tensors)))
    slopes = []
    for tensor in tensors:

        def slope(i, tensor=tensor):
            root = function(*(t[i] for t in tensors))
            found = adjoints(root, rc.const(1.0, "float64"))
            zero = rc.const(0.0, "float64")
            return sum((adjoint for read, adjoint in found if read.tensor is tensor), zero)

        slopes.append(evaluated(slope))
    return value, slopes


def _check(function, points):
    _, slopes = _values(function, points)
    for place, slope in enumerate(slopes):
        moved = [[*points], [*points]]
        moved[0][place] += STEP
        moved[1][place] -= STEP
        above, below = (_values(function, p)[0] for p in moved)
        # The quotient has an error of some STEP ** 2, and of rounding by STEP.
        assert slope == pytest.approx((above - below) / (2 * STEP), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", ONE)
def test_slope_of_a_function(name):
    _check(getattr(rc, name), [ONE[name]])


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("points", [[0.7, 0.4], [1.3, 2.6]])
def test_slopes_of_two_operands(name, points):
    _check(TWO[name], points)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_jumps_have_no_slope(name):
    assert _values(getattr(rc, name), [0.4])[1] == [0.0]


def test_a_maximum_of_equal_values_passes_its_adjoint_to_the_first() -> None:
    assert _values(rc.maximum, [2.0, 2.0])[1] == [1.0, 0.0]
    assert _values(rc.minimum, [2.0, 2.0])[1] == [1.0, 0.0]
    assert _values(rc.abs, [0.0])[1] == [0.0]


def test_a_conversion_keeps_the_dtypes_apart() -> None:
    a = rc.placeholder((1,), "float16", name="A")
    (found,) = adjoints(a[0].astype("float32"), rc.const(1.0, "float32"))
    assert found[1].dtype == a.dtype


def test_integers_have_no_adjoint() -> None:
    a = rc.placeholder((1,), "int32", name="A")
    assert adjoints(a[0].astype("float32") * 2.0, rc.const(1.0, "float32")) == []


def test_a_function_without_a_known_derivative_is_refused() -> None:
    a = rc.placeholder((1,), "float32", name="A")
    with pytest.raises(Unsupported, match="derivative of bits_to_float is unknown") as info:
        adjoints(rc.nextafter(a[0], 1.0), rc.const(1.0, "float32"))
    assert "by hand" in info.value.remedy


def test_adjoint_keeps_the_guard_of_what_its_branch_reads() -> None:
    a, b = (rc.placeholder((3,), "float64", name=name) for name in "ab")
    # Without the guard, the gradient of b would read a[-1].
    made = rc.compute((3,), lambda i: rc.if_then_else(i > 0, a[i - 1] * b[i], 0.0), name="made")
    head = rc.placeholder((3,), "float64", name="head")
    by_a, by_b = rc.te.gradient(made, [a, b], head)
    feeds = {a: np.array([2.0, 3, 5]), b: np.array([7.0, 11, 13]), head: np.ones(3)}
    (found,) = rc.oracle.evaluate([by_b], {a: feeds[a], head: feeds[head]})
    np.testing.assert_array_equal(found, [0, 2, 3])
    (found,) = rc.oracle.evaluate([by_a], {b: feeds[b], head: feeds[head]})
    np.testing.assert_array_equal(found, [11, 13, 0])
