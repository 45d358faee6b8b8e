"""Products of matrices that a warp holds together: mma.sync, and the layouts of ldmatrix.

mma computes D = A * B + C. A *fragment* is the part of a matrix that the registers of a thread
hold, as unsigned integers [warp, lane, register]. Four lanes share a row of A: lane 4 * g + t has
elements of the rows g and g + 8. A register holds neighbours in a row. Those of lane t follow those
of lane t - 1. B and the accumulators C and D follow the same pattern.

The ISA specifies neither the order of a sum nor its rounding. Here products of floats are exact.
They are added up in f64, in the order of the columns of A, and the result is rounded once. So a
GPU's result may differ in the last bits. Products of f64 are fused multiply-adds in that order.
Integers are exact.
Source: NVIDIA, "Parallel Thread Execution ISA", section "Warp Level Matrix Multiply-Accumulate
Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.integers import clamped
from refcomp.emulator.ptx.instructions.results import float_of, float_value
from refcomp.emulator.ptx.instructions.rounding import exactly, fused
from refcomp.emulator.ptx.instructions.small_floats import f32_of_small
from refcomp.emulator.ptx.instructions.types import bits_of, dtype_of, unsigned_of

LANES = 32
_LANE = np.arange(LANES)
_GROUP = _LANE >> 2
_IN_GROUP = _LANE & 3
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
# Type of A and B -> the shapes, and the types of C and D.
_FACTORS: dict[str, tuple[str, str]] = {
    "f16": ("m16n8k8 m16n8k16", "f16 f32"),
    "bf16": ("m16n8k8 m16n8k16", "f32"),
    "tf32": ("m16n8k4 m16n8k8", "f32"),
    "f64": ("m8n8k4 m16n8k4 m16n8k8 m16n8k16", "f64"),
    "s8": ("m8n8k16 m16n8k16 m16n8k32", "s32"),
    "u8": ("m8n8k16 m16n8k16 m16n8k32", "s32"),
    "e4m3": ("m16n8k16 m16n8k32", "f16 f32"),
    "e5m2": ("m16n8k16 m16n8k32", "f16 f32"),
}
_MIXED = ({"s8", "u8"}, {"e4m3", "e5m2"})
# Modifiers of products that are not computed here.
_LACKING = (
    "sp",
    "sp::ordered_metadata",
    "s4",
    "u4",
    "b1",
    "kind::f8f6f4",
    "block_scale",
)


class ElementPlaces(NamedTuple):
    """The elements that each lane holds: two arrays [lane, element] of indices."""

    row: Array
    column: Array


@dataclass(frozen=True, slots=True)
class FragmentProduct:
    """A product D = A * B + C on fragments.

    Attributes:
        compute: the function from fragments of A, B and C to the fragment of D. Registers hold 32
            bits, and 64 bits for f64.
        registers: the numbers of registers that hold A, B, and each of C and D.
    """

    compute: Callable[[Array, Array, Array], Array]
    registers: tuple[int, int, int]


def places_of_a(rows: int, columns: int, neighbours: int) -> ElementPlaces:
    """Return the positions in A of the elements that each lane holds.

    Args:
        rows: 8 or 16.
        columns: of A.
        neighbours: elements in a register.
    """
    element = np.arange(rows * columns // LANES)
    register = element // neighbours
    blocks = rows // 8
    row = _GROUP[:, None] + 8 * (register % blocks)
    step = 4 * neighbours * (register // blocks)
    column = _IN_GROUP[:, None] * neighbours + element % neighbours + step
    return ElementPlaces(row, column)


def places_of_b(rows: int, neighbours: int) -> ElementPlaces:
    """Return the positions in B, which has eight columns, of the elements that each lane holds."""
    transposed = places_of_a(8, rows, neighbours)
    return ElementPlaces(transposed.column, transposed.row)


def places_of_sum(rows: int) -> ElementPlaces:
    """Return the positions in C and D, which have eight columns, of the elements of each lane."""
    return places_of_a(rows, 8, 2)


def matrix_of(elements: Array, places: ElementPlaces) -> Array:
    """Return matrices [warp, row, column] of elements [warp, lane, element]."""
    shape = (len(elements), int(places.row.max()) + 1, int(places.column.max()) + 1)
    matrix: Array = np.zeros(shape, elements.dtype)
    matrix[:, places.row, places.column] = elements
    return matrix


def elements_of(fragment: Array, kind: str) -> Array:
    """Return the elements of type `kind` that registers hold, as numpy's numbers."""
    words = np.ascontiguousarray(fragment)
    values = words.view(dtype_of(kind))
    if kind in ("e4m3", "e5m2"):
        return f32_of_small(values, kind)
    return values.view(np.float32) if kind == "tf32" else float_value(values, kind)


def fragment_of(elements: Array, kind: str) -> Array:
    """Return numbers of a type in registers, of which the first has the lowest bits."""
    width = max(32, bits_of(kind))
    bits = np.ascontiguousarray(elements).view(unsigned_of(kind))
    words: Array = bits.view(f"u{width // 8}")
    return words


def product_of(form: Form) -> FragmentProduct:
    """Return the product that an `mma` computes, after reading its modifiers.

    Raises:
        UserError: PTX has no such product.
        Unsupported: the emulator lacks it: sparse products, and those of 4 and 1 bits.
    """
    lacking = form.take(*_LACKING)
    if lacking:
        raise form.unsupported(f"mma with .{lacking}")
    for modifier in ("sync", "aligned"):
        form.must_take(modifier)
    if len(form.types) != 4:
        raise form.damaged("mma needs the types of D, A, B and C")
    result, first, second, addend = form.types
    shapes, sums = _FACTORS.get(first, ("", ""))
    is_known = first == second or {first, second} in _MIXED
    if not is_known or result != addend or result not in sums.split():
        raise form.damaged(f"mma does not have the types .{'.'.join(form.types)}")
    if first == "f16" and form.has("m8n8k4"):
        raise form.unsupported("mma.m8n8k4 of .f16")
    shape = form.must_take(*shapes.split())
    form.must_take("row")
    form.must_take("col")
    saturates = first in ("s8", "u8") and form.has("satfinite")
    if first == "f64":
        form.take("rn")
    form.check_read()
    sizes = _SHAPE.fullmatch(shape)
    assert sizes is not None, shape
    return _product(form, int(sizes[1]), int(sizes[3]), saturates)


def _product(form: Form, rows: int, depth: int, saturates: bool) -> FragmentProduct:
    result, first, second, addend = form.types
    neighbours = max(1, 32 // bits_of(first))
    of_a = places_of_a(rows, depth, neighbours)
    of_b = places_of_b(depth, neighbours)
    of_sum = places_of_sum(rows)

    def compute(a: Array, b: Array, c: Array) -> Array:
        left = matrix_of(elements_of(a, first), of_a)
        right = matrix_of(elements_of(b, second), of_b)
        start = matrix_of(elements_of(c, addend), of_sum)
        total = sum_of_products(left, right, start, result, saturates)
        return fragment_of(total[:, of_sum.row, of_sum.column], result)

    counts = (
        rows * depth // LANES // neighbours,
        8 * depth // LANES // neighbours,
        rows * 8 * min(32, bits_of(result)) // (32 * LANES),
    )
    return FragmentProduct(compute, counts)


def sum_of_products(
    left: Array, right: Array, start: Array, result: str, saturates: bool
) -> Array:
    """Return left * right + start, of matrices [warp, row, column], in the type of the result."""
    wide = np.dtype(np.int64 if result == "s32" else np.float64)
    total: Array = start.astype(wide)
    for place in range(left.shape[2]):
        x = left[:, :, place, None].astype(wide)
        y = right[:, None, place, :].astype(wide)
        total = fused(x, y, total) if result == "f64" else total + x * y
    if result == "f64":
        return np.asarray(total)
    if result == "s32":
        return clamped(total, np.int32) if saturates else total.astype(np.int32)
    return float_of(exactly(total), result)


# ldmatrix, stmatrix and movmatrix: matrices of 8 rows of 8 numbers of 16 bits.

_ROWS = 8
_NEIGHBOUR = np.arange(2)


def loaded_fragments(rows: Array, transposed: bool = False) -> Array:
    """Return the fragments that `ldmatrix` loads, one register for each matrix.

    Args:
        rows: u16 [warp, 8 * matrices, 8]; lane 8 * i + j has the address of row j of matrix i.
        transposed: True for `.trans`.
    """
    matrices = rows.reshape(len(rows), -1, _ROWS, _ROWS)
    if transposed:
        matrices = matrices.swapaxes(2, 3)
    columns = 2 * _IN_GROUP[:, None] + _NEIGHBOUR
    elements = matrices[:, :, _GROUP[:, None], columns]  # [warp, matrix, lane, 2]
    words = np.ascontiguousarray(elements).view(np.uint32)[..., 0]
    return np.ascontiguousarray(words.swapaxes(1, 2))


def stored_rows(fragment: Array, transposed: bool = False) -> Array:
    """Return the rows that `stmatrix` stores; the inverse of `loaded_fragments`."""
    warps, _, count = fragment.shape
    words = np.ascontiguousarray(fragment.swapaxes(1, 2))
    elements = words.view(np.uint16).reshape(warps, count, LANES, 2)
    matrices: Array = np.empty((warps, count, _ROWS, _ROWS), np.uint16)
    columns = 2 * _IN_GROUP[:, None] + _NEIGHBOUR
    matrices[:, :, _GROUP[:, None], columns] = elements
    if transposed:
        matrices = matrices.swapaxes(2, 3)
    rows = matrices.reshape(warps, count * _ROWS, _ROWS)
    return np.ascontiguousarray(rows)


def transposed_fragment(fragment: Array) -> Array:
    """Transpose a matrix in one register [warp, lane, 1], as `movmatrix.trans` does."""
    return loaded_fragments(stored_rows(fragment), transposed=True)
