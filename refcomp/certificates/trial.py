"""The inputs that programs were compared on, and the algebras that they were compared in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from refcomp.oracle.exact.field import P


class Algebra(StrEnum):
    """A kind of numbers that programs are run on, and so what agreement of results means."""

    FIELD = "finite field"
    BOUNDS = "floats within bounds"
    BITS = "floats to the bit"

    @property
    def phrase(self) -> str:
        """Return what was compared, for a reader."""
        return _PHRASES[self]


_PHRASES = {
    Algebra.FIELD: f"exactly (field of {P} elements, integers modulo 2^w)",
    Algebra.BOUNDS: "floats within their error bounds",
    Algebra.BITS: "floats to the bit",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs that every program was run on.

    Attributes:
        sizes: of the symbols, and of whole-number scalars
        seed: of the random arrays
        greatest: the greatest random integer; None: any value of the dtype
        algebras: the kinds of numbers that the arrays held, one after the other
        programs: the number of programs that were compared on these inputs
    """

    sizes: Mapping[str, int]
    seed: int
    greatest: int | None
    algebras: tuple[Algebra, ...]
    programs: int

    @property
    def data(self) -> str:
        """Return how the arrays were filled."""
        integers = (
            "of any value" if self.greatest is None else f"from 0 to {self.greatest}"
        )
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
            "greatest_integer": self.greatest,
            "algebras": [str(algebra) for algebra in self.algebras],
            "programs": self.programs,
        }


def sizes_to_text(sizes: Mapping[str, int]) -> str:
    """Return sizes as a reader writes them: `n = 5, m = 3`."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())
