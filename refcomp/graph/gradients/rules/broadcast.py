"""Rules of operators of several tensors that work element by element, with broadcasting.

What an input repeated along an axis receives is added up along that axis.
"""

from __future__ import annotations

from refcomp.graph.gradients.pullback import Adjoints, Pullback, Rule
from refcomp.graph.graph import Value


def _summed(pull: Pullback, *adjoints: Value) -> Adjoints:
    """Return the adjoints of the first inputs, summed to their shapes."""
    return [pull.like_input(value, place) for place, value in enumerate(adjoints)]


def _add(pull: Pullback) -> Adjoints:
    return _summed(pull, pull.head, pull.head)


def _subtract(pull: Pullback) -> Adjoints:
    # Summed before it is negated, which takes fewer operations.
    second = pull.add("negative", pull.like_input(pull.head, 1))
    return [pull.like_input(pull.head, 0), second]


def _multiply(pull: Pullback) -> Adjoints:
    a, b = pull.input(0), pull.input(1)
    return _summed(pull, pull.times(pull.head, b), pull.times(pull.head, a))


def _divide(pull: Pullback) -> Adjoints:
    quotient = pull.add("divide", pull.head, pull.input(1))
    second = pull.add("negative", pull.times(quotient, pull.output))
    return _summed(pull, quotient, second)


def _squared_difference(pull: Pullback) -> Adjoints:
    difference = pull.add("subtract", pull.input(0), pull.input(1))
    first = pull.times(pull.head, pull.scaled(difference, 2.0))
    second = pull.add("negative", pull.like_input(first, 1))
    return [pull.like_input(first, 0), second]


def _chosen_by(comparison: str) -> Rule:
    """Return the rule of an extremum of two tensors; of equal elements the first one counts."""

    def rule(pull: Pullback) -> Adjoints:
        is_first = pull.add(comparison, pull.input(0), pull.input(1))
        zero = pull.number(0.0, pull.head)
        second = pull.add("where", is_first, zero, pull.head)
        return _summed(pull, pull.where(is_first, pull.head), second)

    return rule


def _where(pull: Pullback) -> Adjoints:
    condition = pull.input(0)
    first = pull.where(condition, pull.head)
    second = pull.add("where", condition, pull.number(0.0, pull.head), pull.head)
    return [None, pull.like_input(first, 1), pull.like_input(second, 2)]


def _add_n(pull: Pullback) -> Adjoints:
    return _summed(pull, *[pull.head for _ in pull.node.inputs])


def _mean_n(pull: Pullback) -> Adjoints:
    share = pull.scaled(pull.head, 1 / len(pull.node.inputs))
    return _summed(pull, *[share for _ in pull.node.inputs])


def _repeated(pull: Pullback) -> Adjoints:
    # Of `broadcast_like`, the second input only gives its shape.
    return [pull.like_input(pull.head, 0), *[None for _ in pull.node.inputs[1:]]]


RULES: dict[str, Rule] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "squared_difference": _squared_difference,
    "maximum": _chosen_by("greater_equal"),
    "minimum": _chosen_by("less_equal"),
    "where": _where,
    "add_n": _add_n,
    "mean_n": _mean_n,
    "broadcast_to": _repeated,
    "broadcast_like": _repeated,
}
