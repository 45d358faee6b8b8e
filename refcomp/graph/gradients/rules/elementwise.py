"""Rules of operators of one tensor that work element by element: the adjoint times the slope.

At a kink, the slope is that of `te.gradient`: 0 at 0 for `abs` and `relu`, for instance.
"""

from __future__ import annotations

from collections.abc import Callable

from refcomp.graph.gradients.pullback import Adjoints, Pullback, Rule
from refcomp.graph.graph import Value

Slope = Callable[[Pullback, Value], Value]


def _smooth(slope: Slope) -> Rule:
    """Return the rule of a function of one element, by its slope at the input."""

    def rule(pull: Pullback) -> Adjoints:
        return [pull.times(pull.head, slope(pull, pull.input(0)))]

    return rule


def _kept_where(condition: Slope) -> Rule:
    """Return the rule of a function with slope 1 where a condition holds, and 0 elsewhere."""

    def rule(pull: Pullback) -> Adjoints:
        return [pull.where(condition(pull, pull.input(0)), pull.head)]

    return rule


def _is_positive(pull: Pullback, x: Value) -> Value:
    return pull.add("greater", x, pull.number(0.0, x))


def _identity(pull: Pullback) -> Adjoints:
    return [pull.head]


def _negative(pull: Pullback) -> Adjoints:
    return [pull.add("negative", pull.head)]


def _scale(pull: Pullback) -> Adjoints:
    return [pull.scaled(pull.head, pull.real("factor"))]


def _within_six(pull: Pullback, x: Value) -> Value:
    below = pull.add("less", x, pull.number(6.0, x))
    return pull.add("logical_and", _is_positive(pull, x), below)


def _clip(pull: Pullback) -> Adjoints:
    x = pull.input(0)
    above = pull.add("greater_equal", x, pull.number(pull.real("minimum"), x))
    below = pull.add("less_equal", x, pull.number(pull.real("maximum"), x))
    return [pull.where(pull.add("logical_and", above, below), pull.head)]


def _leaky_relu(pull: Pullback) -> Adjoints:
    x = pull.input(0)
    is_kept = pull.add("greater_equal", x, pull.number(0.0, x))
    scaled = pull.scaled(pull.head, pull.real("alpha"))
    return [pull.add("where", is_kept, pull.head, scaled)]


def _elu(pull: Pullback) -> Adjoints:
    # alpha * exp(x) is the result plus alpha.
    shifted = pull.add("add", pull.output, pull.number(pull.real("alpha"), pull.output))
    scaled = pull.times(pull.head, shifted)
    is_kept = _is_positive(pull, pull.input(0))
    return [pull.add("where", is_kept, pull.head, scaled)]


def _divided_by(divisor: Slope) -> Rule:
    """Return the rule of a function of one element whose slope is a reciprocal."""

    def rule(pull: Pullback) -> Adjoints:
        return [pull.add("divide", pull.head, divisor(pull, pull.input(0)))]

    return rule


def _sigmoid_slope(pull: Pullback, _x: Value) -> Value:
    y = pull.output
    return pull.times(y, pull.add("subtract", pull.number(1.0, y), y))


def _tanh_slope(pull: Pullback, _x: Value) -> Value:
    y = pull.output
    return pull.add("subtract", pull.number(1.0, y), pull.add("square", y))


def _silu_slope(pull: Pullback, x: Value) -> Value:
    # s + x * s * (1 - s) = s + y * (1 - s)
    share = pull.add("sigmoid", x)
    rest = pull.add("subtract", pull.number(1.0, x), share)
    return pull.add("add", share, pull.times(pull.output, rest))


def _reciprocal_slope(pull: Pullback, _x: Value) -> Value:
    return pull.add("negative", pull.add("square", pull.output))


def _rsqrt_slope(pull: Pullback, x: Value) -> Value:
    return pull.scaled(pull.add("divide", pull.output, x), -0.5)


def _log_sigmoid_slope(pull: Pullback, x: Value) -> Value:
    return pull.add("sigmoid", pull.add("negative", x))


def _cos_slope(pull: Pullback, x: Value) -> Value:
    return pull.add("negative", pull.add("sin", x))


RULES: dict[str, Rule] = {
    "identity": _identity,
    "negative": _negative,
    "scale": _scale,
    "clip": _clip,
    "relu": _kept_where(_is_positive),
    "relu6": _kept_where(_within_six),
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "sigmoid": _smooth(_sigmoid_slope),
    "tanh": _smooth(_tanh_slope),
    "silu": _smooth(_silu_slope),
    "softplus": _smooth(lambda pull, x: pull.add("sigmoid", x)),
    "log_sigmoid": _smooth(_log_sigmoid_slope),
    "exp": _smooth(lambda pull, _x: pull.output),
    "expm1": _smooth(lambda pull, x: pull.add("add", pull.output, pull.number(1.0, x))),
    "log": _divided_by(lambda _pull, x: x),
    "log1p": _divided_by(lambda pull, x: pull.add("add", x, pull.number(1.0, x))),
    "sqrt": _divided_by(lambda pull, _x: pull.scaled(pull.output, 2.0)),
    "rsqrt": _smooth(_rsqrt_slope),
    "reciprocal": _smooth(_reciprocal_slope),
    "square": _smooth(lambda pull, x: pull.scaled(x, 2.0)),
    "abs": _smooth(lambda pull, x: pull.add("sign", x)),
    "sin": _smooth(lambda pull, x: pull.add("cos", x)),
    "cos": _smooth(_cos_slope),
    "sinh": _smooth(lambda pull, x: pull.add("cosh", x)),
    "cosh": _smooth(lambda pull, x: pull.add("sinh", x)),
}
