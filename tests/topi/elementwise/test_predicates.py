"""Predicates and bits: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import predicates
from tests.strategies.operands import assert_same, run_te, tensors

FLOATS = np.float32([1, -0.0, np.inf, -np.inf, np.nan])
INTEGERS = np.int8([0, 1, 5, -1, -128])
BOOLS = np.array([True, False])
# name -> operands, results
KNOWN = {
    "isnan": (FLOATS, [False, False, False, False, True]),
    "isinf": (FLOATS, [False, False, True, True, False]),
    "isfinite": (FLOATS, [True, True, False, False, False]),
    "logical_not": (BOOLS, [False, True]),
    "bitwise_not": (INTEGERS, [-1, -2, -6, 0, 127]),
    "popcount": (INTEGERS, [0, 1, 2, 8, 1]),
    "clz": (INTEGERS, [8, 7, 5, 0, 0]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_special_values(name):
    given, expected = KNOWN[name]
    found = run_te(getattr(predicates, name), given)
    assert found.tolist() == expected
    assert_same(getattr(predicates, f"{name}_numpy")(given), found)


@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("positive", [True, False])
def test_isinf_detects_the_signs_that_it_is_asked_for(negative, positive):
    signs = {"detect_negative": negative, "detect_positive": positive}
    found = run_te(predicates.isinf, FLOATS, **signs)
    assert found.tolist() == [False, False, positive, negative, False]
    assert_same(predicates.isinf_numpy(FLOATS, **signs), found)


@pytest.mark.parametrize("name", KNOWN)
def test_rank_zero_and_no_elements(name):
    given, _ = KNOWN[name]
    for data in (np.asarray(given[0]), given[:0]):
        assert run_te(getattr(predicates, name), data).shape == data.shape


@pytest.mark.parametrize(
    ("name", "dtype", "kinds"),
    [
        ("isnan", "int32", "float tensors, not i32"),
        ("isinf", "int32", "float tensors, not i32"),
        ("isfinite", "bool", "float tensors, not bool"),
        ("logical_not", "int8", "a tensor of bool, not i8"),
        ("bitwise_not", "bool", "integer tensors, not bool"),
        ("popcount", "float32", "integer tensors, not f32"),
        ("clz", "float16", "integer tensors, not f16"),
    ],
)
def test_other_operands_are_refused(name, dtype, kinds):
    with pytest.raises(UserError, match=f"{name} takes {kinds}"):
        getattr(predicates, name)(*tensors((3,), dtype=dtype))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(predicates, name)(np.zeros(2))
