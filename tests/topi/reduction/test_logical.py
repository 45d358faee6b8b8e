"""Conjunction and disjunction along axes: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.reduction import logical
from tests.strategies.operands import assert_same, run_te, tensors


@pytest.mark.parametrize("name", ["all", "any"])
@pytest.mark.parametrize("values", [[], [True], [False], [True, False], [True, True]])
def test_truth_table(name, values):
    data = np.array(values, np.bool_)
    found = run_te(getattr(logical, name), data, axis=0, keepdims=True)
    assert_same(found, getattr(logical, f"{name}_numpy")(data, axis=0, keepdims=True))
    assert found[0] == (all(values) if name == "all" else any(values))


@pytest.mark.parametrize("name", ["all", "any"])
def test_ill_formed_calls_are_refused(name):
    operator = getattr(logical, name)
    with pytest.raises(UserError, match=f"{name} takes a tensor of bool, not f32"):
        operator(*tensors((2,)))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(3)
    with pytest.raises(UserError, match=f"{name}: axis 1 is out of range for 1 dimensions"):
        operator(*tensors((2,), dtype="bool"), axis=1)
