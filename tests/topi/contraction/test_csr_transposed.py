"""Products of which gradients consist: what is left out, elements of several rows, refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.contraction.csr_transposed import (
    csr_sampled_matmul,
    csr_sampled_matmul_numpy,
    csrmm_transposed,
    csrmm_transposed_numpy,
)


def evaluate(operator, *arrays, **attributes):
    given = [rc.placeholder(a.shape, a.dtype, name=f"p{k}") for k, a in enumerate(arrays)]
    made = operator(*given, **attributes)
    (found,) = rc.oracle.evaluate([made], dict(zip(given, arrays, strict=True)))
    return found


_DATA = np.array([5, 6, 7], "float32")


def test_elements_of_several_rows_count_in_each():
    """Row 0 has all elements, and row 1 the last two. Column 5 does not exist."""
    overlapping = np.array([0, 1, 9, 3], "int32")
    columns = np.array([1, 5, 1], "int32")
    b = np.array([[1], [10], [100]], "float32")
    expected = [[0], [5 + 70]]
    for found in (
        evaluate(csrmm_transposed, _DATA, columns, overlapping, b, columns=2),
        csrmm_transposed_numpy(_DATA, columns, overlapping, b, columns=2),
    ):
        assert found.tolist() == expected
    other = np.array([[2], [3]], "float32")
    for found in (
        evaluate(csr_sampled_matmul, columns, overlapping, b, other),
        csr_sampled_matmul_numpy(columns, overlapping, b, other),
    ):
        assert found.tolist() == [3, 0, 30]


def test_sums_of_narrow_floats_are_wide():
    ones = np.ones(2050, "float16")
    rows = np.array([0, 2050], "int32")
    places = np.zeros(2050, "int32")
    found = evaluate(csrmm_transposed, ones, places, rows, np.ones((1, 1), "float16"), columns=1)
    assert found.dtype == np.float16 and found.tolist() == [[2050]]
    a = np.ones((1, 2050), "float16")
    found = evaluate(csr_sampled_matmul, places[:1], np.array([0, 1], "int32"), a, a)
    assert found.dtype == np.float16 and found.tolist() == [2050]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, i, p, b: csrmm_transposed(d, i, p, b, columns=-1), "columns is -1"),
        (lambda d, i, p, b: csrmm_transposed(d, i, p, b, columns=True), "columns is True"),
        (lambda d, i, p, b: csrmm_transposed(b, i, p, b, columns=2), "has 2 dim"),
        (lambda d, i, p, b: csrmm_transposed(d, d, p, b, columns=2), "takes integer tensors"),
        (lambda d, i, p, b: csrmm_transposed(d, i, i, b, columns=2), "the rows of b is"),
        (lambda d, i, p, b: csrmm_transposed(p, i, p, b, columns=2), "cannot combine"),
        (lambda d, i, p, b: csr_sampled_matmul(i, p, d, b), "a has 1 dimensions"),
        (lambda d, i, p, b: csr_sampled_matmul(i, p, b, d), "b has 1 dimensions"),
        (lambda d, i, p, b: csr_sampled_matmul(i, i, b, b), "the rows of a is"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    data = rc.placeholder((3,), name="D")
    indices = rc.placeholder((3,), "int32", name="I")
    indptr = rc.placeholder((3,), "int32", name="P")
    b = rc.placeholder((2, 2), name="B")
    if "rows of" in message:
        indices = rc.placeholder((4,), "int32", name="I")
        data = rc.placeholder((4,), name="D")
    with pytest.raises(UserError, match=message):
        call(data, indices, indptr, b)
