"""Squares, roots, reciprocals and the error function: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import powers
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name -> operands, results
KNOWN = {
    "square": ([-3, -0.0, -INF, 1e30, NAN], [9, 0, INF, INF, NAN]),
    "reciprocal": ([4, 0, -0.0, INF, -INF, NAN], [0.25, INF, -INF, 0, -0.0, NAN]),
    "sqrt": ([4, -0.0, -1, INF, NAN], [2, -0.0, NAN, INF, NAN]),
    "rsqrt": ([4, 0, -0.0, -1, INF, NAN], [0.5, INF, -INF, NAN, 0, NAN]),
    "erf": ([0, 1, -1, -INF, INF, NAN], [0, 0.84270079, -0.84270079, -1, 1, NAN]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_special_values(name):
    given, expected = (np.float32(values) for values in KNOWN[name])
    found = run_te(getattr(powers, name), given)
    assert_same(found, expected, 1e-6)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))
    assert_same(getattr(powers, f"{name}_numpy")(given), expected, 1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_rank_zero_and_no_elements(name):
    for data in (np.float32(0.5), np.zeros((0, 3), np.float32)):
        assert run_te(getattr(powers, name), data).shape == data.shape


def test_square_of_integers_wraps():
    assert run_te(powers.square, np.int8([-128, 15, 16])).tolist() == [0, -31, 0]


@pytest.mark.parametrize("name", KNOWN)
def test_other_operands_are_refused(name):
    refused = "bool" if name == "square" else "int32"
    with pytest.raises(UserError, match=f"{name} takes (numbers|float tensors), not (bool|i32)"):
        getattr(powers, name)(*tensors((3,), dtype=refused))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(powers, name)(np.zeros(2))
