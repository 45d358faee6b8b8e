"""Losses of numbers: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.losses import regression
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name, attributes, predictions, targets, losses
KNOWN = [
    ("mse_loss", {}, [1, 2, -3], [3, 2, 1], [4, 0, 16]),
    ("mse_loss", {}, [INF, 0], [0, 1], [INF, 1]),
    ("l1_loss", {}, [1, 2, -3], [3, 2, 1], [2, 0, 4]),
    ("l1_loss", {}, [INF, NAN], [INF, 0], [NAN, NAN]),
    ("huber_loss", {}, [1, 0, 5], [1.5, 1, 0], [0.125, 0.5, 4.5]),
    ("huber_loss", {"delta": 2.0}, [1, -INF, 5], [0, 0, 0], [0.5, INF, 8]),
    ("smooth_l1_loss", {}, [1, 0, 5], [1.5, 1, 0], [0.125, 0.5, 4.5]),
    ("smooth_l1_loss", {"beta": 2.0}, [1, NAN, 5], [0, 0, 0], [0.25, NAN, 4]),
]
NAMES = sorted({name for name, *_ in KNOWN})


@pytest.mark.parametrize(("name", "attributes", "data", "target", "expected"), KNOWN)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_special_values(name, attributes, data, target, expected, reduction):
    operands = (np.float32(data), np.float32(target))
    losses = np.float32(expected)
    wanted = {"none": losses, "sum": losses.sum(), "mean": losses.mean()}[reduction]
    given = {**attributes, "reduction": reduction}
    found = run_te(getattr(regression, name), *operands, is_symbolic=False, **given)
    assert_same(found, np.asarray(wanted), 1e-6)
    assert_same(getattr(regression, f"{name}_numpy")(*operands, **given), found, 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(regression, name)
    with pytest.raises(UserError, match=f"{name} cannot have the reduction 'all'"):
        operator(*tensors((2,), (2,)), reduction="all")
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        operator(*tensors((2,), (2,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: extent 0 of the target is 3 instead of 2"):
        operator(*tensors((2,), (3,)))


@pytest.mark.parametrize(
    ("name", "attribute"), [("huber_loss", "delta"), ("smooth_l1_loss", "beta")]
)
@pytest.mark.parametrize("value", [0.0, -1.0, NAN])
def test_a_bound_that_is_not_positive_is_refused(name, attribute, value):
    with pytest.raises(UserError, match=f"{name} cannot have the {attribute}"):
        getattr(regression, name)(*tensors((2,), (2,)), **{attribute: value})
