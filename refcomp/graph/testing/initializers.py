"""Initializers: the first values of parameters, before training.

An initializer fills an array with draws or with a constant. `Initializer.fill` decides by the end
of a parameter's name, as classic programs do. Weights are random, `gamma` and `moving_var` are 1,
and `bias`, `beta` and `moving_mean` are 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.graph.graph import Array

_ONES = ("gamma", "moving_var")
_ZEROS = ("bias", "beta", "moving_mean")


class Initializer(ABC):
    """A rule for the first values of parameters.

    A subclass says how weights are drawn. Other parameters are filled by the ends of their names.

    Source: NNVM, nnvm.testing.init.Initializer.

    Example::

        >>> from refcomp.graph.testing import Xavier
        >>> draws = np.random.default_rng(0)
        >>> Xavier().fill("bn_gamma", (3,), draws).tolist()
        [1.0, 1.0, 1.0]
        >>> bool(abs(Xavier().weights((8, 4), draws)).max() < 1)
        True
    """

    @abstractmethod
    def weights(self, shape: tuple[int, ...], draws: np.random.Generator) -> Array:
        """Return an array of weights in f64.

        Args:
            shape: the extents: outputs, inputs, then the extents of filters.
            draws: the generator of random numbers.
        """

    def fill(
        self, name: str, shape: tuple[int, ...], draws: np.random.Generator
    ) -> Array:
        """Return the first values of a parameter in f64.

        Args:
            name: the name of the parameter.
            shape: its extents.
            draws: the generator of random numbers.
        """
        if name.endswith(_ONES):
            return np.ones(shape)
        if name.endswith(_ZEROS):
            return np.zeros(shape)
        return self.weights(shape, draws)


class ConstantInitializer(Initializer):
    """An initializer that fills weights with one number.

    Args:
        value: the number.

    Example::

        >>> from refcomp.graph.testing import ConstantInitializer
        >>> ConstantInitializer(2).weights((2,), np.random.default_rng(0)).tolist()
        [2.0, 2.0]
    """

    def __init__(self, value: float) -> None:
        self.value = value

    def weights(self, shape: tuple[int, ...], draws: np.random.Generator) -> Array:
        return np.full(shape, float(self.value))


class UniformInitializer(Initializer):
    """An initializer that draws weights uniformly from -scale to scale.

    Args:
        scale: the bound.

    Example::

        >>> from refcomp.graph.testing import UniformInitializer
        >>> drawn = UniformInitializer(0.5).weights((1000,), np.random.default_rng(0))
        >>> bool(-0.5 <= drawn.min() < -0.4 and 0.4 < drawn.max() <= 0.5)
        True
    """

    def __init__(self, scale: float = 0.07) -> None:
        self.scale = scale

    def weights(self, shape: tuple[int, ...], draws: np.random.Generator) -> Array:
        return draws.uniform(-self.scale, self.scale, shape)


class NormalInitializer(Initializer):
    """An initializer that draws weights from a normal distribution of mean 0.

    Args:
        sigma: the standard deviation.

    Example::

        >>> from refcomp.graph.testing import NormalInitializer
        >>> drawn = NormalInitializer(2).weights((1000,), np.random.default_rng(0))
        >>> bool(1.8 < drawn.std() < 2.2)
        True
    """

    def __init__(self, sigma: float = 0.01) -> None:
        self.sigma = sigma

    def weights(self, shape: tuple[int, ...], draws: np.random.Generator) -> Array:
        return draws.normal(0, self.sigma, shape)


class Xavier(Initializer):
    """An initializer that keeps the variance of the data from layer to layer.

    Weights are drawn with the scale sqrt(magnitude / factor). For `avg` the factor is half the sum
    of inputs and outputs of the layer, for `in` the inputs, and for `out` the outputs.

    Args:
        rnd_type: uniform or gaussian.
        factor_type: avg, in or out.
        magnitude: the square of the scale, times the factor.

    Raises:
        UserError: a word is unknown.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
    networks, 2010; NNVM, nnvm.testing.init.Xavier.

    Example::

        >>> from refcomp.graph.testing import Xavier
        >>> drawn = Xavier(magnitude=3).weights((100, 200), np.random.default_rng(0))
        >>> bool(0.13 < drawn.max() <= (3 / 150) ** 0.5)
        True
    """

    def __init__(
        self,
        rnd_type: Literal["uniform", "gaussian"] = "uniform",
        factor_type: Literal["avg", "in", "out"] = "avg",
        magnitude: float = 3.0,
    ) -> None:
        for word, known in (
            (rnd_type, ("uniform", "gaussian")),
            (factor_type, ("avg", "in", "out")),
        ):
            if word not in known:
                raise UserError(
                    f"Xavier does not know {word!r}",
                    remedy=advise(word, known, f"give one of {', '.join(known)}"),
                )
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = magnitude

    def weights(self, shape: tuple[int, ...], draws: np.random.Generator) -> Array:
        area = math.prod(shape[2:])
        outputs = (shape[0] if shape else 1) * area
        inputs = (shape[1] if len(shape) > 1 else 1) * area
        factors = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}
        scale = math.sqrt(self.magnitude / max(factors[self.factor_type], 1))
        if self.rnd_type == "uniform":
            return draws.uniform(-scale, scale, shape)
        return draws.normal(0, scale, shape)


_BY_NAME: dict[str, Initializer] = {
    "zeros": ConstantInitializer(0),
    "ones": ConstantInitializer(1),
    "uniform": UniformInitializer(),
    "normal": NormalInitializer(),
    "xavier": Xavier(),
}


def initializer_named(name: str) -> Initializer:
    """Return the initializer that a variable names: zeros, ones, uniform, normal or xavier.

    Args:
        name: the name.

    Raises:
        UserError: the name is unknown.

    Example::

        >>> from refcomp.graph.testing import initializer_named
        >>> initializer_named("ones").weights((2,), np.random.default_rng(0)).tolist()
        [1.0, 1.0]
    """
    if name not in _BY_NAME:
        raise UserError(
            f"no initializer is called {name!r}",
            remedy=advise(name, _BY_NAME, f"initializers: {', '.join(_BY_NAME)}"),
        )
    return _BY_NAME[name]
