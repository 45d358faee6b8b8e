"""Sums of the products of numbers that lie side by side in registers.

    v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0]
    v_dot4_i32_i8 v0, v1, v2, v3 clamp          v0 = v1 . v2 + v3
    v_dot4c_i32_i8_e32 v0, v1, v2               v0 = v1 . v2 + v0
    v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,0,0]        v1 has signs, v2 has none

Sums of two products may choose halves of the operands and negate them. Sums of integers wrap, or
saturate under `clamp`. Sums of floats are computed in f64 and rounded at the end. A GPU may round
at other places. `_flushed`, which no assembler knows, marks what gfx90a does: it flushes denormals
of operands and results.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.instructions.operation import operation
from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.instructions.vector.binding import bind_vector
from refcomp.emulator.instructions.vector.mixed import without
from refcomp.emulator.machine.arrays import NUMPY, Array
from refcomp.emulator.machine.sources import constant
from refcomp.emulator.machine.waves import Run

_NAME = re.compile(r"v_dot(2|4|8)(c?)_(f32|i32|u32)_(f|bf|i|u|iu)(\d+)(_flushed)?$")
_CHOICES = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")


def bind_dot(instruction: Instruction) -> Run | None:
    """Bind a sum of products; None for any other instruction."""
    match = _NAME.match(instruction.mnemonic)
    if match is None:
        return None
    count, accumulates, total, element, bits, is_flushed = match.groups()
    if int(count) * int(bits) > 32:
        return None
    has_halves = count == "2"
    halves = [_halves(instruction, n) for n in range(2)] if has_halves else []
    negated = flags_of(instruction.modifiers, "neg_lo", 3)
    sign = np.float32(-1 if negated[2] else 1)
    # For `iu` the flag says whether an operand has signs.
    kinds = [element] * 2
    if element == "iu":
        kinds = ["i" if is_signed else "u" for is_signed in negated[:2]]

    def exact(a: Array, b: Array, c: Array) -> Array:
        factors = [_parts(a, kinds[0], int(bits)), _parts(b, kinds[1], int(bits))]
        if is_flushed:
            factors = [[_flushed_f64(x, "f16") for x in parts] for parts in factors]
            c = _flushed_f64(c, "f32")
        if has_halves:
            factors = [_chosen(f, *h) for f, h in zip(factors, halves, strict=True)]
        products: Array = np.zeros((), np.int64)  # so that products of -0 add up to +0
        for x, y in zip(*factors, strict=True):
            products = products + x * y
        return products + np.asarray(c) * sign if total == "f32" else products + c

    def rounded(a: Array, b: Array, c: Array) -> Array:
        wide = np.asarray(c).astype(np.float64 if total == "f32" else np.int64)
        result = np.asarray(exact(a, b, wide)).astype(NUMPY[total])
        return flushed(result) if is_flushed else result

    summand = "; result" if accumulates else f" {total}"
    signature = f"{total} = u32 u32{summand}"
    row = operation(signature, rounded, wide=exact, is_approximate=total == "f32")
    plain = _with_constants(without(instruction, *_CHOICES), element)
    return bind_vector(plain, row)


def _flushed_f64(value: Array, kind: str) -> Array:
    """Return numbers of type `kind` in f64, with denormals of that type made 0."""
    narrow = np.asarray(value).astype(NUMPY[kind])
    return flushed(narrow).astype(np.float64)


def _parts(value: Array, element: str, bits: int) -> list[Array]:
    """Return the numbers in a register, the lowest first, in f64 or int64."""
    word = np.asarray(value).astype(np.uint32)
    if element == "bf":
        # A bf16 is the upper half of an f32.
        upper = [word << np.uint32(16), word & np.uint32(0xFFFF0000)]
        floats = [np.ascontiguousarray(x).view(np.float32) for x in upper]
        return [number.astype(np.float64) for number in floats]
    if element == "f":
        halves = [(word >> np.uint32(16 * n)).astype(np.uint16) for n in range(2)]
        return [half.view(np.float16).astype(np.float64) for half in halves]
    kind = NUMPY[f"{element}32"]
    unused = 32 - bits
    parts = []
    for start in range(0, 32, bits):
        # To the top of the register and down again, which extends the sign of `i`.
        top = (word << np.uint32(unused - start)).view(kind)
        parts.append((top >> kind(unused)).astype(np.int64))
    return parts


class _FactorHalf(NamedTuple):
    """The half of a register that a product takes as a factor.

    A tuple, since each sum reads four.
    """

    is_high: bool
    is_negative: bool


def _halves(instruction: Instruction, position: int) -> tuple[_FactorHalf, _FactorHalf]:
    """Return the factors that one operand gives to the lower and the upper product."""

    def flag(name: str) -> bool:
        return flags_of(instruction.modifiers, name, 3)[position]

    # By default the lower product takes the lower halves, and the upper one the upper halves.
    high = "op_sel_hi" not in instruction.modifiers or flag("op_sel_hi")
    lower = _FactorHalf(flag("op_sel"), flag("neg_lo"))
    return lower, _FactorHalf(high, flag("neg_hi"))


def _chosen(parts: list[Array], *halves: _FactorHalf) -> list[Array]:
    chosen = []
    for half in halves:
        part = parts[half.is_high]
        chosen.append(-part if half.is_negative else part)
    return chosen


def _with_constants(instruction: Instruction, element: str) -> Instruction:
    """Return the instruction with the constants of 16-bit floats as their bits."""
    if element not in ("f", "bf"):
        return instruction
    result, *factors = instruction.operands
    factors[:2] = [_as_bits(operand, element) for operand in factors[:2]]
    return replace(instruction, operands=(result, *factors))


def _as_bits(operand: Operand, element: str) -> Operand:
    if operand.file != "c" or operand.text.startswith("0x"):
        return operand
    if element == "bf":
        bits = int(constant(operand.text, "f32").view(np.uint32)) >> 16
    else:
        bits = int(constant(operand.text, "f16").view(np.uint16))
    return replace(operand, text=str(bits))
