"""Products of matrices that lie spread over the lanes of a wave (MFMA).

    v_mfma_f32_16x16x4_f32 a[0:3], v0, v1, a[0:3]        D = A . B + C

A is [rows, depth], B [depth, rows], C and D [rows, rows], rows 16 or 32. Lane l holds of A the row
l % rows and of B that column; of their depth the part number l // rows. Of C and D it holds the
column l % rows, in register r the row 8 * (r // 4) + 4 * (l // 32) + r % 4 of 32 rows, and
4 * (l // 16) + r of 16. All lanes take part, whatever EXEC says.
f32 adds one product after the other, rounding each time; narrower products are summed up exactly
and rounded once, which a real GPU may do otherwise.
Layouts: the CDNA3 ISA manual, section on matrix arithmetic; AMD's Matrix Instruction Calculator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.emulator.arrays import LANES, NUMPY, Array
from refcomp.emulator.assembly import Instruction, Operand
from refcomp.emulator.exact import fma_f32
from refcomp.emulator.registers import FIRST_VECTOR
from refcomp.emulator.sources import constant, vector_index
from refcomp.errors import Unsupported

Run = Callable[[Any], None]

_NAME = re.compile(r"v_mfma_(f32|i32)_(16|32)x(?:16|32)x(\d+)_(f32|f16|bf16|i8)$")
_ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1}
_LANE = np.arange(LANES)


@dataclass(frozen=True, slots=True)
class Product:
    """`rows` of the matrices, `depth` of the product, the types of elements and of sums."""

    sum: str
    rows: int
    depth: int
    element: str

    @property
    def each(self) -> int:
        """How many elements of a factor a lane holds."""
        return self.rows * self.depth // LANES

    @property
    def sums(self) -> int:
        """How many registers of sums a lane holds."""
        return self.rows * self.rows // LANES

    @property
    def places(self) -> tuple[Array, Array]:
        """Row and column of what lies in each lane's registers: [lane, register]."""
        register, lane = np.arange(self.sums)[None, :], _LANE[:, None]
        row = 8 * (register // 4) + 4 * (lane // self.rows) + register % 4
        return row, np.broadcast_to(lane % self.rows, row.shape)


def product_of(mnemonic: str) -> Product | None:
    """What an instruction multiplies; None when it is no such product."""
    match = _NAME.match(mnemonic)
    if match is None:
        return None
    found = Product(match[1], int(match[2]), int(match[3]), match[4])
    # Other depths are several small products at a time.
    words = found.each * _ELEMENT_BYTES[found.element]
    return found if words in (4, 8) else None


def bind_matrix(instruction: Instruction) -> Run | None:
    """The instruction, ready to run; None when it is no such product."""
    product = product_of(instruction.mnemonic)
    if product is None:
        return None
    if instruction.modifiers:
        told = ", ".join(instruction.modifiers)
        raise Unsupported(f"{told} of a matrix product is not known", where=str(instruction))
    result, a, b, c = instruction.operands
    index = vector_index(result)

    def run(waves: Any) -> None:
        factors = [_factor(product, waves.values, operand, waves.rows) for operand in (a, b)]
        sums = _sums(product, waves.values, c, waves)
        shadow = None if waves.shadow is None else _undefined(product, waves, (a, b, c))
        total = _multiply(product, factors[0], factors[1], sums)
        _write(product, waves, index, total.view(np.uint32), waves.values)
        if waves.shadow is not None:
            _write(product, waves, index, shadow, waves.shadow)
            _mark(product, waves, index, shadow)

    return run


def _words(file: Any, operand: Operand, count: int, rows: Any) -> Array:
    """[wave, lane, register]."""
    start = vector_index(operand)
    return np.stack([file.v[start + n, rows] for n in range(count)], axis=-1)


def _factor(product: Product, file: Any, operand: Operand, rows: Any) -> Array:
    """[wave, row, depth]: a matrix, or the transpose of one."""
    count = product.each * _ELEMENT_BYTES[product.element] // 4
    elements = _elements(_words(file, operand, count, rows), product.element)
    parts = elements.reshape(-1, LANES // product.rows, product.rows, product.each)
    return parts.transpose(0, 2, 1, 3).reshape(-1, product.rows, product.depth)


def _elements(words: Array, element: str) -> Array:
    if element == "bf16":
        return (words.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return words.view({"f32": np.float32, "f16": np.float16, "i8": np.int8}[element])


def _sums(product: Product, file: Any, operand: Operand, waves: Any) -> Array:
    """[wave, row, row]."""
    shape = waves.count(), product.rows, product.rows
    if operand.file == "c":
        return np.full(shape, constant(operand.text, product.sum), NUMPY[product.sum])
    matrix = np.empty(shape, np.uint32)
    row, column = product.places
    matrix[:, row, column] = _words(file, operand, product.sums, waves.rows)
    return matrix.view(NUMPY[product.sum])


def _multiply(product: Product, a: Array, b: Array, sums: Array) -> Array:
    if product.element == "f32":
        for k in range(product.depth):
            sums = fma_f32(a[:, :, None, k], b[:, None, :, k], sums)
        return sums
    if product.element == "i8":
        wide = a.astype(np.int32) @ b.astype(np.int32).transpose(0, 2, 1)
        return sums + wide
    total = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    return (total + sums).astype(np.float32)


def _undefined(product: Product, waves: Any, operands: tuple[Operand, ...]) -> Array:
    """All bits of an element whose row, column or old value has undefined bits."""
    shadow = waves.shadow
    a, b = (_undefined_rows(product, shadow, operand, waves.rows) for operand in operands[:2])
    total = a[:, :, None] | b[:, None, :]
    if operands[2].file != "c":
        total = total | (_sums(product, shadow, operands[2], waves).view(np.uint32) != 0)
    return np.where(total, np.uint32(0xFFFFFFFF), np.uint32(0))


def _undefined_rows(product: Product, shadow: Any, operand: Operand, rows: Any) -> Array:
    count = product.each * _ELEMENT_BYTES[product.element] // 4
    lanes = _words(shadow, operand, count, rows).any(axis=-1)
    return lanes.reshape(-1, LANES // product.rows, product.rows).any(axis=1)


def _write(product: Product, waves: Any, index: int, matrix: Array, file: Any) -> None:
    row, column = product.places
    spread = matrix[:, row, column]
    for number in range(product.sums):
        file.v[index + number, waves.rows] = spread[:, :, number]


def _mark(product: Product, waves: Any, index: int, shadow: Array) -> None:
    numbers = range(FIRST_VECTOR + index, FIRST_VECTOR + index + product.sums)
    if shadow.any():
        waves.dirty.update(numbers)
    elif isinstance(waves.rows, slice):
        waves.dirty.difference_update(numbers)
