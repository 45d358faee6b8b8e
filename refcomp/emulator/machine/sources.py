"""The operands of an instruction as something to read: typed values, and their shadows.

A source is made once, when an instruction is decoded; reading it gives [wave, lane], or [wave, 1]
of a scalar register, or a number of a constant. Modifiers (negation, absolute value, a part of the
register) are applied while it is read.
Refuses, by Unsupported, what no such operand is known to mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.machine.arrays import MASKS, NUMPY, bits_of, registers_of
from refcomp.emulator.machine.registers import (
    FIRST_ACCUMULATOR,
    FIRST_VECTOR,
    SCALARS,
    SCC,
    File,
    Registers,
)
from refcomp.foundation.errors import Unsupported

# Where memory begins that an address of 64 bits names by its upper half, of 4 GiB each.
APERTURES = {"src_shared_base": 1 << 48, "src_private_base": 2 << 48}
_APERTURE_BYTES = 1 << 32
_SCC_NAMES = ("scc", "src_scc")
_UNSIGNED: dict[int, Any] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_FLOATS: dict[int, Any] = {16: np.float16, 32: np.float32, 64: np.float64}

Read = Callable[[File, Any], Any]


class BitField(NamedTuple):
    """Some bits of a register that follow each other."""

    # Number of the lowest bit.
    start: int
    # How many bits there are.
    width: int


HIGH_HALF = BitField(16, 16)
# What src0_sel, src1_sel and dst_sel name.
SDWA_SELECTIONS = {
    **{f"BYTE_{n}": BitField(8 * n, 8) for n in range(4)},
    **{f"WORD_{n}": BitField(16 * n, 16) for n in range(2)},
}


@dataclass(frozen=True, slots=True)
class OperandSource:
    """`numbers` are the registers that it reads, as `Registers.dirty` counts them."""

    numbers: frozenset[int]
    read: Read
    change: Callable[[Any], Any] | None
    shadow_kind: Any

    def value(self, waves: Registers) -> Any:
        """Its value in the waves that run."""
        found = self.read(waves.values, waves.rows)
        return found if self.change is None else self.change(found)

    def bits(self, waves: Registers) -> Any:
        """Its value as an unsigned integer."""
        found = np.asarray(self.value(waves))
        return found if found.dtype == np.bool_ else found.view(self.shadow_kind)

    def shadow(self, waves: Registers) -> Any:
        """Which of its bits are undefined, as an unsigned integer; of a mask a bool."""
        assert waves.shadow is not None
        if not self.numbers:
            return np.zeros((), self.shadow_kind)
        found = np.asarray(self.read(waves.shadow, waves.rows))
        return found if found.dtype == np.bool_ else found.view(self.shadow_kind)


def vector_index(operand: Operand) -> int:
    """The number of a vector register among all: accumulators come after the others."""
    return operand.index + (FIRST_ACCUMULATOR if operand.file == "a" else 0)


def numbers_of(operand: Operand, kind: str, first: int = 0) -> frozenset[int]:
    """The registers of an operand of a type, as `Registers.dirty` counts them."""
    if operand.text in _SCC_NAMES:
        return frozenset({SCC})
    if operand.file == "c":
        return frozenset()
    start = (
        operand.index if operand.file == "s" else FIRST_VECTOR + vector_index(operand)
    )
    start, count = start + first, registers_of(kind)
    if operand.file == "s" and start + count > SCALARS:
        raise Unsupported(f"no register follows {operand.text}")
    return frozenset(range(start, start + count))


def vector_source(
    operand: Operand, kind: str, modifiers: Mapping[str, str], position: int
) -> OperandSource:
    """Source number `position` of a vector instruction."""
    operand = _read_as(operand)
    part = HIGH_HALF if operand.is_high else _part(kind, modifiers, position)
    if part is None:
        read = _reader(operand, kind)
    else:
        read = _part_reader(operand, kind, part, is_signed=operand.sign_extended)
    change = _change(operand, kind)
    return OperandSource(numbers_of(operand, kind), read, change, _shadow_kind(kind))


def half_source(
    operand: Operand, kind: str, half: int, is_negative: bool
) -> OperandSource:
    """One half of a packed operand: 16 bits of a register, or the register of a pair."""
    operand = _read_as(operand)
    is_float = kind.startswith("f")
    change = np.negative if is_negative and is_float else None
    if bits_of(kind) == 32:
        read = (
            _shifted(operand, kind, half)
            if operand.file != "c"
            else _reader(operand, kind)
        )
        numbers = numbers_of(operand, kind, half)
    else:
        read = _part_reader(operand, kind, BitField(16 * half, 16), is_signed=False)
        numbers = numbers_of(operand, "u32")
    return OperandSource(numbers, read, change, _shadow_kind(kind))


def scalar_source(operand: Operand, kind: str) -> OperandSource:
    """A source of a scalar instruction: [wave]."""
    operand = _read_as(operand)
    read = _scalar_reader(operand, kind)
    return OperandSource(numbers_of(operand, kind), read, None, _shadow_kind(kind))


def _read_as(operand: Operand) -> Operand:
    """The register that reads as 0 is that constant."""
    return Operand("0", "c") if operand.text == "null" else operand


def _shadow_kind(kind: str) -> Any:
    return np.bool_ if kind in MASKS or kind == "scc" else _UNSIGNED[bits_of(kind)]


def _part(kind: str, modifiers: Mapping[str, str], position: int) -> BitField | None:
    """What is read of a register, where that is not the usual."""
    selected = modifiers.get(f"src{position}_sel", "DWORD")
    if selected != "DWORD":
        return SDWA_SELECTIONS[selected]
    is_high = flags_of(modifiers, "op_sel", position + 1)[position]
    return HIGH_HALF if is_high and bits_of(kind) == 16 else None


def _reader(operand: Operand, kind: str) -> Read:
    """[wave, lane] of a vector register, [wave, 1] of a scalar one, a number of a constant."""
    if operand.file in ("v", "a"):
        index = vector_index(operand)
        return lambda file, rows: file.vector(index, kind, rows)
    read = _scalar_reader(operand, kind)
    if (operand.file == "c" and operand.text not in _SCC_NAMES) or kind in MASKS:
        return read
    return lambda file, rows: read(file, rows)[:, None]


def _shifted(operand: Operand, kind: str, offset: int) -> Read:
    """The register `offset` further on."""
    if operand.file in ("v", "a"):
        index = vector_index(operand) + offset
        return lambda file, rows: file.vector(index, kind, rows)
    return lambda file, rows: file.scalar(operand.index + offset, kind, rows)[:, None]


def _part_reader(operand: Operand, kind: str, part: BitField, is_signed: bool) -> Read:
    whole, (start, width), numpy = _reader(operand, "u32"), part, NUMPY[kind]
    unsigned = _UNSIGNED[bits_of(kind)]
    left, right = np.uint32(32 - start - width), np.uint32(32 - width)
    if operand.file == "c" and kind == "f16":
        whole = _constant_reader(
            int(constant(operand.text, "f16").view(np.uint16)), np.uint32
        )

    def read(file: File, rows: Any) -> Any:
        moved = np.asarray(whole(file, rows)) << left
        found = (
            moved.view(np.int32) >> right.astype(np.int32)
            if is_signed
            else moved >> right
        )
        return found.astype(unsigned).view(numpy)

    return read


def _scalar_reader(operand: Operand, kind: str) -> Read:
    if operand.text in _SCC_NAMES:
        if kind == "scc":
            return lambda file, rows: file.scc[rows]
        unsigned, numpy = _UNSIGNED[bits_of(kind)], NUMPY[kind]
        return lambda file, rows: file.scc[rows].astype(unsigned).view(numpy)
    if operand.file == "s":
        return lambda file, rows: file.scalar(operand.index, kind, rows)
    if kind in MASKS:
        chosen = {"0": False, "-1": True}[operand.text]
        return lambda file, rows: np.bool_(chosen)
    return _constant_reader(constant(operand.text, kind), NUMPY[kind])


def _constant_reader(value: Any, numpy: Any) -> Read:
    found = numpy(value)
    return lambda file, rows: found


def constant(text: str, kind: str) -> Any:
    """What a constant of an instruction means to an operand of a type.

    An integer is the bits of one; a number with a point is a float as wide as the operand; a
    literal in hexadecimal is 32 bits, of an f64 the upper half; `lit64(0x...)` is all of it.
    """
    bits = bits_of(kind)
    unsigned = _UNSIGNED[bits]
    is_whole = text.startswith("lit64(")  # as newer LLVMs print them
    text = text[text.index("(") + 1 : -1] if text.startswith("lit") else text
    if text.startswith("src_") and bits == 64:
        return np.array(_aperture(text), unsigned).view(NUMPY[kind])[()]
    try:
        if "." in text or ("e" in text and not text.startswith("0x")):
            value = _FLOATS[bits](_exact_inline(text))
            return value.view(unsigned).view(NUMPY[kind])
        number = int(text, 0)
    except ValueError:
        raise Unsupported(
            f"the operand {text!r} is not known to the emulator"
        ) from None
    if text.startswith("0x") and kind == "f64" and not is_whole:
        number <<= 32
    return np.array(number & ((1 << bits) - 1), unsigned).view(NUMPY[kind])[()]


def _aperture(text: str) -> int:
    """Where an aperture begins, or its last byte."""
    name = text.replace("_limit", "_base")
    if name not in APERTURES:
        raise Unsupported(f"the operand {text!r} is not known to the emulator")
    return APERTURES[name] + (_APERTURE_BYTES - 1 if text.endswith("_limit") else 0)


def _exact_inline(text: str) -> float:
    """1/(2 pi) is printed with a few digits."""
    value = float(text)
    return (
        value
        if abs(abs(value) - 0.15915494) > 1e-6
        else np.copysign(0.5 / np.pi, value)
    )


def _change(operand: Operand, kind: str) -> Callable[[Any], Any] | None:
    if not (operand.negative or operand.absolute):
        return None
    if not kind.startswith("f"):
        return _change_of_bits(operand, bits_of(kind))
    if operand.negative and operand.absolute:
        return lambda value: np.negative(np.abs(value))
    return np.abs if operand.absolute else np.negative


def _change_of_bits(operand: Operand, bits: int) -> Callable[[Any], Any]:
    """Of an instruction that only moves bits, which may be those of a float."""
    sign = _UNSIGNED[bits](1 << (bits - 1))

    def change(value: Any) -> Any:
        cleared = value & ~sign if operand.absolute else value
        return cleared ^ sign if operand.negative else cleared

    return change
