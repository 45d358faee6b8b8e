"""Optimizers: the update of a parameter by its gradient, as nodes of a graph.

An optimizer declares states of two kinds. A *slot* is a tensor for each parameter, of its dtype and
shape. A *counter* is a number for all parameters. The learning rate is an input of each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Value

States = Mapping[str, Value]


class Optimizer(Protocol):
    """A rule that moves parameters against their gradients."""

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the names of the states that each parameter has; they begin as zeros."""

    @property
    def counters(self) -> Mapping[str, float]:
        """Return the names of the states that all parameters share, and their first values."""

    def count(self, builder: GraphBuilder, counters: States) -> States:
        """Return the counters after a step, which `update` reads."""

    def update(
        self,
        builder: GraphBuilder,
        parameter: Value,
        gradient: Value,
        rate: Value,
        states: States,
    ) -> tuple[Value, States]:
        """Return the parameter and its slots after a step.

        Args:
            builder: takes the nodes.
            parameter: the parameter before the step.
            gradient: of its dtype and shape.
            rate: the learning rate, of rank 0 and of the parameter's dtype.
            states: the slots before the step, and the counters after it.
        """


@dataclass(frozen=True, slots=True)
class Sgd:
    """Stochastic gradient descent with momentum and weight decay.

        v = momentum * v + gradient + weight_decay * parameter
        parameter = parameter - rate * v

    Attributes:
        momentum: the part of the velocity that is kept, in [0, 1).
        weight_decay: the factor of the parameter that is added to its gradient, at least 0.

    Source: PyTorch, torch.optim.SGD.

    Example::

        >>> sgd = rc.graph.Sgd(momentum=0.5)
        >>> sgd.slots, dict(sgd.counters)
        (('velocity',), {})
        >>> builder = rc.graph.GraphBuilder("update")
        >>> w, slope, rate, v = (builder.input(n, "float32") for n in ("w", "slope", "rate", "v"))
        >>> counters = sgd.count(builder, {})
        >>> after, slots = sgd.update(builder, w, slope, rate, {"velocity": v, **counters})
        >>> print(builder.finish([after, slots["velocity"]]))
        graph update(w: f32[], slope: f32[], rate: f32[], v: f32[]) -> (subtract, add) {
          scale: f32[] = scale(v) {factor=0.5}
          add: f32[] = add(scale, slope)
          multiply: f32[] = multiply(add, rate)
          subtract: f32[] = subtract(w, multiply)
        }
    """

    momentum: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check_shares(self, ("momentum",))

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the names of the states that each parameter has."""
        return ("velocity",) if self.momentum else ()

    @property
    def counters(self) -> Mapping[str, float]:
        """Return the names of the states that all parameters share: none."""
        return {}

    def count(self, builder: GraphBuilder, counters: States) -> States:
        """Return the counters after a step: none.

        Args:
            builder: takes the nodes.
            counters: the counters before the step.
        """
        return {}

    def update(
        self,
        builder: GraphBuilder,
        parameter: Value,
        gradient: Value,
        rate: Value,
        states: States,
    ) -> tuple[Value, States]:
        """Return the parameter and its velocity after a step.

        Args:
            builder: takes the nodes.
            parameter: the parameter before the step.
            gradient: of its dtype and shape.
            rate: the learning rate, of rank 0 and of the parameter's dtype.
            states: the slots before the step, and the counters after it.
        """
        velocity = _decayed(builder, parameter, gradient, self.weight_decay)
        slots = {}
        if self.momentum:
            kept = _scaled(builder, states["velocity"], self.momentum)
            velocity = builder.node("add", [kept, velocity])
            slots["velocity"] = velocity
        step = builder.node("multiply", [velocity, rate])
        return builder.node("subtract", [parameter, step]), slots


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam, with weight decay that is added to the gradient.

        m = beta1 * m + (1 - beta1) * gradient
        v = beta2 * v + (1 - beta2) * gradient**2
        parameter = parameter - rate * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + epsilon)

    with t = 1, 2, ... for the steps.

    Attributes:
        beta1: the part of the mean of gradients that is kept, in [0, 1).
        beta2: the part of the mean of their squares that is kept, in [0, 1).
        epsilon: added to the root, at least 0.
        weight_decay: the factor of the parameter that is added to its gradient, at least 0.

    Source: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015; PyTorch,
    torch.optim.Adam.

    Example::

        >>> adam = rc.graph.Adam()
        >>> adam.slots, dict(adam.counters)
        (('mean', 'square'), {'beta1_power': 1.0, 'beta2_power': 1.0})
        >>> builder = rc.graph.GraphBuilder("update")
        >>> names = ("w", "slope", "rate", "mean", "square", "beta1_power", "beta2_power")
        >>> inputs = {name: builder.input(name, "float32") for name in names}
        >>> states = inputs | adam.count(builder, inputs)
        >>> w, slope, rate = inputs["w"], inputs["slope"], inputs["rate"]
        >>> after, slots = adam.update(builder, w, slope, rate, states)
        >>> graph = builder.finish([after, *slots.values()])
        >>> feeds = dict(zip(names, map(np.float32, (5, 2, 0.5, 0, 0, 1, 1))))
        >>> print(*(number.round(4) for number in rc.graph.evaluate_graph(graph, feeds)))
        4.5 0.2 0.004
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check_shares(self, ("beta1", "beta2"))

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the names of the states that each parameter has."""
        return ("mean", "square")

    @property
    def counters(self) -> Mapping[str, float]:
        """Return the names of the states that all parameters share, and their first values."""
        return {"beta1_power": 1.0, "beta2_power": 1.0}

    def count(self, builder: GraphBuilder, counters: States) -> States:
        """Return both powers after a step.

        Args:
            builder: takes the nodes.
            counters: the counters before the step.
        """
        first = _scaled(builder, counters["beta1_power"], self.beta1)
        second = _scaled(builder, counters["beta2_power"], self.beta2)
        return {"beta1_power": first, "beta2_power": second}

    def update(
        self,
        builder: GraphBuilder,
        parameter: Value,
        gradient: Value,
        rate: Value,
        states: States,
    ) -> tuple[Value, States]:
        """Return the parameter and both of its means after a step.

        Args:
            builder: takes the nodes.
            parameter: the parameter before the step.
            gradient: of its dtype and shape.
            rate: the learning rate, of rank 0 and of the parameter's dtype.
            states: the slots before the step, and the counters after it.
        """
        slope = _decayed(builder, parameter, gradient, self.weight_decay)
        mean = _mixed(builder, states["mean"], slope, self.beta1)
        squared = builder.node("square", [slope])
        square = _mixed(builder, states["square"], squared, self.beta2)
        unbiased = _unbiased(builder, mean, states["beta1_power"])
        variance = _unbiased(builder, square, states["beta2_power"])
        root = builder.node("sqrt", [variance])
        epsilon = builder.constant("epsilon", _number(self.epsilon, parameter))
        divisor = builder.node("add", [root, epsilon])
        quotient = builder.node("divide", [unbiased, divisor])
        step = builder.node("multiply", [quotient, rate])
        after = builder.node("subtract", [parameter, step])
        return after, {"mean": mean, "square": square}


def _check_shares(optimizer: Sgd | Adam, shares: tuple[str, ...]) -> None:
    """Raise UserError unless all numbers are in range."""
    name = type(optimizer).__name__
    for one in fields(optimizer):
        number = getattr(optimizer, one.name)
        most = 1.0 if one.name in shares else np.inf
        if not isinstance(number, int | float) or not 0 <= number < most:
            end = "below 1" if one.name in shares else "finite"
            raise UserError(
                f"{name} cannot have the {one.name} {number!r}",
                remedy=f"give a number that is at least 0 and {end}",
            )


def _number(number: float, like: Value) -> np.ndarray[tuple[()], np.dtype[np.generic]]:
    return np.array(number, to_numpy(like.dtype))


def _scaled(builder: GraphBuilder, value: Value, factor: float) -> Value:
    return builder.node("scale", [value], {"factor": float(factor)})


def _decayed(
    builder: GraphBuilder, parameter: Value, gradient: Value, decay: float
) -> Value:
    if not decay:
        return gradient
    return builder.node("add", [gradient, _scaled(builder, parameter, decay)])


def _mixed(builder: GraphBuilder, kept: Value, added: Value, share: float) -> Value:
    """Return share * kept + (1 - share) * added."""
    first = _scaled(builder, kept, share)
    return builder.node("add", [first, _scaled(builder, added, 1 - share)])


def _unbiased(builder: GraphBuilder, mean: Value, power: Value) -> Value:
    """Return mean / (1 - power): what the zeros at the beginning took away."""
    one = builder.constant("one", _number(1.0, power))
    rest = builder.node("subtract", [one, power])
    return builder.node("divide", [mean, rest])
