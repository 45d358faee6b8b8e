"""The form in which instructions on values are described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refcomp.emulator.machine.arrays import Array


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A description of what an instruction computes.

    Attributes:
        compute: takes an array for each source, with an element for each thread, or an array
            without axes where all threads have the same value. Returns an array for each result; a
            single one by itself. It is called where numpy's warnings are off.
        sources: the PTX types of the sources. Arrays of u and b types are unsigned, of s types
            signed, of f16, f32 and f64 floats, of pred bool. Those of bf16, tf32 and packed types
            are unsigned integers of their width. "%cc" is the carry flag, bool. It is no operand,
            but a register that all instructions with a carry share.
        results: the types of the results, likewise.
        undefined: takes the values and then, for each source, its bits that nothing wrote, as
            unsigned integers or bool. Returns such bits of the result. None: if any bit of a source
            is undefined, each bit of all results is. For several results it returns a tuple.
    """

    compute: Callable[..., Array | tuple[Array, ...]]
    sources: tuple[str, ...]
    results: tuple[str, ...]
    undefined: Callable[..., Array | tuple[Array, ...]] | None = None
