"""Hyperbolic functions and their inverses: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import hyperbolic
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name -> operands, results
KNOWN = {
    "sinh": ([0, -0.0, 1, -90, INF, NAN], [0, -0.0, 1.1752012, -INF, INF, NAN]),
    "cosh": ([0, 1, -90, INF, NAN], [1, 1.5430806, INF, INF, NAN]),
    "asinh": ([0, -0.0, 1.1752012, -INF, NAN], [0, -0.0, 1, -INF, NAN]),
    "acosh": ([1, 1.5430806, 0.5, INF, NAN], [0, 1, NAN, INF, NAN]),
    "atanh": ([0, -0.0, 0.5, 1, -1, 2, NAN], [0, -0.0, 0.54930614, INF, -INF, NAN, NAN]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_special_values(name):
    given, expected = (np.float32(values) for values in KNOWN[name])
    found = run_te(getattr(hyperbolic, name), given)
    assert_same(found, expected, 1e-6)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))
    assert_same(getattr(hyperbolic, f"{name}_numpy")(given), expected, 1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_rank_zero_and_no_elements(name):
    for data in (np.float32(0.5), np.zeros((0, 3), np.float32)):
        assert run_te(getattr(hyperbolic, name), data).shape == data.shape


@pytest.mark.parametrize("name", KNOWN)
def test_other_operands_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(hyperbolic, name)(*tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(hyperbolic, name)(np.zeros(2))
