"""Losses of probabilities: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.losses import likelihood
from tests.strategies.operands import assert_same, run_te, tensors

NAN, INF = np.nan, np.inf
# name, attributes, predictions, targets, losses
KNOWN = [
    ("binary_cross_entropy", {}, [0.5, 1, 0, 1], [1, 0, 1, 1], [np.log(2), 100, 100, 0]),
    ("binary_cross_entropy", {}, [2, NAN], [0, 0], [NAN, NAN]),
    (
        "binary_cross_entropy_with_logits",
        {},
        [0, 1000, -1000, -1000],
        [1, 0, 0, 1],
        [np.log(2), 1000, 0, 1000],
    ),
    (
        "binary_cross_entropy_with_logits",
        {},
        [INF, INF, -INF, NAN],
        [0.5, 1, 1, 1],
        [NAN, NAN, INF, NAN],
    ),
    ("kl_div", {}, [-1, 0, -INF, -INF], [0.5, 1, 0, 1], [0.5 * np.log(0.5) + 0.5, 0, 0, INF]),
    ("kl_div", {}, [-1, 0], [-1, NAN], [NAN, NAN]),
    ("kl_div", {"log_target": True}, [-1, 0, -2], [0, -INF, -2], [1, NAN, 0]),
    ("hinge_loss", {}, [2, 0.5, 1, NAN], [1, 1, -1, 1], [0, 0.5, 2, NAN]),
    ("hinge_loss", {"margin": 0.5}, [2, 0.25], [1, 1], [0, 0.25]),
]
NAMES = sorted({name for name, *_ in KNOWN})


@pytest.mark.parametrize(("name", "attributes", "data", "target", "expected"), KNOWN)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_special_values(name, attributes, data, target, expected, reduction):
    operands = (np.float32(data), np.float32(target))
    losses = np.float32(expected)
    wanted = {"none": losses, "sum": losses.sum(), "mean": losses.mean()}[reduction]
    given = {**attributes, "reduction": reduction}
    found = run_te(getattr(likelihood, name), *operands, is_symbolic=False, **given)
    assert_same(found, np.asarray(wanted), 1e-6)
    assert_same(getattr(likelihood, f"{name}_numpy")(*operands, **given), found, 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(likelihood, name)
    with pytest.raises(UserError, match=f"{name} cannot have the reduction 'all'"):
        operator(*tensors((2,), (2,)), reduction="all")
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        operator(*tensors((2,), (2,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: extent 0 of the target is 3 instead of 2"):
        operator(*tensors((2,), (3,)))
