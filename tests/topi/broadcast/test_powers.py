"""Powers, angles and lengths: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.broadcast import powers
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf


def both(name, *arrays, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(powers, name), *arrays, is_symbolic=False, **attributes)
    with np.errstate(all="ignore"):
        assert_same(getattr(powers, f"{name}_numpy")(*arrays, **attributes), found, 1e-6)
    return found


NAMES = ["power", "atan2", "hypot", "copysign", "logaddexp"]


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("power", [2, -8, 0, NAN, 1, -2], [-1, 1 / 3, -1, 0, NAN, 3], [0.5, NAN, INF, 1, 1, -8]),
        ("atan2", [1, 0, -0.0, INF], [1, -1, -1, INF], [np.pi / 4, np.pi, -np.pi, np.pi / 4]),
        ("hypot", [3, 1e30, -INF, NAN], [4, 0, NAN, 1], [5, 1e30, INF, NAN]),
        (
            "logaddexp",
            [0, 1000, -INF, INF, NAN],
            [0, 0, -INF, INF, 1],
            [np.log(2), 1000, -INF, INF, NAN],
        ),
        ("logaddexp", [-INF, INF], [3, -INF], [3, INF]),
        ("copysign", [3, 0, -INF, -2], [-1, -0.0, 1, NAN], [-3, -0.0, INF, 2]),
    ],
)
def test_special_values(name, a, b, expected):
    found = both(name, np.float32(a), np.float32(b))
    assert_same(found, np.float32(expected), 1e-6)
    is_zero = found == 0
    np.testing.assert_array_equal(
        np.signbit(found[is_zero]), np.signbit(np.float32(expected)[is_zero])
    )


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(powers, name)
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        operator(*tensors((3,), (3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with f64"):
        operator(*tensors((3,), dtype="float32"), *tensors((3,), dtype="float64"))
    with pytest.raises(UserError, match=f"{name}: an extent of the second operand is 2"):
        operator(*tensors((3,), (2,), dtype="float32"))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(*tensors((3,), dtype="float32"), 3)
