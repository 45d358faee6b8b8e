"""The source operands of instructions: typed values, and their shadows.

A source is made once, when an instruction is bound. Reading it gives [wave, lane] of a vector
register, [wave, 1] of a scalar one, and a numpy scalar of a constant. Modifiers (negation, absolute
value, a part of the register) are applied while it is read.
Refuses, by Unsupported, operands whose meaning is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from refcomp.emulator.code.assembly import Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.machine.arrays import (
    DTYPES,
    MASKS,
    NUMPY,
    UNSIGNED,
    Array,
    bits_of,
    registers_of,
)
from refcomp.emulator.machine.registers import (
    FIRST_ACCUMULATOR,
    FIRST_VECTOR,
    SCALARS,
    SCC,
    File,
    Registers,
    Rows,
)
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

# The first addresses of the apertures of flat addresses, 4 GiB each.
APERTURES = {"src_shared_base": 1 << 48, "src_private_base": 2 << 48}
_APERTURE_BYTES = 1 << 32
_SCC_NAMES = ("scc", "src_scc")
# Width in bits -> the float type.
_FLOATS: dict[int, Callable[[float], np.generic]] = {
    16: np.float16,
    32: np.float32,
    64: np.float64,
}

Read: TypeAlias = Callable[[File, Rows], Array]


class BitField(NamedTuple):
    """Consecutive bits of a register."""

    start: int  # number of the lowest bit
    width: int


HIGH_HALF = BitField(16, 16)
# The values of src0_sel, src1_sel and dst_sel, but DWORD.
SDWA_SELECTIONS = {
    **{f"BYTE_{n}": BitField(8 * n, 8) for n in range(4)},
    **{f"WORD_{n}": BitField(16 * n, 16) for n in range(2)},
}


@dataclass(frozen=True, slots=True)
class OperandSource:
    """A source operand that is bound to its registers or its constant."""

    numbers: frozenset[int]  # registers that it reads, as `Registers.dirty` counts them
    read: Read
    change: Callable[[Array], Array] | None  # negation, absolute value; None: neither
    shadow_type: type[np.generic]  # of its shadow: bool of a mask, else unsigned

    def value(self, waves: Registers) -> Array:
        """Return its value in the running waves."""
        found = self.read(waves.values, waves.rows)
        return found if self.change is None else self.change(found)

    def bits(self, waves: Registers) -> Array:
        """Return its value as an unsigned integer."""
        found = np.asarray(self.value(waves))
        return found if found.dtype == np.bool_ else found.view(self.shadow_type)

    def shadow(self, waves: Registers) -> Array:
        """Return which of its bits are undefined, as an unsigned integer; of a mask as a bool."""
        assert waves.shadow is not None
        if not self.numbers:
            return np.zeros((), self.shadow_type)
        found = np.asarray(self.read(waves.shadow, waves.rows))
        return found if found.dtype == np.bool_ else found.view(self.shadow_type)


def vector_index(operand: Operand) -> int:
    """Return the number of a vector register among all; accumulators come after the others."""
    return operand.index + (FIRST_ACCUMULATOR if operand.file == "a" else 0)


def numbers_of(operand: Operand, kind: str, first: int = 0) -> frozenset[int]:
    """Return the registers of an operand of a type, as `Registers.dirty` counts them.

    They begin `first` registers after the operand's own.
    """
    if operand.text in _SCC_NAMES:
        return frozenset({SCC})
    if operand.file == "c":
        return frozenset()
    start = (
        operand.index if operand.file == "s" else FIRST_VECTOR + vector_index(operand)
    )
    start += first
    end = start + registers_of(kind)
    if operand.file == "s" and end > SCALARS:
        raise Unsupported(
            f"no register follows {operand.text}",
            why=f"its type {kind} takes {counted(registers_of(kind), 'register')}",
            remedy="the code object is damaged: compile it again",
        )
    return frozenset(range(start, end))


def vector_source(
    operand: Operand, kind: str, modifiers: Mapping[str, str], position: int
) -> OperandSource:
    """Return source number `position` of a vector instruction."""
    operand = _without_null(operand)
    part = HIGH_HALF if operand.is_high else _selected_part(kind, modifiers, position)
    if part is None:
        read = _reader(operand, kind)
    else:
        read = _part_reader(operand, kind, part, is_signed=operand.sign_extended)
    change = _change(operand, kind)
    return OperandSource(numbers_of(operand, kind), read, change, _shadow_type(kind))


def half_source(
    operand: Operand, kind: str, half: int, is_negative: bool
) -> OperandSource:
    """Return one half of a packed operand: 16 bits of a register, or one register of a pair."""
    operand = _without_null(operand)
    change = np.negative if is_negative and kind.startswith("f") else None
    if bits_of(kind) == 32:
        read = _reader(operand, kind, half)
        numbers = numbers_of(operand, kind, half)
    else:
        read = _part_reader(operand, kind, BitField(16 * half, 16), is_signed=False)
        numbers = numbers_of(operand, "u32")
    return OperandSource(numbers, read, change, _shadow_type(kind))


def scalar_source(operand: Operand, kind: str) -> OperandSource:
    """Return a source of a scalar instruction, whose values are [wave]."""
    operand = _without_null(operand)
    read = _scalar_reader(operand, kind)
    return OperandSource(numbers_of(operand, kind), read, None, _shadow_type(kind))


def _without_null(operand: Operand) -> Operand:
    """Return the constant 0 for the register `null`."""
    return Operand("0", "c") if operand.text == "null" else operand


def _shadow_type(kind: str) -> type[np.generic]:
    if kind in MASKS or kind == "scc":
        return np.bool_
    unsigned: type[np.generic] = UNSIGNED[bits_of(kind)]
    return unsigned


def _selected_part(
    kind: str, modifiers: Mapping[str, str], position: int
) -> BitField | None:
    """Return the part of the register that SDWA or op_sel selects; None: the usual one."""
    selected = modifiers.get(f"src{position}_sel", "DWORD")
    if selected != "DWORD":
        return SDWA_SELECTIONS[selected]
    is_high = flags_of(modifiers, "op_sel", position + 1)[position]
    return HIGH_HALF if is_high and bits_of(kind) == 16 else None


def _reader(operand: Operand, kind: str, offset: int = 0) -> Read:
    """Return what reads the register `offset` after the operand's, or the constant."""
    if operand.file in ("v", "a"):
        index = vector_index(operand) + offset
        return lambda file, rows: file.vector(index, kind, rows)
    read = _scalar_reader(operand, kind, offset)
    if (operand.file == "c" and operand.text not in _SCC_NAMES) or kind in MASKS:
        return read
    return lambda file, rows: read(file, rows)[:, None]


def _part_reader(operand: Operand, kind: str, part: BitField, is_signed: bool) -> Read:
    whole = _reader(operand, "u32")
    if operand.file == "c" and kind == "f16":
        whole = _constant_reader(
            np.uint32(constant(operand.text, "f16").view(np.uint16))
        )
    dtype = DTYPES[kind]
    unsigned = UNSIGNED[bits_of(kind)]
    left = np.uint32(32 - part.start - part.width)
    right = np.uint32(32 - part.width)
    signed_right = right.astype(np.int32)

    def read(file: File, rows: Rows) -> Array:
        moved = np.asarray(whole(file, rows)) << left
        found: Array = (
            moved.view(np.int32) >> signed_right if is_signed else moved >> right
        )
        return found.astype(unsigned).view(dtype)

    return read


def _scalar_reader(operand: Operand, kind: str, offset: int = 0) -> Read:
    if operand.text in _SCC_NAMES:
        if kind == "scc":
            return lambda file, rows: file.scc[rows]
        unsigned = UNSIGNED[bits_of(kind)]
        dtype = NUMPY[kind]
        return lambda file, rows: file.scc[rows].astype(unsigned).view(dtype)
    if operand.file == "s":
        index = operand.index + offset
        return lambda file, rows: file.scalar(index, kind, rows)
    if kind in MASKS:
        return _constant_reader(np.bool_({"0": False, "-1": True}[operand.text]))
    return _constant_reader(constant(operand.text, kind))


def _constant_reader(value: Any) -> Read:
    return lambda file, rows: value


def constant(text: str, kind: str) -> Any:
    """Return the numpy scalar of type `kind` that a constant of an instruction means.

    An integer is the bits of the operand. A number with a point is a float as wide as the operand.
    A hexadecimal literal is 32 bits, of an f64 the upper half; `lit64(0x...)` is all of it.
    """
    bits = bits_of(kind)
    unsigned = UNSIGNED[bits]
    is_whole = text.startswith("lit64(")  # as newer LLVMs print them
    if text.startswith("lit"):
        text = text[text.index("(") + 1 : -1]
    if text.startswith("src_") and bits == 64:
        return np.array(_aperture(text), unsigned).view(NUMPY[kind])[()]
    try:
        if "." in text or ("e" in text and not text.startswith("0x")):
            value = _FLOATS[bits](_exact_inline(text))
            return value.view(unsigned).view(NUMPY[kind])
        number = int(text, 0)
    except ValueError:
        raise _unknown_operand(text) from None
    if text.startswith("0x") and kind == "f64" and not is_whole:
        number <<= 32
    return np.array(number & ((1 << bits) - 1), unsigned).view(NUMPY[kind])[()]


def _aperture(text: str) -> int:
    """Return the first address of an aperture, or of `_limit` the last one."""
    name = text.replace("_limit", "_base")
    if name not in APERTURES:
        raise _unknown_operand(text)
    return APERTURES[name] + (_APERTURE_BYTES - 1 if text.endswith("_limit") else 0)


def _unknown_operand(text: str) -> Unsupported:
    return Unsupported(
        f"the emulator does not support the operand {text!r}",
        remedy="run the kernel on a GPU, or add the operand to refcomp/emulator",
    )


def _exact_inline(text: str) -> float:
    """Return the float; 1/(2 pi), which is printed with a few digits, exactly."""
    value = float(text)
    if abs(abs(value) - 0.15915494) > 1e-6:
        return value
    return math.copysign(0.5 / math.pi, value)


def _change(operand: Operand, kind: str) -> Callable[[Array], Array] | None:
    if not (operand.negative or operand.absolute):
        return None
    if not kind.startswith("f"):
        return _change_of_bits(operand, bits_of(kind))
    if operand.negative and operand.absolute:
        return lambda value: np.negative(np.abs(value))
    return np.abs if operand.absolute else np.negative


def _change_of_bits(operand: Operand, bits: int) -> Callable[[Array], Array]:
    """Return the change of an instruction that only moves bits, which may be those of a float."""
    sign = UNSIGNED[bits](1 << (bits - 1))

    def change(value: Array) -> Array:
        cleared = value & ~sign if operand.absolute else value
        return cleared ^ sign if operand.negative else cleared

    return change
