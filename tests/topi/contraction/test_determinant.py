"""det: exchanges of rows, singular matrices, special values, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.contraction.determinant import det, det_numpy


def _found(data):
    tensor = rc.placeholder(data.shape, data.dtype, name="data")
    return rc.oracle.evaluate([det(tensor)], {tensor: data})[0]


def test_exchanges_change_the_sign():
    swapped = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], np.float64)
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.float64)
    np.testing.assert_array_equal(_found(np.stack([swapped, cycle])), [-1, 1])


def test_the_greatest_pivot_keeps_small_elements_apart():
    # Without an exchange, 1 - 1e20 * 1 would lose the 1.
    data = np.array([[1e-20, 1], [1, 1]], np.float64)
    assert _found(data) == pytest.approx(-1, rel=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_batches_agree_with_numpy(dtype):
    data = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(dtype)
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(_found(data), np.linalg.det(data.astype("f8")), tolerance, tolerance)


def test_singular_matrices_and_nan():
    np.testing.assert_array_equal(_found(np.zeros((2, 3, 3), np.float32)), [0, 0])
    assert _found(np.array([[1, 2], [2, 4]], np.float32)) == 0
    assert np.isnan(_found(np.array([[np.nan, 0], [0, 0]], np.float32)))
    assert _found(np.array([[0, np.nan], [0, 0]], np.float32)) == 0


def test_the_meaning_of_small_integers_is_an_integer_but_for_rounding():
    data = np.random.default_rng(2).integers(-2, 3, (50, 4, 4)).astype("float64")
    np.testing.assert_allclose(det_numpy(data), np.rint(np.linalg.det(data)), 0, 1e-14)


def test_no_elements():
    np.testing.assert_array_equal(_found(np.zeros((2, 0, 0), np.float32)), [1, 1])
    assert _found(np.zeros((0, 3, 3), np.float32)).shape == (0,)


@pytest.mark.llvm
def test_large_matrices_on_the_host():
    data = np.random.default_rng(1).standard_normal((3, 40, 40))
    tensor = rc.placeholder(data.shape, data.dtype, name="data")
    result = det(tensor)
    built = rc.build(rc.topi.schedule_llvm([result]), [tensor, result], "llvm")
    found = rc.array(np.zeros(3))
    built(rc.array(data), found)
    np.testing.assert_allclose(found.asnumpy(), np.linalg.det(data), 1e-10)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((3,), "float32", "det takes matrices, not a tensor of 1 dimensions"),
        ((2, 3), "float32", "det: the number of columns is 3 instead of 2"),
        ((2, 2), "int32", "det takes float tensors, not i32"),
    ],
)
def test_mistakes_are_explained(shape, dtype, message):
    with pytest.raises(UserError, match=message):
        det(rc.placeholder(shape, dtype))


def test_symbolic_extents_are_refused():
    n = rc.var("n")
    with pytest.raises(UserError, match="det: an extent must be a constant"):
        det(rc.placeholder((n, 2, 2), "float32"))
