"""Sums and products along axes: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.reduction import sums
from tests.strategies.operands import assert_same, run_te, tensors

NAMES = ["sum", "prod", "sum_square", "log_sum", "logsumexp"]
OF_FLOATS = ["log_sum", "logsumexp"]


def both(name, data, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(sums, name), data, **attributes)
    with np.errstate(all="ignore"):
        assert_same(found, getattr(sums, f"{name}_numpy")(data, **attributes), 1e-6)
    return found


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("sum", [], 0),
        ("sum", [np.inf, -np.inf], np.nan),
        ("sum", [1, np.nan], np.nan),
        ("prod", [], 1),
        ("prod", [0, np.inf], np.nan),
        ("prod", [-2, 3, 4], -24),
        ("sum_square", [], 0),
        ("sum_square", [-3, 4], 25),
        ("sum_square", [-np.inf, 1], np.inf),
        ("log_sum", [], -np.inf),
        ("log_sum", [2, -1], 0),
        ("log_sum", [-2, 1], np.nan),
        ("logsumexp", [], -np.inf),
        ("logsumexp", [-np.inf, -np.inf], -np.inf),
        ("logsumexp", [np.inf, 1000], np.inf),
        ("logsumexp", [np.inf, -np.inf], np.inf),
        ("logsumexp", [1000, 1000], 1000 + np.log(2)),
        ("logsumexp", [np.nan, np.inf], np.nan),
    ],
)
def test_special_values(name, values, expected):
    found = both(name, np.array(values, np.float32))
    np.testing.assert_allclose(found, np.float32(expected), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keepdims", [True, False])
def test_axes_of_extent_zero_and_rank_zero(name, keepdims):
    assert both(name, np.zeros((2, 0, 3), np.float32), axis=(1,), keepdims=keepdims).size == 6
    assert both(name, np.float32(1), keepdims=keepdims).shape == ()


@pytest.mark.parametrize("name", ["sum", "prod", "sum_square"])
def test_integers_wrap(name):
    both(name, np.array([100, 100, 3], np.int8))


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(sums, name)
    with pytest.raises(UserError, match=f"{name}: axis 2 is out of range for 2 dimensions"):
        operator(*tensors((2, 3)), axis=2)
    with pytest.raises(UserError, match=f"{name} names an axis twice"):
        operator(*tensors((2, 3)), axis=(1, -1))
    with pytest.raises(UserError, match=f"{name} takes (numbers|float tensors), not bool"):
        operator(*tensors((2,), dtype="bool"))


@pytest.mark.parametrize("name", OF_FLOATS)
def test_integers_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(sums, name)(*tensors((2,), dtype="int32"))
