"""Exponentials and logarithms: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import exponentials
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name -> operands, results
KNOWN = {
    "exp": ([0, 1, 89, -INF, INF, NAN], [1, np.e, INF, 0, INF, NAN]),
    "exp2": ([0, 0.5, 128, -INF, INF, NAN], [1, 2**0.5, INF, 0, INF, NAN]),
    "exp10": ([0, 2, 39, -INF, INF, NAN], [1, 100, INF, 0, INF, NAN]),
    "expm1": ([0, -0.0, 1e-8, 89, -INF, NAN], [0, -0.0, 1e-8, INF, -1, NAN]),
    "log": ([1, np.e, 0, -1, INF, NAN], [0, 1, -INF, NAN, INF, NAN]),
    "log2": ([1, 8, -0.0, -1, INF, NAN], [0, 3, -INF, NAN, INF, NAN]),
    "log10": ([1, 1000, 0, -1, INF, NAN], [0, 3, -INF, NAN, INF, NAN]),
    "log1p": ([0, 1e-8, -1, -2, INF, NAN], [0, 1e-8, -INF, NAN, INF, NAN]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_special_values(name):
    given, expected = (np.float32(values) for values in KNOWN[name])
    found = run_te(getattr(exponentials, name), given)
    assert_same(found, expected, 1e-6)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))
    assert_same(getattr(exponentials, f"{name}_numpy")(given), expected, 1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_rank_zero_and_no_elements(name):
    for data in (np.float32(0.5), np.zeros((0, 3), np.float32)):
        assert run_te(getattr(exponentials, name), data).shape == data.shape


@pytest.mark.parametrize("name", KNOWN)
def test_other_operands_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(exponentials, name)(*tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(exponentials, name)(np.zeros(2))
