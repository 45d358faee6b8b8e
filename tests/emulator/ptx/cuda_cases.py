"""The form of a launch of a CUDA kernel, and what makes its arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
Expected = Callable[..., None]


@dataclass(frozen=True)
class Case:
    """A launch of a kernel.

    `expected` gets a copy of the arguments and changes it as the kernel should. Floats may differ
    by `tolerance`, relatively, and then by `absolute`. `order` is called on what is compared, where
    order does not matter.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    expected: Expected
    tolerance: float = 0.0
    absolute: float = 1e-6
    shared_bytes: int = 0
    order: Callable[[Array], Array] = np.asarray

    def wanted(self) -> tuple[Any, ...]:
        """Return the arguments that a right run leaves behind."""
        found = copy.deepcopy(self.arguments)
        self.expected(*found)
        return found

    def check(self, actual: tuple[Any, ...]) -> None:
        """Raise AssertionError if a run left other arguments behind."""
        for one, other in zip(actual, self.wanted(), strict=True):
            if not isinstance(one, np.void):
                np.testing.assert_allclose(
                    self.order(one),
                    self.order(other),
                    self.tolerance,
                    self.absolute if self.tolerance else 0,
                )


class Cases(list[Case]):
    """Cases of the kernels of a file, each named by the function that says what it computes."""

    def add(
        self, grid: Any, block: Any, *arguments: Any, **options: Any
    ) -> Callable[[Expected], Expected]:
        """Return a decorator; `grid` and `block` are extents or a number along x."""

        def decorated(expected: Expected) -> Expected:
            name = expected.__name__
            extents = [_extents(grid), _extents(block)]
            self.append(Case(name, extents[0], extents[1], arguments, expected, **options))
            return expected

        return decorated

    def named(self, name: str) -> Case:
        """Return the case of a kernel."""
        return next(case for case in self if case.name == name)


def _extents(given: Any) -> tuple[int, int, int]:
    x, y, z = (*given, 1, 1)[:3] if isinstance(given, tuple) else (given, 1, 1)
    return x, y, z


class Draws:
    """Random arrays, which are the same in each run."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def floats(self, *shape: int, dtype: Any = np.float32) -> Array:
        """Return floats around 0."""
        return self._rng.standard_normal(shape).astype(dtype)

    def ints(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Array:
        """Return integers from `low` up to, but without, `high`."""
        return self._rng.integers(low, high, shape, dtype=np.dtype(dtype))


def front_sorted(size: int, count: int) -> Callable[[Array], Array]:
    """Return what sorts the first `count` elements of arrays of `size`; others stay as they are."""

    def ordered(values: Array) -> Array:
        if np.shape(values) != (size,):
            return np.asarray(values)
        return np.concatenate([np.sort(values[:count]), values[count:]])

    return ordered


def zeros(*shape: int, dtype: Any = np.int32) -> Array:
    """Return an array of zeros."""
    return np.zeros(shape, dtype)


def bf16(values: Array) -> Array:
    """Return f32 numbers as the bits of the nearest bf16."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    """Return bits of bf16 as f32 numbers."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def sum_bound(a: Array, b: Array) -> float:
    """Return a bound of the error of each sum of products in f32, of the rows of two matrices.

    Each of n products and sums is wrong by 2^-24 at most (Higham, "Accuracy and Stability of
    Numerical Algorithms", section 3.1).
    """
    sums = np.abs(a.astype(float)) @ np.abs(b.astype(float)).T
    return float(a.shape[-1] * 2.0**-23 * sums.max())
