"""Products of matrices that lie spread over the lanes of a wave (MFMA).

    v_mfma_f32_16x16x4_f32 a[0:3], v0, v1, a[0:3]        D = A . B + C

`matrix_layouts` says where elements lie. All lanes take part, whatever EXEC says. f32 and f64 add
one product after the other, rounding each time; narrower floats are summed up in f64, which may
round, and rounded to f32 at the end, which a real GPU may do otherwise. Refuses, by Unsupported,
products of sparse matrices.
Modifiers: the CDNA3 ISA manual, section on matrix arithmetic; AMD's Matrix Instruction Calculator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.code.modifiers import flags_of
from refcomp.emulator.instructions.exact import fma_f32, fma_f64
from refcomp.emulator.instructions.matrix.layouts import (
    Product,
    broadcast_blocks,
    moved_lanes,
    product_of,
)
from refcomp.emulator.instructions.small_floats import from_bytes, to_xf32
from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import NUMPY, Array
from refcomp.emulator.machine.registers import FIRST_VECTOR, File, Rows
from refcomp.emulator.machine.sources import constant, vector_index
from refcomp.emulator.machine.waves import Run, Waves
from refcomp.foundation.errors import Unsupported

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
    """Where a matrix comes from: its first register, the lanes and then the blocks that are read
    instead of the own ones (None: the own), and whether its elements are negated."""

    index: int
    element: str
    lanes: Array | None
    blocks: Array | None
    is_negative: bool


def bind_matrix(instruction: Instruction, *, has_denormals: bool = True) -> Run | None:
    """The instruction, ready to run; None when it is no such product."""
    product = product_of(instruction.mnemonic, has_denormals=has_denormals)
    if product is None:
        return None
    if unknown := sorted(set(instruction.modifiers) - _MODIFIERS):
        told = ", ".join(unknown)
        raise Unsupported(
            f"{told} of a matrix product is not known", where=str(instruction)
        )
    factors = _factors(product, instruction)
    c, is_negative = (
        instruction.operands[3],
        flags_of(instruction.modifiers, "neg", 3)[2],
    )
    index = vector_index(instruction.operands[0])
    order = _order(product)

    def run(waves: Waves) -> None:
        a, b = (_read(product, waves.values, factor, waves.rows) for factor in factors)
        sums = _sums(product, waves.values, c, waves, order)
        total = _multiply(product, a, b, np.negative(sums) if is_negative else sums)
        shadow = (
            None
            if waves.shadow is None
            else _undefined(product, waves, factors, c, order)
        )
        _write(product, waves, index, total, waves.values, order)
        if waves.shadow is not None:
            _write(product, waves, index, shadow, waves.shadow, order)
            _mark(product, waves, index, shadow)

    return run


def _factors(product: Product, instruction: Instruction) -> tuple[Factor, Factor]:
    _, a, b, _ = instruction.operands
    modifiers = instruction.modifiers
    negated = flags_of(modifiers, "neg", 3)
    size, chosen, pattern = (
        int(modifiers.get(name, "0")) for name in ("cbsz", "abid", "blgp")
    )
    blocks = broadcast_blocks(product.blocks, size, chosen) if size else None
    if blocks is not None and blocks.max() >= product.blocks:
        raise Unsupported("this cbsz and abid name no block", where=str(instruction))
    lanes = moved_lanes(pattern) if pattern else None
    return (
        Factor(vector_index(a), product.elements.a, None, blocks, negated[0]),
        Factor(vector_index(b), product.elements.b, lanes, None, negated[1]),
    )


class _SumOrder(NamedTuple):
    """Permutations between the sums of a product, [block, row, column], and as lanes hold them,
    [lane, sum]: both flat."""

    # Of each sum of the product, its place in the lanes.
    to_lanes: Array
    # Of each place in the lanes, its sum of the product.
    from_lanes: Array


def _order(product: Product) -> _SumOrder:
    places = product.sum_places()
    to_lanes = (places.lane * product.sums + places.number).reshape(-1)
    return _SumOrder(to_lanes, np.argsort(to_lanes))


def _words(file: File, index: int, count: int, rows: Rows) -> Array:
    """[wave, lane, register]."""
    return np.stack([file.v[index + n, rows] for n in range(count)], axis=-1)


def _read(product: Product, file: File, factor: Factor, rows: Rows) -> Array:
    """[wave, block, row, depth]: a matrix, or the transpose of one."""
    words = _words(file, factor.index, product.factor_words, rows)
    if factor.lanes is not None:
        words = np.ascontiguousarray(words[:, factor.lanes])
    matrix = product.factor_lanes(_READ[factor.element](words))
    matrix = matrix if product.has_denormals else flushed(matrix)
    if factor.blocks is not None:
        matrix = matrix[:, factor.blocks]
    return np.negative(matrix) if factor.is_negative else matrix


def _sums(
    product: Product, file: File, operand: Operand, waves: Waves, order: _SumOrder
) -> Array:
    """[wave, block, row, column]."""
    numpy, shape = NUMPY[product.sum], (product.blocks, product.rows, product.rows)
    if operand.file == "c":
        return np.full(
            (waves.count(), *shape), constant(operand.text, product.sum), numpy
        )
    count = product.sums * product.sum_words
    words = _words(file, vector_index(operand), count, waves.rows)
    flat = words.view(numpy).reshape(waves.count(), -1)
    return flat.take(order.to_lanes, axis=1).reshape(-1, *shape)


def _multiply(product: Product, a: Array, b: Array, sums: Array) -> Array:
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


def _undefined(
    product: Product, waves: Waves, factors: Any, c: Operand, order: _SumOrder
) -> Array:
    """All bits of an element whose row, column or old value has undefined bits."""
    shadow = waves.shadow
    a, b = (_undefined_rows(product, shadow, factor, waves.rows) for factor in factors)
    total = a[..., :, None] | b[..., None, :]
    if c.file != "c":
        unsigned = f"u{4 * product.sum_words}"
        total = total | (_sums(product, shadow, c, waves, order).view(unsigned) != 0)
    ones = np.array(-1, f"i{4 * product.sum_words}")
    return np.where(total, ones, 0).astype(ones.dtype)


def _undefined_rows(
    product: Product, shadow: Array, factor: Factor, rows: Rows
) -> Array:
    words = _words(shadow, factor.index, product.factor_words, rows)
    if factor.lanes is not None:
        words = words[:, factor.lanes]
    lanes = np.repeat(words.any(axis=-1)[..., None], product.each, axis=-1)
    found = product.factor_lanes(lanes).any(axis=-1)
    return found if factor.blocks is None else found[:, factor.blocks]


def _write(
    product: Product,
    waves: Waves,
    index: int,
    matrix: Array,
    file: File,
    order: _SumOrder,
) -> None:
    flat = (
        np.ascontiguousarray(matrix)
        .reshape(len(matrix), -1)
        .take(order.from_lanes, axis=1)
    )
    count = product.sums * product.sum_words
    words = flat.view(np.uint32).reshape(len(matrix), -1, count)
    for number in range(count):
        file.v[index + number, waves.rows] = words[:, :, number]


def _mark(product: Product, waves: Waves, index: int, shadow: Array) -> None:
    count = product.sums * product.sum_words
    numbers = range(FIRST_VECTOR + index, FIRST_VECTOR + index + count)
    if shadow.any():
        waves.dirty.update(numbers)
    elif isinstance(waves.rows, slice):
        waves.dirty.difference_update(numbers)
