"""Products of matrices that are spread over the lanes of a wave (MFMA).

    v_mfma_f32_16x16x4_f32 a[0:3], v0, v1, a[0:3]        D = A . B + C

`layouts` says where elements lie. All lanes take part, whatever EXEC holds. f32 and f64 add one
product after the other, rounding each time. Products of narrower floats are summed in f64, which
may round, and rounded to f32 at the end; a real GPU may round elsewhere. Refuses, by Unsupported,
products of sparse matrices.
Modifiers: the CDNA3 ISA manual, section on matrix arithmetic; AMD's Matrix Instruction Calculator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.exact import fma_f32, fma_f64
from refcomp.emulator.instructions.matrix.layouts import (
    Product,
    broadcast_blocks,
    moved_lanes,
    product_of,
)
from refcomp.emulator.instructions.small_floats import from_bytes, to_xf32
from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import NUMPY, Array, Mask, Words
from refcomp.emulator.machine.registers import FIRST_VECTOR, File, Rows
from refcomp.emulator.machine.sources import constant, vector_index
from refcomp.emulator.machine.waves import Run, Waves

_READ: dict[str, Callable[[Array], Array]] = {
    "f32": lambda words: words.view(np.float32),
    "f64": lambda words: words.view(np.float64),
    "f16": lambda words: words.view(np.float16),
    "i8": lambda words: words.view(np.int8),
    "bf16": lambda words: (
        words.view(np.uint16).astype(np.uint32) << np.uint32(16)
    ).view("f4"),
    "xf32": lambda words: to_xf32(words.view(np.float32)),
    "fp8": lambda words: from_bytes(words.view(np.uint8), "fp8"),
    "bf8": lambda words: from_bytes(words.view(np.uint8), "bf8"),
}
_MODIFIERS = {"cbsz", "abid", "blgp", "neg"}


@dataclass(frozen=True, slots=True)
class Factor:
    """A matrix that is a factor of a product, and how it is read."""

    index: int  # its first vector register
    element: str  # type of its elements
    lanes: Array | None  # the lane that each lane reads; None: itself
    blocks: Array | None  # the block that each block reads; None: itself
    is_negative: bool


def bind_matrix(instruction: Instruction, *, has_denormals: bool = True) -> Run | None:
    """Bind a product of matrices; None for any other instruction."""
    product = product_of(instruction.mnemonic, has_denormals=has_denormals)
    if product is None:
        return None
    modifiers = instruction.modifiers
    if unknown := sorted(set(modifiers) - _MODIFIERS):
        names = ", ".join(unknown)
        raise not_emulated(f"{names} of a matrix product", instruction)
    result, a, b, c = instruction.operands
    negated = flags_of(modifiers, "neg", 3)
    size = int(modifiers.get("cbsz", "0"))
    blocks = None
    if size:
        blocks = broadcast_blocks(product.blocks, size, int(modifiers.get("abid", "0")))
        if blocks.max() >= product.blocks:
            raise not_emulated(
                "a broadcast (cbsz, abid) of a block that does not exist", instruction
            )
    pattern = int(modifiers.get("blgp", "0"))
    lanes = moved_lanes(pattern) if pattern else None
    permutations = _permutations(product)
    bound = _BoundProduct(
        product,
        a=Factor(vector_index(a), product.elements.a, None, blocks, negated[0]),
        b=Factor(vector_index(b), product.elements.b, lanes, None, negated[1]),
        c=c,
        is_negative=negated[2],
        index=vector_index(result),
        to_lanes=permutations.to_lanes,
        from_lanes=permutations.from_lanes,
    )
    return bound.run


class _Permutations(NamedTuple):
    """Permutations of the sums, see `_BoundProduct`."""

    to_lanes: Array
    from_lanes: Array


@cache
def _permutations(product: Product) -> _Permutations:
    places = product.sum_places()
    to_lanes = (places.lane * product.sums + places.number).reshape(-1)
    return _Permutations(to_lanes, np.argsort(to_lanes))


@dataclass(frozen=True, slots=True)
class _BoundProduct:
    """A product that is bound to its operands."""

    product: Product
    a: Factor
    b: Factor
    c: Operand
    is_negative: bool  # whether C is negated
    index: int  # the first vector register of D
    # Permutations of the sums: as the product has them, [block, row, column], and as the lanes hold
    # them, [lane, sum]. Both are flat.
    to_lanes: Array  # of each sum of the product, its place in the lanes
    from_lanes: Array  # of each place in the lanes, its sum of the product

    def run(self, waves: Waves) -> None:
        a = self._read(waves.values, self.a, waves.rows)
        b = self._read(waves.values, self.b, waves.rows)
        c = self._sums(waves, waves.values)
        total = _multiply(self.product, a, b, np.negative(c) if self.is_negative else c)
        if waves.shadow is None:
            self._write(waves.values, waves.rows, total)
            return
        # Shadows are read before D is written, which may be A, B or C, too.
        shadow = self._undefined(waves, waves.shadow)
        self._write(waves.values, waves.rows, total)
        self._write(waves.shadow, waves.rows, shadow)
        count = self.product.sums * self.product.sum_words
        numbers = range(FIRST_VECTOR + self.index, FIRST_VECTOR + self.index + count)
        if shadow.any():
            waves.dirty.update(numbers)
        elif isinstance(waves.rows, slice):
            waves.dirty.difference_update(numbers)

    def _read(self, file: File, factor: Factor, rows: Rows) -> Array:
        """Return A, or the transpose of B: [wave, block, row, depth]."""
        product = self.product
        words = read_words(file, factor.index, product.factor_words, rows)
        if factor.lanes is not None:
            words = np.ascontiguousarray(words[:, factor.lanes])
        matrix = product.factor_lanes(_READ[factor.element](words))
        matrix = matrix if product.has_denormals else flushed(matrix)
        if factor.blocks is not None:
            matrix = matrix[:, factor.blocks]
        return np.negative(matrix) if factor.is_negative else matrix

    def _sums(self, waves: Waves, file: File) -> Array:
        """Return C: [wave, block, row, column]."""
        product = self.product
        shape = waves.count(), product.blocks, product.rows, product.rows
        dtype = NUMPY[product.sum]
        if self.c.file == "c":
            return np.full(shape, constant(self.c.text, product.sum), dtype)
        count = product.sums * product.sum_words
        words = read_words(file, vector_index(self.c), count, waves.rows)
        flat: Array = words.view(dtype).reshape(waves.count(), -1)
        return flat.take(self.to_lanes, axis=1).reshape(shape)

    def _undefined(self, waves: Waves, shadow: File) -> Array:
        """Return all bits of the elements whose row, column or old value has undefined bits."""
        a = self._undefined_rows(shadow, self.a, waves.rows)
        b = self._undefined_rows(shadow, self.b, waves.rows)
        total = a[..., :, None] | b[..., None, :]
        width = 4 * self.product.sum_words
        if self.c.file != "c":
            total = total | (self._sums(waves, shadow).view(f"u{width}") != 0)
        ones = np.array(-1, f"i{width}")
        return np.where(total, ones, 0).astype(ones.dtype)

    def _undefined_rows(self, shadow: File, factor: Factor, rows: Rows) -> Mask:
        """Return which rows, [wave, block, row], have undefined bits."""
        words = read_words(shadow, factor.index, self.product.factor_words, rows)
        if factor.lanes is not None:
            words = words[:, factor.lanes]
        is_undefined = np.logical_or.reduce(words, axis=-1, keepdims=True)
        lanes = np.repeat(is_undefined, self.product.each, axis=-1)
        found: Mask = np.logical_or.reduce(self.product.factor_lanes(lanes), axis=-1)
        return found if factor.blocks is None else found[:, factor.blocks]

    def _write(self, file: File, rows: Rows, matrix: Array) -> None:
        """Write [wave, block, row, column] to the registers of D."""
        waves = len(matrix)
        sums = np.ascontiguousarray(matrix).reshape(waves, -1)
        flat = sums.take(self.from_lanes, axis=1)
        count = self.product.sums * self.product.sum_words
        words = flat.view(np.uint32).reshape(waves, -1, count)
        for number in range(count):
            file.v[self.index + number, rows] = words[:, :, number]


def read_words(file: File, index: int, count: int, rows: Rows) -> Words:
    """Return `count` vector registers: [wave, lane, register]."""
    return np.stack([file.v[index + n, rows] for n in range(count)], axis=-1)


def _multiply(product: Product, a: Array, b: Array, sums: Array) -> Array:
    """Return A . B + C, where `b` is the transpose of B."""
    if product.sum in product.elements:
        fma = fma_f32 if product.sum == "f32" else fma_f64
        for k in range(product.depth):
            sums = fma(a[..., :, None, k], b[..., None, :, k], sums)
        return sums
    b = b.swapaxes(-1, -2)
    if product.sum == "i32":
        # Sums of so few products of bytes are exact in f32, which numpy multiplies faster.
        return sums + (a.astype(np.float32) @ b.astype(np.float32)).astype(np.int32)
    if not product.has_denormals:
        sums = flushed(sums)
    total = (a.astype(np.float64) @ b.astype(np.float64) + sums).astype(np.float32)
    return total if product.has_denormals else flushed(total)
