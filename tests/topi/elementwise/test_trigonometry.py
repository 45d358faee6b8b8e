"""Trigonometric functions: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import trigonometry
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name -> operands, results
KNOWN = {
    "sin": ([0, -0.0, np.pi / 2, INF, -INF, NAN], [0, -0.0, 1, NAN, NAN, NAN]),
    "cos": ([0, -0.0, np.pi, INF, -INF, NAN], [1, 1, -1, NAN, NAN, NAN]),
    "tan": ([0, -0.0, np.pi / 4, INF, -INF, NAN], [0, -0.0, 1, NAN, NAN, NAN]),
    "asin": ([0, -0.0, 1, -1, 2, NAN], [0, -0.0, np.pi / 2, -np.pi / 2, NAN, NAN]),
    "acos": ([1, 0, -1, 2, NAN], [0, np.pi / 2, np.pi, NAN, NAN]),
    "atan": ([0, -0.0, 1, -INF, INF, NAN], [0, -0.0, np.pi / 4, -np.pi / 2, np.pi / 2, NAN]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_special_values(name):
    given, expected = (np.float32(values) for values in KNOWN[name])
    found = run_te(getattr(trigonometry, name), given)
    assert_same(found, expected, 1e-6)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))
    assert_same(getattr(trigonometry, f"{name}_numpy")(given), expected, 1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_rank_zero_and_no_elements(name):
    for data in (np.float32(0.5), np.zeros((0, 3), np.float32)):
        assert run_te(getattr(trigonometry, name), data).shape == data.shape


@pytest.mark.parametrize("name", KNOWN)
def test_other_operands_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(trigonometry, name)(*tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(trigonometry, name)(np.zeros(2))
