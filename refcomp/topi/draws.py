"""Random operands and attributes, by which operators are tested and their mutants are tried.

A sample is small, since it is run on every kind of target. Corners are drawn often: extents of 0
and 1, tensors of rank 0, NaN, infinities, zeros of both signs, subnormals, extreme integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.topi.shapes import Array

_T = TypeVar("_T")
_FLOATS = ("float32", "float32", "float32", "float64", "float16")
_INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
_LONGEST = 5  # the greatest extent
_MOST_ELEMENTS = 150
# One float of so many is special, in an array that may hold special ones.
_RARITY = 6


@dataclass(frozen=True, slots=True)
class Sample:
    """Operands and attributes of one call of an operator.

    Attributes:
        operands: an array for each input, None for one that is left out.
        attributes: name -> value.
    """

    operands: tuple[Array | None, ...]
    attributes: Mapping[str, object] = field(default_factory=dict)


class Draws:
    """A source of random extents, dtypes and arrays. Equal seeds draw the same.

    Args:
        seed: any integer >= 0.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def integer(self, least: int, greatest: int) -> int:
        """Return an integer between the bounds, both included."""
        return int(self._random.integers(least, greatest, endpoint=True))

    def pair(self, least: int, greatest: int) -> tuple[int, int]:
        """Return two integers between the bounds, both included."""
        return self.integer(least, greatest), self.integer(least, greatest)

    def number(self, least: float, greatest: float) -> float:
        """Return a float between the bounds, with few digits, so that messages stay short."""
        return round(float(self._random.uniform(least, greatest)), 3)

    def choice(self, options: Sequence[_T]) -> _T:
        """Return one of `options`, each as probable."""
        return options[self.integer(0, len(options) - 1)]

    def flag(self) -> bool:
        """Return True or False."""
        return self.integer(0, 1) == 1

    def order(self, count: int) -> tuple[int, ...]:
        """Return the numbers below `count` in random order."""
        return tuple(int(place) for place in self._random.permutation(count))

    def extent(self, least: int = 1) -> int:
        """Return an extent of at least `least`, which is rarely 0 where that is allowed."""
        if least == 0 and self.integer(0, 9) > 0:
            least = 1
        return self.integer(least, max(least, _LONGEST))

    def shape(
        self, least_rank: int = 0, most_rank: int = 4, least: int = 0
    ) -> tuple[int, ...]:
        """Return a shape of few elements, whose extents are at least `least`."""
        extents: list[int] = []
        for _ in range(self.integer(least_rank, most_rank)):
            longest = max(least, 1, _MOST_ELEMENTS // max(1, int(np.prod(extents))))
            extents.append(min(self.extent(least), longest))
        return tuple(extents)

    def reduced_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return `shape` with some extents that are 1 instead, or without its first axes."""
        if self.integer(0, 2) == 0:
            shape = shape[self.integer(0, len(shape)) :]
        return tuple(1 if self.integer(0, 4) == 0 else extent for extent in shape)

    def axis(self, rank: int) -> int:
        """Return an axis of a tensor of this rank, which may be negative."""
        return self.integer(-rank, rank - 1)

    def float_dtype(self) -> str:
        """Return the name of a float dtype, mostly float32."""
        return self.choice(_FLOATS)

    def integer_dtype(self) -> str:
        """Return the name of an integer dtype."""
        return self.choice(_INTEGERS)

    def number_dtype(self) -> str:
        """Return the name of a float or integer dtype."""
        return self.integer_dtype() if self.integer(0, 2) == 0 else self.float_dtype()

    def array(
        self, shape: Sequence[int], dtype: str = "float32", special: bool = True
    ) -> Array:
        """Return an array of any dtype.

        Args:
            shape: the extents.
            dtype: the name of the dtype.
            special: True for an array which may hold NaN, infinities, -0 and subnormals, or the
                extreme integers of its dtype.
        """
        kind = as_dtype(dtype)
        if kind.is_bool:
            return np.asarray(self._random.integers(0, 2, shape) == 1)
        if kind.is_float:
            return self._floats(shape, dtype, special and self.flag())
        low = 0 if kind.min_value == 0 else -8
        array = self._random.integers(low, 9, shape).astype(to_numpy(kind))
        if special and self.flag():
            extremes = np.array([kind.min_value, kind.max_value, 1], array.dtype)
            array = self._sprinkled(array, extremes)
        return np.asarray(array)

    def integers(
        self, shape: Sequence[int], least: int, greatest: int, dtype: str = "int32"
    ) -> Array:
        """Return an array of integers between the bounds, both included."""
        drawn = self._random.integers(least, greatest, shape, endpoint=True)
        return np.asarray(drawn.astype(to_numpy(as_dtype(dtype))))

    def uniform(
        self,
        shape: Sequence[int],
        least: float,
        greatest: float,
        dtype: str = "float32",
    ) -> Array:
        """Return an array of floats between the bounds."""
        drawn = self._random.uniform(least, greatest, shape)
        return np.asarray(np.asarray(drawn).astype(to_numpy(as_dtype(dtype))))

    def _floats(self, shape: Sequence[int], dtype: str, special: bool) -> Array:
        kind = to_numpy(as_dtype(dtype))
        scale = self.choice((1.0, 1.0, 4.0, 30.0))
        array = np.asarray(self._random.standard_normal(shape) * scale).astype(kind)
        if not special:
            return array
        tiny = np.finfo(kind).smallest_subnormal
        corners = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, tiny, -tiny, 1.0], kind)
        return self._sprinkled(array, corners)

    def _sprinkled(self, array: Array, values: Array) -> Array:
        """Return `array` with some elements replaced by `values`."""
        chosen = self._random.choice(values, array.shape)
        is_replaced = self._random.integers(0, _RARITY, array.shape) == 0
        return np.where(is_replaced, chosen, array)


def one_float_operand(draws: Draws) -> Sample:
    """Return one tensor of floats of any shape."""
    return Sample((draws.array(draws.shape(), draws.float_dtype()),))


def one_number_operand(draws: Draws) -> Sample:
    """Return one tensor of floats or integers of any shape."""
    return Sample((draws.array(draws.shape(), draws.number_dtype()),))


def one_integer_operand(draws: Draws) -> Sample:
    """Return one tensor of integers of any shape."""
    return Sample((draws.array(draws.shape(), draws.integer_dtype()),))


def two_operands(draws: Draws, dtype: str) -> Sample:
    """Return two tensors whose shapes broadcast."""
    return several_operands(draws, (dtype, dtype))


def several_operands(draws: Draws, dtypes: Sequence[str]) -> Sample:
    """Return a tensor of each dtype, whose shapes broadcast."""
    whole = draws.shape()
    shapes = [draws.reduced_shape(whole) for _ in dtypes]
    pairs = zip(shapes, dtypes, strict=True)
    return Sample(tuple(draws.array(shape, dtype) for shape, dtype in pairs))
