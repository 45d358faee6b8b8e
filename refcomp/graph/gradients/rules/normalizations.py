"""Rules of normalizations: softmax, batch norm in both modes, layer norm.

Let x' be the normalized data, and g the adjoint times gamma. Means are over what is normalized
together. Then the adjoint of the data is (g - mean(g) - x' * mean(g * x')) / deviation.

Reference: S. Ioffe, C. Szegedy, "Batch Normalization", 2015, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph.gradients.pullback import Adjoints, Pullback, Rule
from refcomp.graph.graph import Value


def _softmax(pull: Pullback) -> Adjoints:
    axis = pull.integer("axis")
    y = pull.output
    total = pull.add("sum", pull.times(pull.head, y), axis=axis, keepdims=True)
    return [pull.times(y, pull.add("subtract", pull.head, total))]


def _log_softmax(pull: Pullback) -> Adjoints:
    total = pull.add("sum", pull.head, axis=pull.integer("axis"), keepdims=True)
    share = pull.times(pull.add("exp", pull.output), total)
    return [pull.add("subtract", pull.head, share)]


def _channel_axes(pull: Pullback) -> tuple[int, ...]:
    """Return all axes of the data but that of the channels."""
    rank = len(pull.input(0).shape)
    place = pull.integer("axis") % rank
    return tuple(axis for axis in range(rank) if axis != place)


def _inverse_deviation(pull: Pullback, variance: Value) -> Value:
    epsilon = pull.number(pull.real("epsilon"), variance)
    return pull.add("rsqrt", pull.add("add", variance, epsilon))


def _batch_norm(pull: Pullback) -> Adjoints:
    data, gamma, _, mean, variance = [pull.input(place) for place in range(5)]
    axes = _channel_axes(pull)
    head = pull.head

    def wide(value: Value) -> Value:
        return pull.add("expand_dims", value, axis=axes)

    inverse = _inverse_deviation(pull, variance)
    factor = pull.times(gamma, inverse)
    shifted = pull.add("subtract", data, wide(mean))
    by_beta = pull.add("sum", head, axis=axes)
    # The sum of the adjoint times the shifted data; both gamma and the variance scale it.
    moment = pull.add("sum", pull.times(head, shifted), axis=axes)
    by_gamma = pull.times(moment, inverse)
    by_mean = pull.add("negative", pull.times(by_beta, factor))
    cube = pull.times(factor, pull.add("square", inverse))
    by_variance = pull.scaled(pull.times(moment, cube), -0.5)
    by_data = pull.times(head, wide(factor))
    return [by_data, by_gamma, by_beta, by_mean, by_variance]


def _batch_norm_train(pull: Pullback) -> Adjoints | None:
    """Return the adjoints, if only the normalized data has one: not the statistics."""
    if pull.heads[0] is None or any(head is not None for head in pull.heads[1:]):
        return None
    data, gamma = pull.input(0), pull.input(1)
    axes = _channel_axes(pull)

    def wide(value: Value) -> Value:
        return pull.add("expand_dims", value, axis=axes)

    mean, variance = pull.node.outputs[3:]
    inverse = _inverse_deviation(pull, variance)
    shifted = pull.add("subtract", data, wide(mean))
    normalized = pull.times(shifted, wide(inverse))
    product = pull.times(pull.head, normalized)
    by_beta = pull.add("sum", pull.head, axis=axes)
    by_gamma = pull.add("sum", product, axis=axes)
    mean_head = wide(pull.add("mean", pull.head, axis=axes))
    mean_product = wide(pull.add("mean", product, axis=axes))
    centred = pull.add("subtract", pull.head, mean_head)
    rest = pull.add("subtract", centred, pull.times(normalized, mean_product))
    by_data = pull.times(rest, wide(pull.times(gamma, inverse)))
    return [by_data, by_gamma, by_beta, None, None]


def _layer_norm(pull: Pullback) -> Adjoints:
    data, gamma = pull.input(0), pull.input(1)
    rank = len(data.shape)
    first = pull.integer("axis") % rank
    axes = tuple(range(first, rank))
    mean = pull.add("mean", data, axis=axes, keepdims=True)
    variance = pull.add("variance", data, axis=axes, keepdims=True)
    inverse = _inverse_deviation(pull, variance)
    normalized = pull.times(pull.add("subtract", data, mean), inverse)
    head = pull.times(pull.head, gamma)
    by_data = pull.times(_centred(pull, head, normalized, axes), inverse)
    by_gamma = pull.like_input(pull.times(pull.head, normalized), 1)
    adjoints: list[Value | None] = [by_data, by_gamma]
    if pull.has_input(2):
        adjoints.append(pull.like_input(pull.head, 2))
    return adjoints


def _centred(
    pull: Pullback, head: Value, normalized: Value, axes: Sequence[int]
) -> Value:
    """Return g - mean(g) - x' * mean(g * x')."""
    mean = pull.add("mean", head, axis=tuple(axes), keepdims=True)
    product = pull.times(head, normalized)
    moment = pull.add("mean", product, axis=tuple(axes), keepdims=True)
    shifted = pull.add("subtract", head, mean)
    return pull.add("subtract", shifted, pull.times(normalized, moment))


RULES: dict[str, Rule] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "batch_norm": _batch_norm,
    "batch_norm_train": _batch_norm_train,
    "layer_norm": _layer_norm,
}
