"""Norms along axes: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.reduction import norms
from tests.strategies.operands import assert_same, run_te, tensors


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("l1_norm", [], 0),
        ("l1_norm", [-1, 2, -0.0], 3),
        ("l1_norm", [-np.inf, np.inf], np.inf),
        ("l1_norm", [np.nan, 1], np.nan),
        ("l2_norm", [], 0),
        ("l2_norm", [-3, 4], 5),
        ("l2_norm", [-np.inf, 1], np.inf),
        ("l2_norm", [1e30, 0], np.inf),  # the square overflows
    ],
)
def test_special_values(name, values, expected):
    data = np.array(values, np.float32)
    found = run_te(getattr(norms, name), data)
    np.testing.assert_array_equal(found, np.float32(expected))


def test_l1_norm_of_integers_wraps():
    data = np.array([[-128, 1], [100, -100]], np.int8)
    found = run_te(norms.l1_norm, data, axis=1, keepdims=True)
    assert_same(found, np.array([[-127], [-56]], np.int8))
    assert_same(norms.l1_norm_numpy(data, axis=1, keepdims=True), found)


def test_ill_formed_calls_are_refused():
    with pytest.raises(UserError, match="l2_norm takes float tensors, not i32"):
        norms.l2_norm(*tensors((2,), dtype="int32"))
    with pytest.raises(UserError, match="l1_norm takes numbers, not bool"):
        norms.l1_norm(*tensors((2,), dtype="bool"))
    for name in ("l1_norm", "l2_norm"):
        with pytest.raises(UserError, match=f"{name}: axis 1 is out of range for 1 dimensions"):
            getattr(norms, name)(*tensors((2,)), axis=1)
        with pytest.raises(UserError, match=f"{name} names an axis twice"):
            getattr(norms, name)(*tensors((2,)), axis=(0, -1))
