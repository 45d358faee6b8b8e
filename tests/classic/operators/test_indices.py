"""Functions on indices agree with numpy, for numbers and for expressions."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic import topi
from refcomp.foundation.errors import UserError
from refcomp.oracle import evaluate


def test_places_and_indices_are_converted() -> None:
    assert topi.util.ravel_index((1, 2, 3), (4, 5, 6)) == np.ravel_multi_index((1, 2, 3), (4, 5, 6))
    assert topi.util.unravel_index(45, (4, 5, 6)) == list(np.unravel_index(45, (4, 5, 6)))
    assert topi.util.ravel_index((), ()) == 0


def test_expressions_are_converted() -> None:
    A = rc.placeholder((3, 4), name="A")
    flat = rc.compute((12,), lambda i: A[tuple(topi.util.unravel_index(i, A.shape))], name="flat")
    back = rc.compute((3, 4), lambda i, j: flat[topi.util.ravel_index((i, j), A.shape)])
    a = np.arange(12, dtype="float32").reshape(3, 4)
    for result, expected in zip(evaluate([flat, back], {A: a}), (a.ravel(), a), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_matrix_is_a_compute() -> None:
    matrix = np.array([[1, 0, -2], [0.5, 3, 4]], "float32")
    made = topi.util.const_matrix(matrix, "G")
    assert (made.op.name, made.dtype) == ("G", "float32")
    np.testing.assert_array_equal(evaluate([made], {})[0], matrix)


def test_constants_are_recognized() -> None:
    n = rc.var("n")
    assert topi.util.equal_const_int(rc.const(3, "int32"), 3)
    assert topi.util.equal_const_int(3, 3)
    assert not topi.util.equal_const_int(rc.const(4, "int32"), 3)
    assert not topi.util.equal_const_int(n, 3)
    assert not topi.util.equal_const_int(n * 0 + n, 0)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="2 indices do not fit 1 extents"):
        topi.util.ravel_index((1, 2), (3,))
    with pytest.raises(UserError, match="the rows of a matrix have different lengths"):
        topi.util.const_matrix([[1, 2], [3]])
    with pytest.raises(UserError, match="a matrix has two axes, not 1"):
        topi.util.const_matrix([1, 2])
