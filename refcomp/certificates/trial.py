"""The inputs that programs were compared on, and the algebras that they were compared in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from refcomp.oracle.exact.field import P


class Algebra(StrEnum):
    """A kind of numbers that programs run on, with its meaning of agreement."""

    FIELD = "finite field"
    BOUNDS = "floats within bounds"
    BITS = "floats to the bit"

    @property
    def phrase(self) -> str:
        """Return how results were compared, for a reader."""
        return _PHRASES[self]


_PHRASES = {
    Algebra.FIELD: f"exactly (field of {P} elements, integers modulo 2^w)",
    Algebra.BOUNDS: "floats within their error bounds",
    Algebra.BITS: "floats to the bit",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs that every program ran on."""

    sizes: Mapping[str, int]  # of the symbols, and of whole-number scalars
    seed: int  # of the random arrays
    max_integer: int | None  # the largest random one; None for all of the dtype
    algebras: tuple[Algebra, ...]  # of the arrays, one after the other
    programs: int  # the number of programs that were compared

    @property
    def data(self) -> str:
        """Return how the arrays were filled."""
        integers = "of any value"
        if self.max_integer is not None:
            integers = f"from 0 to {self.max_integer}"
        return f"random arrays of seed {self.seed} (normal floats, integers {integers})"

    def __str__(self) -> str:
        sizes = sizes_to_text(self.sizes) or "constant sizes"
        return f"{sizes}; {self.data}"

    def to_json(self) -> dict[str, Any]:
        """Return the trial as a JSON value."""
        return {
            "sizes": dict(self.sizes),
            "data": self.data,
            "seed": self.seed,
            "greatest_integer": self.max_integer,
            "algebras": [str(algebra) for algebra in self.algebras],
            "programs": self.programs,
        }


def sizes_to_text(sizes: Mapping[str, int]) -> str:
    """Return sizes as a reader writes them: `n = 5, m = 3`."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())
