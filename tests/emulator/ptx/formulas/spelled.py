"""An instruction's name as formulas read it, and numbers in bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from refcomp.emulator.ptx.instructions.types import bits_of, is_type


@dataclass(frozen=True)
class Spelled:
    """`cvt.rzi.ftz.s32.f32`: an opcode, its types and its other modifiers."""

    opcode: str
    types: tuple[str, ...]
    words: frozenset[str]

    @property
    def type(self) -> str:
        return self.types[-1] if self.types else ""

    def word(self, *choices: str) -> str:
        """The one of the choices that is there; "" if none is."""
        return next((one for one in choices if one in self.words), "")


def spelled(name: str) -> Spelled:
    opcode, *modifiers = name.split(".")
    types = tuple(filter(is_type, modifiers))
    return Spelled(opcode, types, frozenset(m for m in modifiers if not is_type(m)))


# Takes the bits of the sources, returns what each result must be: bits, or an `Expectation`.
Formula = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Within:
    """An f32, f16, bf16 or f64 that lies in an interval."""

    low: float
    high: float


ANY = "any"  # the ISA leaves the result open
ANY_NAN = "any NaN"


def mask(kind: str) -> int:
    return (1 << bits_of(kind)) - 1


def number(bits: int, kind: str) -> int:
    """The integer that the bits are."""
    width = bits_of(kind)
    bits &= mask(kind)
    return bits - (bits >> (width - 1) << width) if kind[0] == "s" else bits


def least(kind: str) -> int:
    return -(1 << (bits_of(kind) - 1)) if kind[0] == "s" else 0


def greatest(kind: str) -> int:
    return mask(kind) >> (kind[0] == "s")


def clamp(value: int, kind: str) -> int:
    return min(max(value, least(kind)), greatest(kind))


def by_halves(formula: Callable[..., int | str]) -> Callable[..., Any]:
    """A formula of 16 bits on both halves of its sources."""

    def both(*words: int) -> int:
        low = formula(*(word & 0xFFFF for word in words))
        high = formula(*(word >> 16 for word in words))
        assert isinstance(low, int) and isinstance(high, int)
        return low | high << 16

    return both
