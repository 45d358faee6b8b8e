"""The form in which instructions on values are described."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refcomp.emulator.machine.arrays import Array


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A description of what an instruction computes.

    Attributes:
        compute: a function of an array for each source. The array has an element for each thread,
            or has no axes if all threads have the same value. It returns the array of the result,
            or a tuple of several. The caller turns numpy's warnings off.
        sources: the PTX types of the sources. Arrays of u and b types are unsigned, of s types
            signed, of f16, f32 and f64 floats, of pred bool. Those of bf16, tf32 and packed types
            are unsigned integers of their width. "%cc" is the carry flag, a bool that is not an
            operand: all instructions with a carry share it.
        results: the PTX types of the results, likewise.
        undefined: a function of the values of all sources, and then of their undefined bits, which
            nothing wrote. These are unsigned integers or bool. It returns the undefined bits of the
            result, or a tuple for several. None: if any bit of a source is undefined, all bits of
            all results are.
    """

    compute: Callable[..., Array | tuple[Array, ...]]
    sources: tuple[str, ...]
    results: tuple[str, ...]
    undefined: Callable[..., Array | tuple[Array, ...]] | None = None
