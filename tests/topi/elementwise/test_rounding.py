"""Rounding and signs: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import rounding
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name -> operands, results
KNOWN = {
    "floor": ([1.5, -1.5, -0.0, INF, -INF, NAN], [1, -2, -0.0, INF, -INF, NAN]),
    "ceil": ([1.5, -1.5, -0.5, INF, -INF, NAN], [2, -1, -0.0, INF, -INF, NAN]),
    "round": ([0.5, 1.5, 2.5, -0.5, INF, NAN], [0, 2, 2, -0.0, INF, NAN]),
    "trunc": ([1.5, -1.5, -0.5, INF, -INF, NAN], [1, -1, -0.0, INF, -INF, NAN]),
    "abs": ([-5, 5, -0.0, -INF, NAN], [5, 5, 0, INF, NAN]),
    "negative": ([-5, 0.0, -0.0, -INF, INF], [5, -0.0, 0.0, INF, -INF]),
    "sign": ([3, -0.5, 0.0, INF, -INF, NAN], [1, -1, 0, 1, -1, NAN]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_special_values(name):
    given, expected = (np.float32(values) for values in KNOWN[name])
    found = run_te(getattr(rounding, name), given)
    assert_same(found, expected, 1e-6)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))
    assert_same(getattr(rounding, f"{name}_numpy")(given), expected, 1e-6)


@pytest.mark.parametrize("name", KNOWN)
def test_rank_zero_and_no_elements(name):
    for data in (np.float32(0.5), np.zeros((0, 3), np.float32)):
        assert run_te(getattr(rounding, name), data).shape == data.shape


OF_NUMBERS = ["abs", "negative", "sign"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("abs", [-128, 5, 5, 0]), ("negative", [-128, -5, 5, 0]), ("sign", [-1, 1, -1, 0])],
)
def test_signed_integers(name, expected):
    data = np.int8([-128, 5, -5, 0])
    assert run_te(getattr(rounding, name), data).tolist() == expected
    assert getattr(rounding, f"{name}_numpy")(data).tolist() == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("abs", [0, 5, 255]), ("negative", [0, 251, 1]), ("sign", [0, 1, 1])]
)
def test_unsigned_integers(name, expected):
    data = np.uint8([0, 5, 255])
    assert run_te(getattr(rounding, name), data).tolist() == expected
    assert getattr(rounding, f"{name}_numpy")(data).tolist() == expected


@pytest.mark.parametrize("name", KNOWN)
def test_other_operands_are_refused(name):
    refused = "bool" if name in OF_NUMBERS else "int32"
    with pytest.raises(UserError, match=f"{name} takes (numbers|float tensors), not (bool|i32)"):
        getattr(rounding, name)(*tensors((3,), dtype=refused))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(rounding, name)(np.zeros(2))
