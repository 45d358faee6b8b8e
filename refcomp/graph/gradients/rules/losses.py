"""Rules of losses. A mean divides the adjoint by the number of elements that count."""

from __future__ import annotations

from refcomp.graph.gradients.pullback import (
    Adjoints,
    Pullback,
    Rule,
    element_count,
)
from refcomp.graph.graph import Value


def _share(pull: Pullback) -> Value | None:
    """Return the adjoint of each element's loss; None if only a run determines their number."""
    if pull.attribute("reduction") != "mean":
        return pull.head
    data = pull.input(0)
    count = element_count(data, range(len(data.shape)))
    return pull.scaled(pull.head, 1 / count) if count else None


def _mse_loss(pull: Pullback) -> Adjoints | None:
    share = _share(pull)
    if share is None:
        return None
    difference = pull.add("subtract", pull.input(0), pull.input(1))
    by_data = pull.times(difference, pull.scaled(share, 2.0))
    return [by_data, pull.add("negative", by_data)]


def _l1_loss(pull: Pullback) -> Adjoints | None:
    share = _share(pull)
    if share is None:
        return None
    difference = pull.add("subtract", pull.input(0), pull.input(1))
    by_data = pull.times(pull.add("sign", difference), share)
    return [by_data, pull.add("negative", by_data)]


def _bce_with_logits(pull: Pullback) -> Adjoints | None:
    share = _share(pull)
    if share is None:
        return None
    data, target = pull.input(0), pull.input(1)
    error = pull.add("subtract", pull.add("sigmoid", data), target)
    by_target = pull.add("negative", pull.times(data, share))
    return [pull.times(error, share), by_target]


def _cross_entropy(pull: Pullback) -> Adjoints | None:
    """Return (softmax(x) - one_hot(target)) times the share of each target that counts."""
    data, target = pull.input(0), pull.input(1)
    if pull.has_input(2) or pull.attribute("label_smoothing") != 0:
        return None
    weights = _counted(pull, data, target)
    if weights is None:
        return None
    error = pull.add("subtract", pull.add("softmax", data, axis=1), _hits(pull))
    return [pull.times(error, pull.add("expand_dims", weights, axis=(1,))), None]


def _nll_loss(pull: Pullback) -> Adjoints | None:
    data, target = pull.input(0), pull.input(1)
    if pull.has_input(2):
        return None
    weights = _counted(pull, data, target)
    if weights is None:
        return None
    wide = pull.add("expand_dims", pull.add("negative", weights), axis=(1,))
    return [pull.times(_hits(pull), wide), None]


def _hits(pull: Pullback) -> Value:
    """Return 1 where a class is the target, else 0, of the dtype and shape of the data."""
    data = pull.input(0)
    depth = data.shape[1]
    assert isinstance(depth, int)
    kind = str(data.dtype.dtype)
    return pull.add("one_hot", pull.input(1), depth=depth, axis=1, dtype=kind)


def _counted(pull: Pullback, data: Value, target: Value) -> Value | None:
    """Return the adjoint of each target's loss, which is 0 for a target that does not count.

    Such a target is `ignore_index`, or names a class that does not exist. None if the number of
    classes or the dtype is left to `vjp`.
    """
    classes = data.shape[1]
    # A count of more than 2048 targets is not exact in 16 bits.
    if not isinstance(classes, int) or data.dtype.bits < 32:
        return None
    kind = target.dtype
    ignored = pull.integer("ignore_index")
    lowest = pull.numbers.value(0, kind)
    conditions = [pull.add("greater_equal", target, lowest)]
    if classes <= kind.max_value:
        limit = pull.numbers.value(classes, kind)
        conditions.append(pull.add("less", target, limit))
    if kind.min_value <= ignored <= kind.max_value:
        marker = pull.numbers.value(ignored, kind)
        conditions.append(pull.add("not_equal", target, marker))
    is_counted = conditions[0]
    for condition in conditions[1:]:
        is_counted = pull.add("logical_and", is_counted, condition)
    ones = pull.add("cast", is_counted, dtype=str(data.dtype.dtype))
    if pull.attribute("reduction") != "mean":
        return pull.times(ones, pull.head)
    return pull.times(ones, pull.add("divide", pull.head, pull.add("sum", ones)))


RULES: dict[str, Rule] = {
    "mse_loss": _mse_loss,
    "l1_loss": _l1_loss,
    "binary_cross_entropy_with_logits": _bce_with_logits,
    "cross_entropy": _cross_entropy,
    "nll_loss": _nll_loss,
}
