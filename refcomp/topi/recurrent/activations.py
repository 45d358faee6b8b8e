"""The activations of recurrent cells, some with parameters, and the limit of what they see.

An operator names them in one text: `sigmoid,tanh`. A layer with two directions may name twice as
many; the second half is that of the reverse direction.

Reference: ONNX RNN, whose attribute activations lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.topi.draws import Draws
from refcomp.topi.shapes import Array


def _sigmoid_numpy(x: Array) -> Array:
    with np.errstate(over="ignore"):  # 1 / infinity is 0
        return np.asarray(1 / (1 + np.exp(-x)))


def _sigmoid(x: Expr) -> Expr:
    one = const(1, x.dtype)
    return one / (one + maths.exp(-x))


def _hard_sigmoid(x: Expr, alpha: Expr, beta: Expr) -> Expr:
    inner = maths.minimum(alpha * x + beta, const(1, x.dtype))
    return maths.maximum(inner, const(0, x.dtype))


def _softplus(x: Expr) -> Expr:
    above = maths.maximum(x, const(0, x.dtype))
    return above + maths.log1p(maths.exp(-maths.abs(x)))


def _elu(x: Expr, alpha: Expr) -> Expr:
    below = alpha * (maths.exp(x) - const(1, x.dtype))
    return maths.select(x > const(0, x.dtype), x, below)


def _thresholded_relu(x: Expr, alpha: Expr) -> Expr:
    return maths.select(x > alpha, x, const(0, x.dtype))


@dataclass(frozen=True, slots=True)
class _Activation:
    """A function of x, alpha and beta, as te and as numpy.

    Attributes:
        te: takes expressions.
        numpy: takes an array in f64, and two numbers.
        alpha: the default of alpha.
        beta: the default of beta.
    """

    te: Callable[[Expr, Expr, Expr], Expr]
    numpy: Callable[[Array, float, float], Array]
    alpha: float = 1.0
    beta: float = 1.0


ACTIVATIONS: dict[str, _Activation] = {
    "affine": _Activation(
        lambda x, a, b: a * x + b, lambda x, a, b: a * x + b, beta=0.0
    ),
    "elu": _Activation(
        lambda x, a, b: _elu(x, a), lambda x, a, b: np.where(x > 0, x, a * np.expm1(x))
    ),
    "hard_sigmoid": _Activation(
        _hard_sigmoid,
        lambda x, a, b: np.maximum(np.minimum(a * x + b, 1), 0),
        alpha=0.2,
        beta=0.5,
    ),
    "leaky_relu": _Activation(
        lambda x, a, b: maths.select(x >= const(0, x.dtype), x, a * x),
        lambda x, a, b: np.where(x >= 0, x, a * x),
        alpha=0.01,
    ),
    "relu": _Activation(
        lambda x, a, b: maths.maximum(x, const(0, x.dtype)),
        lambda x, a, b: np.maximum(x, 0),
    ),
    "scaled_tanh": _Activation(
        lambda x, a, b: a * maths.tanh(b * x), lambda x, a, b: a * np.tanh(b * x)
    ),
    "sigmoid": _Activation(
        lambda x, a, b: _sigmoid(x), lambda x, a, b: _sigmoid_numpy(x)
    ),
    "softplus": _Activation(
        lambda x, a, b: _softplus(x), lambda x, a, b: np.logaddexp(x, 0)
    ),
    "softsign": _Activation(
        lambda x, a, b: x / (const(1, x.dtype) + maths.abs(x)),
        lambda x, a, b: x / (1 + np.abs(x)),
    ),
    "tanh": _Activation(lambda x, a, b: maths.tanh(x), lambda x, a, b: np.tanh(x)),
    "thresholded_relu": _Activation(
        lambda x, a, b: _thresholded_relu(x, a), lambda x, a, b: np.where(x > a, x, 0)
    ),
}


@dataclass(frozen=True, slots=True)
class CellActivations:
    """The activations of a cell in one direction.

    Attributes:
        names: of each, in the order in which the operator uses them.
        alphas: the first parameter of each.
        betas: the second parameter of each.
        limit: inputs of activations are clipped to [-limit, limit]; 0 for no limit.
    """

    names: tuple[str, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    limit: float = 0.0

    def apply(self, place: int, x: Expr) -> Expr:
        """Return activation number `place` of an expression."""
        if self.limit:
            high = const(self.limit, x.dtype)
            x = maths.minimum(maths.maximum(x, -high), high)
        alpha = const(self.alphas[place], x.dtype)
        beta = const(self.betas[place], x.dtype)
        return ACTIVATIONS[self.names[place]].te(x, alpha, beta)

    def apply_numpy(self, place: int, x: Array) -> Array:
        """Return activation number `place` of an array in f64."""
        if self.limit:
            x = np.clip(x, -self.limit, self.limit)
        found = ACTIVATIONS[self.names[place]]
        return np.asarray(found.numpy(x, self.alphas[place], self.betas[place]))

    def rounded(self, to: Callable[[float], float]) -> CellActivations:
        """Return the same activations with rounded parameters."""
        alphas, betas = (tuple(map(to, one)) for one in (self.alphas, self.betas))
        return CellActivations(self.names, alphas, betas, to(self.limit))


def read_activations(
    operator: str,
    names: str,
    count: int,
    directions: int = 1,
    *,
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    limit: float = 0.0,
) -> tuple[CellActivations, ...]:
    """Return the activations of each direction.

    Args:
        operator: the name of the operator, for messages.
        names: of all activations, with commas between them.
        count: the number of activations of a cell.
        directions: the number of directions. All have the same activations if only `count` are
            named.
        alphas: a number for each name; empty for the defaults.
        betas: likewise.
        limit: of the inputs of activations; 0 for no limit.

    Raises:
        UserError: a name is unknown, there are too few or too many names or parameters, or the
            limit is negative.
    """
    given = [name.strip() for name in names.split(",")]
    for name in given:
        if name not in ACTIVATIONS:
            raise UserError(
                f"{operator} does not know the activation {name!r}",
                remedy=advise(name, ACTIVATIONS, f"use {', '.join(ACTIVATIONS)}"),
            )
    if len(given) not in (count, count * directions):
        raise UserError(
            f"{operator} cannot use {len(given)} activations: {names}",
            remedy=f"name {count * directions}, or {count} for all directions",
        )
    found = [ACTIVATIONS[name] for name in given]
    firsts = _numbers(operator, "alphas", alphas, [one.alpha for one in found])
    seconds = _numbers(operator, "betas", betas, [one.beta for one in found])
    if not limit >= 0:
        raise UserError(
            f"{operator} cannot clip to the limit {limit:g}",
            remedy="give a number above 0, or 0 for no limit",
        )
    rows = [
        CellActivations(
            tuple(given[k : k + count]),
            firsts[k : k + count],
            seconds[k : k + count],
            limit,
        )
        for k in range(0, len(given), count)
    ]
    return tuple(rows * directions if len(rows) < directions else rows)


def _numbers(
    operator: str, what: str, given: Sequence[float], default: Sequence[float]
) -> tuple[float, ...]:
    if not given:
        return tuple(default)
    if len(given) != len(default):
        raise UserError(
            f"{operator} cannot use {len(given)} {what} for {len(default)} activations",
            remedy=f"give {len(default)} {what}, or none for the defaults",
        )
    return tuple(map(float, given))


def sample_activations(
    draws: Draws, name: str, count: int, directions: int
) -> dict[str, object]:
    """Return attributes of a layer: random activations, or none for the defaults.

    Args:
        draws: what makes the random choices.
        name: the name of the attribute that lists the activations.
        count: the number of activations of a cell.
        directions: the number of directions.
    """
    if draws.flag():
        return {}
    total = count * (directions if draws.flag() else 1)
    names = [draws.choice(tuple(ACTIVATIONS)) for _ in range(total)]
    attributes: dict[str, object] = {name: ",".join(names)}
    if draws.flag():
        attributes["alphas"] = tuple(draws.integer(1, 4) / 4 for _ in range(total))
        attributes["betas"] = tuple(draws.integer(-2, 4) / 4 for _ in range(total))
    if draws.flag():
        attributes["clip"] = draws.integer(1, 4) / 2
    return attributes
