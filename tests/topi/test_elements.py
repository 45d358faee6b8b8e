"""Elementwise computes: what is read where, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elements import combine_elements, map_elements
from tests.strategies.operands import run_te, tensors


def test_a_function_is_applied_to_each_element():
    doubled = run_te(
        lambda data: map_elements(data, lambda x: x * 2.0, "double"), np.float32([1, 2])
    )
    np.testing.assert_array_equal(doubled, np.float32([2, 4]))


def test_extents_of_one_are_repeated():
    column, row = np.float32([[1], [2]]), np.float32([10, 20, 30])
    found = run_te(
        lambda a, b: combine_elements(a, b, lambda x, y: x * 100.0 + y, "mix"),
        column,
        row,
        is_symbolic=False,
    )
    np.testing.assert_array_equal(found, column * 100 + row)


def test_what_does_not_fit_is_refused():
    with pytest.raises(UserError, match="mix cannot combine f32 with i32"):
        combine_elements(*tensors((2,)), *tensors((2,), dtype="int32"), lambda x, y: x, "mix")
    with pytest.raises(UserError, match="mix is applied to a int, not to a tensor"):
        combine_elements(3, *tensors((2,)), lambda x, y: x, "mix")
    with pytest.raises(UserError, match="mix: an extent of the second operand is 3 instead of 2"):
        combine_elements(*tensors((2,), (3,)), lambda x, y: x, "mix")
