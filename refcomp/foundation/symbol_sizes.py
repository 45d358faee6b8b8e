"""A solver for the sizes of symbols, from the extents of the arrays of a call.

    A: f32[n, 2 * m] of shape (3, 8)     ->     n = 3, m = 4

If an extent is a symbol, the symbol has this size. Other symbols follow from extents that are
linear in one unknown symbol (`n - 2`, `2 * m`, and `n * m` as soon as n is known). Any other extent
(`n // 2`, `n + m`) determines no symbol, but can be checked when its symbols are known.

Solving rounds down, and replaces negative sizes by 0. So an equation without a solution also gets
a size, with which the extent differs from its expected value. The caller must compare all extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from refcomp.foundation.artifacts import Dim, evaluate_dim, names_in_dim
from refcomp.foundation.records import record


@record
class Extent:
    """One dimension of an array of a call."""

    dim: Dim  # the declared extent
    size: int  # the actual extent
    origin: str  # the dimension in words, such as `dimension 0 of A`


@record(frozen=False)
class Sizes:
    """The known sizes of symbols. Both maps have the same keys, the names of the symbols."""

    values: dict[str, int] = field(default_factory=dict)
    # The dimension that determined the size, in words.
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, size: int, origin: str) -> None:
        """Set the size of a symbol, unless it is known."""
        if name not in self.values:
            self.values[name] = size
            self.origins[name] = origin

    def solve(self, extents: Iterable[Extent]) -> None:
        """Add the symbols that `extents` determine."""
        pending: list[Extent] = []
        for extent in extents:
            if isinstance(extent.dim, str):
                self.add(extent.dim, extent.size, extent.origin)
            elif isinstance(extent.dim, tuple):
                pending.append(extent)
        # Each size may make another extent linear in one unknown symbol, so repeat.
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
        """Return, in words, the sizes that `dims` depend on, and their origins."""
        return self.explain_names(name for dim in dims for name in names_in_dim(dim))

    def explain_names(self, names: Iterable[str]) -> str:
        """Return, in words, the sizes of symbols, and their origins."""
        return "; ".join(
            f"{name} is {self.values[name]} by {self.origins[name]}"
            for name in dict.fromkeys(names)
            if name in self.values
        )


def solvable_symbols(dims: Iterable[Dim], known: Iterable[str] = ()) -> set[str]:
    """Return the symbols that arrays with the extents `dims` determine, and the `known` ones.

    A product of two symbols determines one of them, although a call may give 0 for the other.
    """
    pending = list(dims)
    names = [*known, *(dim for dim in pending if isinstance(dim, str))]
    # Different large sizes for trial, with which no factor of a practical extent is 0.
    values = {name: _LARGE + number * number for number, name in enumerate(names)}
    while True:
        found = [linear for dim in pending if (linear := _linear_unknown(dim, values))]
        if not found:
            return set(values)
        for linear in found:
            values[linear.name] = _LARGE + len(values) ** 2


_LARGE = 1_000_003


class LeastSize(NamedTuple):
    """The smallest size of a symbol for which an extent is not negative."""

    name: str
    size: int


def least_size(dim: Dim) -> LeastSize | None:
    """Return the smallest size for which `dim` is not negative.

    Return None unless `dim` is linear in one symbol and grows with it.
    """
    linear = _linear_unknown(dim, {})
    if linear is None or linear.slope < 0:
        return None
    return LeastSize(linear.name, max(0, -(linear.rest // linear.slope)))


class _Linear(NamedTuple):
    """The linear function `slope * name + rest`."""

    name: str
    slope: int
    rest: int


def _linear_unknown(dim: Dim, values: Mapping[str, int]) -> _Linear | None:
    """Return `dim` as a linear function of the only symbol that has no value.

    Return None if it has no such symbol or several, if it is not linear, or if the slope is 0.
    """
    unknown = {name for name in names_in_dim(dim) if name not in values}
    if len(unknown) != 1:
        return None
    (name,) = unknown
    linear = _linear(dim, name, values)
    return linear if linear is not None and linear.slope else None


def _linear(dim: Dim, name: str, values: Mapping[str, int]) -> _Linear | None:
    """Return `dim` as a linear function of `name`; None if it is not linear."""
    if name not in names_in_dim(dim):
        return _Linear(name, 0, evaluate_dim(dim, values))
    if isinstance(dim, str):
        return _Linear(name, 1, 0)
    assert isinstance(dim, tuple)
    operator = dim[0]
    left = _linear(dim[1], name, values)
    right = _linear(dim[2], name, values)
    if left is None or right is None:
        return None
    if operator == "add":
        return _Linear(name, left.slope + right.slope, left.rest + right.rest)
    if operator == "sub":
        return _Linear(name, left.slope - right.slope, left.rest - right.rest)
    if operator == "mul" and not left.slope:
        return _Linear(name, left.rest * right.slope, left.rest * right.rest)
    if operator == "mul" and not right.slope:
        return _Linear(name, left.slope * right.rest, left.rest * right.rest)
    return None
