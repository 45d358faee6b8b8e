"""The sizes of symbols, solved from the extents of the arrays that are given.

    A: f32[n, 2 * m] of shape (3, 8)     ->     n = 3, m = 4

A symbol that is an extent by itself has that size. The sizes of the others follow from the extents
that are linear in one unknown symbol (`n - 2`, `2 * m`, `n * m` once n is known). Other extents
(`n // 2`, `n + m`) say nothing about their symbols, but can be checked once those are known.

The quotient of a size is rounded down, and a size is never negative. So an extent that no size
fits differs from its expected value afterwards; whoever solves has to compare all extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from refcomp.foundation.artifacts import Dim, evaluate_dim, names_in_dim


@dataclass(frozen=True, slots=True)
class Extent:
    """One dimension of an array that is given.

    Attributes:
        dim: the extent that is declared
        size: the extent that the array has
        origin: the dimension for a reader, such as `dimension 0 of A`
    """

    dim: Dim
    size: int
    origin: str


@dataclass(slots=True)
class Sizes:
    """The size of each symbol that is known, and the origin of each size for a reader."""

    values: dict[str, int] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, size: int, origin: str) -> None:
        """Set the size of a symbol, unless it is known."""
        if name not in self.values:
            self.values[name], self.origins[name] = size, origin

    def solve(self, extents: Iterable[Extent]) -> None:
        """Add the symbols that `extents` determine: plain extents first, then linear ones."""
        pending: list[Extent] = []
        for extent in extents:
            if isinstance(extent.dim, str):
                self.add(extent.dim, extent.size, extent.origin)
            elif isinstance(extent.dim, tuple):
                pending.append(extent)
        # Each size that is found may make another extent linear in one symbol.
        while any(self._solve_linear(extent) for extent in pending):
            pass

    def _solve_linear(self, extent: Extent) -> bool:
        found = _linear_unknown(extent.dim, self.values)
        if found is None:
            return False
        self.add(
            found.name, max(0, (extent.size - found.rest) // found.slope), extent.origin
        )
        return True

    def explain(self, *dims: Dim) -> str:
        """Return the sizes that `dims` depend on, and their origins."""
        names = dict.fromkeys(name for dim in dims for name in names_in_dim(dim))
        return "; ".join(
            f"{name} is {self.values[name]} by {self.origins[name]}"
            for name in names
            if name in self.values
        )


def solvable_symbols(dims: Iterable[Dim], known: Iterable[str] = ()) -> set[str]:
    """Return the symbols whose sizes arrays of such extents determine, `known` ones included.

    Extents in which a symbol is multiplied by another one count, though the other may be 0.
    """
    pending = list(dims)
    names = [*known, *(dim for dim in pending if isinstance(dim, str))]
    # Large sizes that differ, so that no factor that is made of them is 0.
    values = {name: _LARGE + number * number for number, name in enumerate(names)}
    while True:
        found = [linear for dim in pending if (linear := _linear_unknown(dim, values))]
        if not found:
            return set(values)
        for linear in found:
            values[linear.name] = _LARGE + len(values) ** 2


_LARGE = 1_000_003


class LeastSize(NamedTuple):
    """The least size of a symbol with which an extent is not negative."""

    name: str
    size: int


def least_size(dim: Dim) -> LeastSize | None:
    """Return the least size that `dim` needs; None if it does not grow with one symbol only."""
    linear = _linear_unknown(dim, {})
    if linear is None or linear.slope < 0:
        return None
    return LeastSize(linear.name, max(0, -(linear.rest // linear.slope)))


class _Linear(NamedTuple):
    """`slope * name + rest`, where the slope is not 0."""

    name: str
    slope: int
    rest: int


def _linear_unknown(dim: Dim, values: Mapping[str, int]) -> _Linear | None:
    """`dim` as a linear function of the only symbol that has no value; None if it is not one."""
    unknown = {name for name in names_in_dim(dim) if name not in values}
    if len(unknown) != 1:
        return None
    (name,) = unknown
    linear = _linear(dim, name, values)
    return _Linear(name, *linear) if linear is not None and linear[0] else None


def _linear(dim: Dim, name: str, values: Mapping[str, int]) -> tuple[int, int] | None:
    """The slope and the rest of `dim` as a linear function of `name`; None if it is not one."""
    if name not in names_in_dim(dim):
        return 0, evaluate_dim(dim, values)
    if isinstance(dim, str):
        return 1, 0
    assert isinstance(dim, tuple)
    operator, a, b = dim
    left, right = _linear(a, name, values), _linear(b, name, values)
    if left is None or right is None:
        return None
    if operator == "add":
        return left[0] + right[0], left[1] + right[1]
    if operator == "sub":
        return left[0] - right[0], left[1] - right[1]
    if operator == "mul" and not left[0]:
        return left[1] * right[0], left[1] * right[1]
    if operator == "mul" and not right[0]:
        return left[0] * right[1], left[1] * right[1]
    return None
