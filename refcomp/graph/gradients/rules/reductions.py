"""Rules of reductions along axes: each element receives its part of the adjoint of its result.

If an extremum is attained several times, each place receives an equal part.
"""

from __future__ import annotations

from refcomp.graph.gradients.pullback import (
    Adjoints,
    Pullback,
    Rule,
    element_count,
)
from refcomp.graph.graph import Value


def reduced_axes(pull: Pullback) -> tuple[int, ...]:
    """Return the axes of a reduction, in ascending order, counted from 0."""
    rank = len(pull.input(0).shape)
    axis = pull.attribute("axis")
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted({int(one) % rank for one in axes}))


def _with_axes(pull: Pullback, value: Value) -> Value:
    """Return a value of the shape of the result, with the reduced axes of extent 1."""
    axes = reduced_axes(pull)
    if pull.attribute("keepdims") or not axes:
        return value
    return pull.add("expand_dims", value, axis=axes)


def _spread(pull: Pullback, value: Value) -> Value:
    """Return a value of the shape of the result, repeated along the reduced axes."""
    wide = _with_axes(pull, value)
    data = pull.input(0)
    return wide if wide.shape == data.shape else pull.add("broadcast_like", wide, data)


def _sum(pull: Pullback) -> Adjoints:
    return [_spread(pull, pull.head)]


def _mean(pull: Pullback) -> Adjoints | None:
    count = element_count(pull.input(0), reduced_axes(pull))
    if not count:
        return None
    return [_spread(pull, pull.scaled(pull.head, 1 / count))]


def _sum_square(pull: Pullback) -> Adjoints:
    twice = pull.scaled(_with_axes(pull, pull.head), 2.0)
    return [pull.times(twice, pull.input(0))]


def _logsumexp(pull: Pullback) -> Adjoints:
    data = pull.input(0)
    difference = pull.add("subtract", data, _with_axes(pull, pull.output))
    share = pull.add("exp", difference)
    return [pull.times(_with_axes(pull, pull.head), share)]


def _extremum(pull: Pullback) -> Adjoints:
    data = pull.input(0)
    is_attained = pull.add("equal", data, _with_axes(pull, pull.output))
    hits = pull.add("cast", is_attained, dtype=str(data.dtype.dtype))
    ties = hits
    axes = reduced_axes(pull)
    if axes:
        ties = pull.add("sum", hits, axis=axes, keepdims=True)
    share = pull.add("divide", _with_axes(pull, pull.head), ties)
    return [pull.where(is_attained, pull.add("broadcast_like", share, data))]


def _collapse_sum(pull: Pullback) -> Adjoints:
    return [pull.add("broadcast_like", pull.head, pull.input(0))]


RULES: dict[str, Rule] = {
    "sum": _sum,
    "mean": _mean,
    "sum_square": _sum_square,
    "logsumexp": _logsumexp,
    "max": _extremum,
    "min": _extremum,
    "collapse_sum": _collapse_sum,
}
