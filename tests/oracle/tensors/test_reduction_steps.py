"""The iterations of a reduction, for all elements at once."""

import numpy as np
import pytest

import refcomp
from refcomp import oracle
from refcomp.foundation.errors import Unsupported

A = refcomp.placeholder((5, 5), name="A")
COUNTS = refcomp.placeholder((5,), "int32", name="counts")


def _rows(high, reducer=refcomp.sum):
    def row(i):
        k = refcomp.reduce_axis((0, high(i)), name="k")
        return reducer(A[i, k], axis=k)

    return refcomp.compute((5,), row, name="C")


def test_each_element_has_its_own_iterations():
    a = np.random.default_rng(0).standard_normal((5, 5), "float32")
    counts = np.array([5, 0, 3, -2, 1], "int32")
    (found,) = oracle.evaluate([_rows(lambda i: COUNTS[i])], {A: a, COUNTS: counts})
    expected = [np.float32(0)] * 5
    for i, count in enumerate(counts):
        for k in range(count):
            expected[i] = expected[i] + a[i, k]
    assert found.tolist() == expected
    (greatest,) = oracle.evaluate([_rows(lambda i: i, refcomp.max)], {A: a})
    assert greatest[0] == -np.inf and greatest[4] == a[4, :4].max()


def test_conditions_are_evaluated_inside_of_the_range_only():
    b = refcomp.placeholder((3,), name="B")

    def row(i):
        k = refcomp.reduce_axis((0, i + 1), name="k")
        return refcomp.sum(b[k], axis=k, where=b[k] > 0.0)

    c = refcomp.compute((3,), row, name="C")
    (found,) = oracle.evaluate([c], {b: np.array([1, -2, 4], "float32")})
    assert found.tolist() == [1, 1, 5]


def test_errors_are_bounded_over_the_iterations_of_each_element():
    a = np.random.default_rng(1).standard_normal((5, 5), "float32")
    c = _rows(lambda i: i)
    (bounded,) = oracle.bound_errors([c], {A: a})
    (found,) = oracle.evaluate([c], {A: a})
    assert np.all(np.abs(found - bounded.value) <= bounded.error)
    assert bounded.error[0] == 0 == bounded.error[1] and bounded.error[4] > 0


def test_errors_are_not_bounded_if_rounding_decides_the_number_of_iterations():
    one = refcomp.compute((5,), lambda i: refcomp.exp(A[i, 0]) / refcomp.exp(A[i, 0]), name="one")
    c = _rows(lambda i: refcomp.minimum(one[i].astype("int64"), 5))
    with pytest.raises(Unsupported, match="the errors of a reduction whose range ends at"):
        oracle.bound_errors([c], {A: np.full((5, 5), 0.3, "float32")})
