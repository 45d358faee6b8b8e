"""Gates: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.elementwise import gates
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name, attributes, operands, results
KNOWN = [
    ("gelu", {}, [0, 1, -1, INF, -INF, NAN], [0, 0.84134475, -0.15865525, INF, NAN, NAN]),
    (
        "gelu",
        {"approximate": "tanh"},
        [0, 1, -1, INF, -INF, NAN],
        [0, 0.84119199, -0.15880801, INF, NAN, NAN],
    ),
    ("silu", {}, [0, 1, -1, INF, -INF, NAN], [0, 0.73105858, -0.26894142, INF, NAN, NAN]),
    ("swish", {"alpha": 2.0}, [0, 1, -INF], [0, 0.88079708, NAN]),
    ("swish", {"alpha": -1.0}, [INF, 1], [NAN, 0.26894142]),
    ("softplus", {}, [0, 1000, -1000, INF, -INF, NAN], [np.log(2), 1000, 0, INF, 0, NAN]),
    ("log_sigmoid", {}, [0, 1000, -1000, INF, -INF, NAN], [-np.log(2), 0, -1000, 0, -INF, NAN]),
    ("mish", {}, [0, 1, 1000, INF, -INF, NAN], [0, 0.86509839, 1000, INF, NAN, NAN]),
    ("softsign", {}, [0, 1, -3, INF, -INF, NAN], [0, 0.5, -0.75, NAN, NAN, NAN]),
    ("hard_sigmoid", {}, [0, 1, -10, INF, -INF, NAN], [0.5, 0.7, 0, 1, 0, NAN]),
    ("hard_sigmoid", {"alpha": -1.0, "beta": 0.0}, [-0.25, 1, -INF], [0.25, 0, 1]),
    ("hard_swish", {}, [0, 1, -3, 3, INF, -INF, NAN], [0, 2 / 3, 0, 3, INF, NAN, NAN]),
]
NAMES = sorted({name for name, *_ in KNOWN})


@pytest.mark.parametrize(("name", "attributes", "given", "expected"), KNOWN)
def test_special_values(name, attributes, given, expected):
    data, wanted = np.float32(given), np.float32(expected)
    assert_same(run_te(getattr(gates, name), data, **attributes), wanted, 1e-6)
    assert_same(getattr(gates, f"{name}_numpy")(data, **attributes), wanted, 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_rank_zero_and_no_elements(name):
    for data in (np.float32(0.5), np.zeros((0, 3), np.float32)):
        assert run_te(getattr(gates, name), data).shape == data.shape


@pytest.mark.parametrize("name", NAMES)
def test_other_operands_are_refused(name):
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        getattr(gates, name)(*tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} is applied to a ndarray, not to a tensor"):
        getattr(gates, name)(np.zeros(2))


def test_unknown_approximation_is_refused():
    with pytest.raises(UserError, match="gelu cannot be approximated by 'erf'"):
        gates.gelu(*tensors((2,)), approximate="erf")
