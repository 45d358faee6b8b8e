"""Products of matrices that are spread over the lanes of a wave, as RDNA3 has them (WMMA).

    v_wmma_f32_16x16x16_f16 v[16:23], v[0:7], v[8:15], v[16:23]        D = A . B + C

All matrices are [16, 16]. Lane l holds the whole row l % 16 of A and column l % 16 of B. So a wave
of 32 lanes holds each of them twice, one of 64 lanes four times; where the copies differ, they are
undefined. Of C and D, lane l holds column l % 16, and its register r the row
(lanes / 16) * r + l // 16. Sums of 16 bits are in the low halves of registers, or with op_sel in
the high ones; the other halves are kept.

All lanes take part, whatever EXEC holds. Products of floats are summed in f64, which may round. The
sum is rounded to the type of D at the end. A real GPU may round at other places. `neg_lo` selects
the integer factors that have a sign. Sums of integers wrap, or saturate under `clamp`. Layouts:
AMD's "RDNA3 Instruction Set Architecture", section on wave matrix multiply accumulate; the Matrix
Instruction Calculator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.matrix.products import read_words
from refcomp.emulator.instructions.memory.atomics import rounded_to_bf16
from refcomp.emulator.instructions.spreads import all_bits
from refcomp.emulator.machine.arrays import Array, Mask, Words
from refcomp.emulator.machine.registers import FIRST_VECTOR, File, Rows
from refcomp.emulator.machine.sources import constant, vector_index
from refcomp.emulator.machine.waves import Run, Waves

SIDE = 16  # rows and columns of all matrices
WAVE_MATRIX = (
    "v_wmma_f32_16x16x16_f16",
    "v_wmma_f32_16x16x16_bf16",
    "v_wmma_f16_16x16x16_f16",
    "v_wmma_bf16_16x16x16_bf16",
    "v_wmma_i32_16x16x16_iu8",
    "v_wmma_i32_16x16x16_iu4",
)
_NAME = re.compile(r"v_wmma_(f32|f16|bf16|i32)_16x16x16_(f16|bf16|iu8|iu4)$")
_BITS = {"f16": 16, "bf16": 16, "iu8": 8, "iu4": 4}
_LOW = np.uint32(0xFFFF)


def bind_wave_matrix(instruction: Instruction) -> Run:
    """Bind a product of matrices. Raise Unsupported for operands that are not known."""
    match = _NAME.match(instruction.mnemonic)
    saturates = "clamp" in instruction.modifiers
    if match is None or (saturates and match[1] != "i32"):
        raise not_emulated("this product of matrices", instruction)
    is_float = match[1] != "i32"
    low = flags_of(instruction.modifiers, "neg_lo", 3)
    high = flags_of(instruction.modifiers, "neg_hi", 3)
    if is_float and (low[:2] != high[:2] or high[2]):
        raise not_emulated("negating a part of a matrix", instruction)
    result, a, b, c = instruction.operands
    bound = _WaveProduct(
        sum=match[1],
        element=match[2],
        lanes=instruction.lanes,
        index=vector_index(result),
        a=_Factor(a, is_signed=low[0], is_negative=is_float and low[0]),
        b=_Factor(b, is_signed=low[1], is_negative=is_float and low[1]),
        c=c,
        is_negative=is_float and low[2],
        shift=np.uint32(16 if flags_of(instruction.modifiers, "op_sel", 3)[2] else 0),
        saturates=saturates,
    )
    return bound.run


@dataclass(frozen=True, slots=True)
class _Factor:
    """A matrix that is a factor."""

    operand: Operand
    is_signed: bool  # of integers
    is_negative: bool


@dataclass(frozen=True, slots=True)
class _WaveProduct:
    """A product that is bound to its operands."""

    sum: str  # type of the sums
    element: str  # type of the elements of the factors
    lanes: int
    index: int  # the first vector register of D
    a: _Factor
    b: _Factor
    c: Operand
    is_negative: bool  # whether C is negated
    shift: np.uint32  # the lowest bit of a sum of 16 bits in its register
    saturates: bool

    @property
    def _factor_words(self) -> int:
        """Number of registers of a factor that a lane holds."""
        return SIDE * _BITS[self.element] // 32

    @property
    def _sum_words(self) -> int:
        """Number of registers of sums that a lane holds."""
        return SIDE * SIDE // self.lanes

    def run(self, waves: Waves) -> None:
        a = self._read(waves, self.a)
        b = self._read(waves, self.b)
        total = self._total(a, b.swapaxes(1, 2), self._sums(waves, waves.values))
        if waves.shadow is None:
            self._write(waves.values, waves.rows, total)
            return
        # Shadows are read before D is written, which may be A, B or C, too.
        shadow = self._undefined(waves, waves.shadow)
        self._write(waves.values, waves.rows, total)
        self._write(waves.shadow, waves.rows, shadow)
        for number in range(self.index, self.index + self._sum_words):
            if waves.shadow.v[number, waves.rows].any():
                waves.dirty.add(FIRST_VECTOR + number)
            elif isinstance(waves.rows, slice):
                waves.dirty.discard(FIRST_VECTOR + number)

    def _read(self, waves: Waves, factor: _Factor) -> Array:
        """Return A, or the transpose of B, in f64 or int64: [wave, row, depth]."""
        index = vector_index(factor.operand)
        words = read_words(waves.values, index, self._factor_words, waves.rows)
        rows = np.ascontiguousarray(words[:, :SIDE])
        found = _elements(rows, self.element, is_signed=factor.is_signed)
        return -found if factor.is_negative else found

    def _sums(self, waves: Waves, file: File) -> Words:
        """Return the bits of C, those of 16-bit sums in the low half: [wave, row, column]."""
        if self.c.file == "c":
            kind = "f16" if self.sum == "bf16" else self.sum
            unsigned = np.uint16 if kind == "f16" else np.uint32
            bits = np.uint32(np.asarray(constant(self.c.text, kind)).view(unsigned))
            return np.full((waves.count(), SIDE, SIDE), bits)
        count = self._sum_words
        words = read_words(file, vector_index(self.c), count, waves.rows)
        parts = words.reshape(len(words), self.lanes // SIDE, SIDE, count)
        matrix = parts.transpose(0, 3, 1, 2).reshape(-1, SIDE, SIDE)
        return matrix if self.sum in ("f32", "i32") else matrix >> self.shift & _LOW

    def _total(self, a: Array, b: Array, bits: Words) -> Words:
        """Return the bits of A . B + C, where `bits` are those of C."""
        if self.sum == "i32":
            exact = a @ b + bits.view(np.int32)
            if self.saturates:
                exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
            return exact.astype(np.uint32)
        if self.sum == "f32":
            sums: Array = bits.view(np.float32)
        elif self.sum == "f16":
            sums = bits.astype(np.uint16).view(np.float16)
        else:
            sums = (bits << np.uint32(16)).view(np.float32)
        total = a @ b + (-sums if self.is_negative else sums)
        if self.sum == "f16":
            return total.astype(np.float16).view(np.uint16).astype(np.uint32)
        if self.sum == "bf16":
            return rounded_to_bf16(total) >> np.uint32(16)
        return total.astype(np.float32).view(np.uint32)

    def _write(self, file: File, rows: Rows, matrix: Words) -> None:
        """Write [wave, row, column] to the registers of D."""
        count = self._sum_words
        parts = matrix.reshape(len(matrix), count, self.lanes // SIDE, SIDE)
        words = parts.transpose(0, 2, 3, 1).reshape(-1, self.lanes, count)
        for number in range(count):
            values = words[..., number]
            if self.sum in ("f16", "bf16"):
                kept = file.v[self.index + number, rows] & ~(_LOW << self.shift)
                values = kept | (values & _LOW) << self.shift
            file.v[self.index + number, rows] = values

    def _undefined(self, waves: Waves, shadow: File) -> Words:
        """Return all bits of the elements whose row, column or old value has undefined bits."""
        a = self._undefined_rows(waves, shadow, self.a.operand)
        b = self._undefined_rows(waves, shadow, self.b.operand)
        total = a[:, :, None] | b[:, None, :]
        if self.c.file != "c":
            total = total | (self._sums(waves, shadow) != 0)
        return all_bits("u32", total)

    def _undefined_rows(self, waves: Waves, shadow: File, operand: Operand) -> Mask:
        """Return which rows, [wave, row], have undefined bits or copies that differ."""
        index = vector_index(operand)
        count = self._factor_words
        shape = waves.count(), self.lanes // SIDE, SIDE, count
        values = read_words(waves.values, index, count, waves.rows).reshape(shape)
        unknown = read_words(shadow, index, count, waves.rows).reshape(shape)
        differs: Mask = (values != values[:, :1]).any(axis=(1, 3))
        is_undefined: Mask = (unknown != 0).any(axis=(1, 3))
        return differs | is_undefined


def _elements(words: Words, element: str, *, is_signed: bool) -> Array:
    """Return the elements in registers, in f64 or int64."""
    if element == "f16":
        return words.view(np.float16).astype(np.float64)
    if element == "bf16":
        bits = words.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).astype(np.float64)
    octets = words.view(np.uint8)
    if element == "iu8":
        return octets.view(np.int8 if is_signed else np.uint8).astype(np.int64)
    nibbles = np.stack([octets & 15, octets >> 4], axis=-1).reshape(
        *octets.shape[:-1], SIDE
    )
    wide = nibbles.astype(np.int64)
    return np.where(wide > 7, wide - 16, wide) if is_signed else wide
