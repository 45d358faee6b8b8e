"""Mean, variance and standard deviation along axes: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.reduction import moments
from tests.strategies.operands import assert_same, run_te, tensors

NAMES = ["mean", "variance", "std"]


def both(name, data, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(moments, name), data, **attributes)
    with np.errstate(all="ignore"):
        assert_same(found, getattr(moments, f"{name}_numpy")(data, **attributes), 1e-6)
    return found


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("mean", [], np.nan),
        ("mean", [1, 2, 6], 3),
        ("mean", [np.inf, 1], np.inf),
        ("mean", [np.inf, -np.inf], np.nan),
        ("variance", [], np.nan),
        ("variance", [5], 0),
        ("variance", [1, 3], 1),
        ("variance", [np.inf, 1], np.nan),
        ("std", [0, 8, 0, 0], np.sqrt(12)),
        ("std", [1, np.nan], np.nan),
    ],
)
def test_special_values(name, values, expected):
    found = both(name, np.float32(values))
    np.testing.assert_allclose(found, np.float32(expected), rtol=1e-6)


@pytest.mark.parametrize(("correction", "expected"), [(0, 1), (1, 2), (2, np.inf), (3, np.inf)])
def test_correction_lessens_the_divisor(correction, expected):
    data = np.float32([[1, 3]])
    assert both("variance", data, axis=1, correction=correction) == np.float32([expected])
    assert both("std", data, axis=1, correction=correction) == np.sqrt(np.float32([expected]))


def test_half_floats_do_not_overflow():
    data = np.float16([60000, 60000, 60000])
    assert both("mean", data) == np.float16(60000)
    assert both("variance", data) == 0


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(moments, name)
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        operator(*tensors((2,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: axis 2 is out of range for 2 dimensions"):
        operator(*tensors((2, 3)), axis=2)
    with pytest.raises(UserError, match=f"{name} names an axis twice"):
        operator(*tensors((2, 3)), axis=(1, -1))
