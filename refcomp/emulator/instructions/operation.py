"""Rows of the tables of instructions: types of operands, types of results, and a function.

The function takes an array for each source, broadcast to [wave, lane] (of scalar instructions,
[wave]). It returns an array for each result. All have the types of
`refcomp.emulator.machine.arrays`. It knows nothing of registers, so that a translator could use the
same tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

# Takes an array for each source; returns an array, or a tuple of them for several results.
Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Semantics:
    """A row of a table: what an instruction computes."""

    results: tuple[str, ...]  # types
    sources: tuple[str, ...]  # types
    function: Function
    # Sources that are not operands: "vcc", "scc", or "result", the old value of the first result.
    implicit: tuple[str, ...] = ()
    # Takes the shadows of the sources, then their values; returns the shadow of each result. None:
    # one undefined bit makes all of the lane's result undefined.
    spread: Function | None = None
    is_approximate: bool = False  # a real GPU may differ by 1 ulp
    # A result of 16 bits leaves the upper half of the register.
    keeps_high: bool = False
    # The function on 64-bit integers, for instructions that saturate under `clamp`.
    wide: Function | None = None


@dataclass(frozen=True, slots=True)
class PackedSemantics:
    """A packed instruction: the same operation on both halves of its operands."""

    kind: str  # type of a half
    half: Semantics


def operation(signature: str, function: Function, **details: Any) -> Semantics:
    """Return a row: `operation("f32 = f32 f32", np.add)`.

    Implicit sources follow a `;`: `f64 = f64 f64; vcc`. `details` are further fields of the row.
    """
    results, _, rest = signature.partition("=")
    sources, _, implicit = rest.partition(";")
    return Semantics(
        tuple(results.split()),
        tuple(sources.split()),
        function,
        tuple(implicit.split()),
        **details,
    )
