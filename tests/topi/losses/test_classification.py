"""Losses of classes: special values, targets that do not count, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.losses import classification
from tests.strategies.operands import assert_same, run_te, tensors

NAMES = ["nll_loss", "cross_entropy"]
LOGS = np.float32([[-1, -2, -3], [-4, -5, -6], [-7, -8, -9]])


def both(name, data, target, weights=None, **attributes):
    """Return the result of the compute, which must be its meaning."""
    operands = (data, target, weights)
    found = run_te(getattr(classification, name), *operands, is_symbolic=False, **attributes)
    assert_same(getattr(classification, f"{name}_numpy")(*operands, **attributes), found, 1e-6)
    return found


def test_losses_of_chosen_classes():
    target = np.int32([2, 0, 1])
    assert both("nll_loss", LOGS, target, reduction="none").tolist() == [3, 4, 8]
    assert both("nll_loss", LOGS, target, reduction="sum") == 15
    assert both("nll_loss", LOGS, target) == 5


def test_weights_divide_the_mean():
    target = np.int64([2, 0, 1])
    weights = np.float32([1, 0, 3])
    assert both("nll_loss", LOGS, target, weights, reduction="none").tolist() == [9, 4, 0]
    assert both("nll_loss", LOGS, target, weights) == 13 / 4


@pytest.mark.parametrize("uncounted", [-100, -1, 3, 127])
def test_other_targets_do_not_count(uncounted):
    target = np.int8([2, uncounted, 1])
    assert both("nll_loss", LOGS, target, reduction="none").tolist() == [3, 0, 8]
    assert both("nll_loss", LOGS, target) == 5.5


def test_the_ignored_class_does_not_count():
    target = np.int32([2, 0, 1])
    assert both("nll_loss", LOGS, target, ignore_index=0) == 5.5
    nothing = np.int32([1, 1, 1])
    for name in NAMES:
        assert np.isnan(both(name, LOGS, nothing, ignore_index=1))
        assert both(name, LOGS, nothing, ignore_index=1, reduction="sum") == 0


def test_further_axes_follow_the_classes():
    data = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    target = np.int32([[[0, 1], [2, 0]]])
    assert both("nll_loss", data, target, reduction="none").tolist() == [[[0, -5], [-10, -3]]]


def test_logits_do_not_overflow():
    data = np.float32([[1000, 0], [0, 0], [-np.inf, 0]])
    found = both("cross_entropy", data, np.int32([1, 0, 1]), reduction="none")
    np.testing.assert_allclose(found, [1000, np.log(2), 0], rtol=1e-6)


def test_smoothing_spreads_the_target():
    data = np.float32([[2, 0, 1]])
    target = np.int32([0])
    sharp = both("cross_entropy", data, target)
    even = both("cross_entropy", data, target, label_smoothing=1.0)
    mixed = both("cross_entropy", data, target, label_smoothing=0.25)
    assert even == pytest.approx(1 + sharp)  # all logits are 1 less on average
    assert mixed == pytest.approx(0.75 * sharp + 0.25 * even)


@pytest.mark.parametrize("name", NAMES)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(classification, name)
    (data,) = tensors((2, 3))
    (target,) = tensors((2,), dtype="int32")
    with pytest.raises(UserError, match=f"{name} takes float tensors, not i32"):
        operator(*tensors((2, 3), (2,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} takes \\[n, classes, ...\\], not 1 dimensions"):
        operator(*tensors((2,), (2,)))
    with pytest.raises(UserError, match=f"{name} takes integer tensors, not f32"):
        operator(data, *tensors((2,)))
    with pytest.raises(UserError, match=f"{name}: the target has 2 dimensions instead of 1"):
        operator(data, *tensors((2, 1), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: extent 0 of the target is 3 instead of 2"):
        operator(data, *tensors((3,), dtype="int32"))
    with pytest.raises(
        UserError, match=f"{name}: the vector of weights has 2 dimensions instead of 1"
    ):
        operator(data, target, *tensors((3, 1)))
    with pytest.raises(UserError, match=f"{name}: the number of weights is 2 instead of 3"):
        operator(data, target, *tensors((2,)))
    with pytest.raises(UserError, match=f"{name} cannot combine f32 with f64"):
        operator(data, target, *tensors((3,), dtype="float64"))
    with pytest.raises(UserError, match=f"{name} cannot have the reduction 'all'"):
        operator(data, target, reduction="all")


@pytest.mark.parametrize("smoothing", [-0.5, 1.5, np.nan])
def test_smoothing_out_of_range_is_refused(smoothing):
    target = tensors((2,), dtype="int32")
    with pytest.raises(UserError, match="cross_entropy cannot have the label_smoothing"):
        classification.cross_entropy(*tensors((2, 3)), *target, label_smoothing=smoothing)
