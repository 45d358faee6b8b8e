"""Products of matrices that lie spread over the lanes of a wave, as RDNA3 has them (WMMA).

    v_wmma_f32_16x16x16_f16 v[16:23], v[0:7], v[8:15], v[16:23]        D = A . B + C

All matrices are [16, 16]. Lane l holds row l % 16 of A and column l % 16 of B, whole: each of them
stands in a wave of 32 lanes twice, of 64 four times, and what differs counts as undefined. Of C and
D, lane l holds the column l % 16; its register r the row (lanes / 16) * r + l // 16. Sums of 16
bits stand in the low halves of registers, or with op_sel in the high ones; the other halves stay.
All lanes take part, whatever EXEC says. Floats are summed up in f64, which may round, and rounded
to the type of D at the end; a real GPU may do otherwise. `neg_lo` tells of integer factors which
have a sign; sums of integers wrap, or stop at the ends of their type under `clamp`.
Layouts: AMD's "RDNA3 Instruction Set Architecture", section on wave matrix multiply accumulate; the
Matrix Instruction Calculator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.instructions.memory.atomics import rounded_to_bf16
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import FIRST_VECTOR, File, Rows
from refcomp.emulator.machine.sources import constant, vector_index
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.errors import Unsupported

SIDE = 16
WAVE_MATRIX = (
    *("v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16", "v_wmma_f16_16x16x16_f16"),
    *(
        "v_wmma_bf16_16x16x16_bf16",
        "v_wmma_i32_16x16x16_iu8",
        "v_wmma_i32_16x16x16_iu4",
    ),
)
_NAME = re.compile(r"v_wmma_(f32|f16|bf16|i32)_16x16x16_(f16|bf16|iu8|iu4)$")
_BITS = {"f16": 16, "bf16": 16, "iu8": 8, "iu4": 4}
_HIGH = np.uint32(0xFFFF0000)


@dataclass(frozen=True, slots=True)
class _Plan:
    """`signs` tells of A and B whether their integers have one, `negated` of A, B and C whether
    each is negated, `place` in which half of registers sums of 16 bits stand, `stops` whether
    sums of integers stop at the ends of their type."""

    sum: str
    element: str
    lanes: int
    signs: tuple[bool, ...]
    negated: tuple[bool, ...]
    place: int
    stops: bool

    @property
    def factor_words(self) -> int:
        return SIDE * _BITS[self.element] // 32

    @property
    def sums(self) -> int:
        """How many registers of a lane hold sums."""
        return SIDE * SIDE // self.lanes


def bind_wave_matrix(instruction: Instruction) -> Run:
    """The instruction, ready to run."""
    match = _NAME.match(instruction.mnemonic)
    stops = "clamp" in instruction.modifiers
    if match is None or (stops and match[1] != "i32"):
        raise Unsupported(
            "this product of matrices is not known", where=str(instruction)
        )
    low, high = (
        tuple(flags_of(instruction.modifiers, name, 3)) for name in ("neg_lo", "neg_hi")
    )
    is_float = match[1] != "i32"
    if is_float and (low[:2] != high[:2] or high[2]):
        raise Unsupported(
            "negating a part of a matrix is not known", where=str(instruction)
        )
    place = int(flags_of(instruction.modifiers, "op_sel", 3)[2])
    negated = low if is_float else (False, False, False)
    plan = _Plan(match[1], match[2], instruction.lanes, low[:2], negated, place, stops)
    result, *operands = instruction.operands
    return _runner(plan, vector_index(result), operands)


def _runner(plan: _Plan, index: int, operands: list[Operand]) -> Run:
    def run(waves: Waves) -> None:
        a, b = (
            _factor(plan, waves, operand, n) for n, operand in enumerate(operands[:2])
        )
        total = _total(
            plan, a, b.swapaxes(1, 2), _sums(plan, waves, operands[2], waves.values)
        )
        shadow = None if waves.shadow is None else _undefined(plan, waves, operands)
        _write(plan, waves, index, total, waves.values)
        if waves.shadow is not None:
            _write(plan, waves, index, shadow, waves.shadow)
            _mark(plan, waves, index)

    return run


def _words(file: File, operand: Operand, count: int, rows: Rows) -> Array:
    """[wave, lane, register]."""
    start = vector_index(operand)
    return np.stack([file.v[start + n, rows] for n in range(count)], axis=-1)


def _factor(plan: _Plan, waves: Waves, operand: Operand, number: int) -> Array:
    """[wave, row, depth]: a matrix, or the transpose of one."""
    words = _words(waves.values, operand, plan.factor_words, waves.rows)[:, :SIDE]
    found = _elements(
        np.ascontiguousarray(words), plan.element, is_signed=plan.signs[number]
    )
    return -found if plan.negated[number] else found


def _elements(words: Array, element: str, *, is_signed: bool) -> Array:
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


def _matrix(plan: _Plan, words: Array) -> Array:
    """[wave, lane, register] of sums -> [wave, row, column]."""
    parts = words.reshape(len(words), plan.lanes // SIDE, SIDE, plan.sums)
    return parts.transpose(0, 3, 1, 2).reshape(-1, SIDE, SIDE)


def _lanes(plan: _Plan, matrix: Array) -> Array:
    """[wave, row, column] -> [wave, lane, register]."""
    parts = matrix.reshape(len(matrix), plan.sums, plan.lanes // SIDE, SIDE)
    return parts.transpose(0, 2, 3, 1).reshape(-1, plan.lanes, plan.sums)


def _sums(plan: _Plan, waves: Waves, operand: Operand, file: File) -> Array:
    """[wave, row, column] of the bits of C, in the low half those of 16."""
    if operand.file == "c":
        kind = "f16" if plan.sum == "bf16" else plan.sum
        bits = np.asarray(constant(operand.text, kind)).view(
            np.uint16 if kind == "f16" else "u4"
        )
        return np.full((waves.count(), SIDE, SIDE), np.uint32(bits))
    words = _matrix(plan, _words(file, operand, plan.sums, waves.rows))
    return (
        words
        if plan.sum in ("f32", "i32")
        else words >> np.uint32(16 * plan.place) & 0xFFFF
    )


def _total(plan: _Plan, a: Array, b: Array, bits: Array) -> Array:
    """A . B + C as bits."""
    if plan.sum == "i32":
        exact = a @ b + bits.view(np.int32)
        return (
            np.clip(exact, -(1 << 31), (1 << 31) - 1) if plan.stops else exact
        ).astype(np.uint32)
    narrow = bits.astype(np.uint16).view(np.float16)
    sums = {"f32": bits.view(np.float32), "f16": narrow}.get(
        plan.sum, (bits << np.uint32(16)).view(np.float32)
    )
    total = a @ b + (-sums if plan.negated[2] else sums)
    if plan.sum == "f16":
        return total.astype(np.float16).view(np.uint16).astype(np.uint32)
    if plan.sum == "bf16":
        return rounded_to_bf16(total) >> np.uint32(16)
    return total.astype(np.float32).view(np.uint32)


def _write(plan: _Plan, waves: Waves, index: int, matrix: Array, file: File) -> None:
    words = _lanes(plan, matrix)
    for number in range(plan.sums):
        new = words[..., number]
        if plan.sum in ("f16", "bf16"):
            kept = ~_HIGH if plan.place else _HIGH
            old = file.v[index + number, waves.rows] & kept
            new = old | (new & np.uint32(0xFFFF)) << np.uint32(16 * plan.place)
        file.v[index + number, waves.rows] = new


# Definedness.


def _undefined(plan: _Plan, waves: Waves, operands: list[Operand]) -> Array:
    """All bits of an element whose row, column or old value has undefined bits."""
    a, b = (_undefined_rows(plan, waves, operand) for operand in operands[:2])
    total = a[:, :, None] | b[:, None, :]
    if operands[2].file != "c":
        total = total | (_sums(plan, waves, operands[2], waves.shadow) != 0)
    return np.where(total, np.uint32(0xFFFFFFFF), np.uint32(0))


def _undefined_rows(plan: _Plan, waves: Waves, operand: Operand) -> Array:
    """[wave, row]: whether bits are undefined, or not the same wherever the row stands."""
    files = (waves.values, waves.shadow)
    values, shadow = (_words(f, operand, plan.factor_words, waves.rows) for f in files)
    shape = waves.count(), plan.lanes // SIDE, SIDE, plan.factor_words
    values, shadow = values.reshape(shape), shadow.reshape(shape)
    differs = (values != values[:, :1]).any(axis=(1, 3))
    found: Array = differs | (shadow != 0).any(axis=(1, 3))
    return found


def _mark(plan: _Plan, waves: Waves, index: int) -> None:
    for number in range(index, index + plan.sums):
        if waves.shadow.v[number, waves.rows].any():
            waves.dirty.add(FIRST_VECTOR + number)
        elif isinstance(waves.rows, slice):
            waves.dirty.discard(FIRST_VECTOR + number)
