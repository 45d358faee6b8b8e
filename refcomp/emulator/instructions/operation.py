"""One row of the table of instructions: what it takes, what it gives, and the function between.

`function` takes an array for each source, broadcast to [wave, lane] (of scalar instructions,
[wave]), and gives one for each result, in the types of `refcomp.emulator.machine.arrays`. It knows
nothing of registers, so that a translator could use the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Shadows of the sources, then the sources' values -> shadow of each result.
Spread = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Semantics:
    """`implicit` are sources that stand in no operand: `vcc`, `scc`, or `result`, what the first
    result was. `spread` says which bits of the results are undefined where bits of the sources are;
    without it, one undefined bit makes all of the lane's result undefined. `is_approximate` where
    a real GPU may differ by 1 ulp. `keeps_high` where 16 bits leave the register's other half.
    `wide` does with 64-bit integers what `function` does with narrower ones: for `clamp`, by which
    what does not fit becomes the nearest that does."""

    results: tuple[str, ...]
    sources: tuple[str, ...]
    function: Callable[..., Any]
    implicit: tuple[str, ...] = ()
    spread: Spread | None = None
    is_approximate: bool = False
    keeps_high: bool = False
    wide: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class PackedSemantics:
    """What a packed instruction does: the same with both halves of its operands."""

    # Type of a half.
    kind: str
    # What it does with each half.
    half: Semantics


def operation(
    signature: str, function: Callable[..., Any], **details: Any
) -> Semantics:
    """`operation("f32 = f32 f32", np.add)`; what follows `;` is implicit: `f64 = f64 f64; vcc`."""
    results, _, rest = signature.partition("=")
    sources, _, implicit = rest.partition(";")
    return Semantics(
        tuple(results.split()),
        tuple(sources.split()),
        function,
        tuple(implicit.split()),
        **details,
    )
