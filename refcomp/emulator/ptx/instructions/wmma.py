"""Products of matrices by `wmma`, which loads and stores fragments by instructions of its own.

The ISA does not say which thread holds which element. Here lane 0 holds the first elements, row by
row, then lane 1, and so on. A lane has 16 elements of A and of B in f16, so each of these elements
is held by two lanes. Products are computed as in `refcomp.emulator.ptx.instructions.matrix`.
Source: NVIDIA, "Parallel Thread Execution ISA", sections "wmma.load", "wmma.store" and "wmma.mma".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.matrix import (
    LANES,
    ElementPlaces,
    FragmentProduct,
    elements_of,
    fragment_of,
    matrix_of,
    sum_of_products,
)
from refcomp.emulator.ptx.instructions.types import bits_of

_WIDE = "m16n16k16 m32n8k16 m8n32k16"
# Type of A and B -> the shapes, and the types of C and D.
_FACTORS: dict[str, tuple[str, str]] = {
    "f16": (_WIDE, "f16 f32"),
    "bf16": (_WIDE, "f32"),
    "tf32": ("m16n16k8", "f32"),
    "s8": (_WIDE, "s32"),
    "u8": (_WIDE, "s32"),
    "f64": ("m8n8k4", "f64"),
}
# Shape -> rows of A, columns of B, columns of A.
_SIZES = {
    "m16n16k16": (16, 16, 16),
    "m32n8k16": (32, 8, 16),
    "m8n32k16": (8, 32, 16),
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}
_LACKING = ("s4", "u4", "b1", "m8n8k32", "m8n8k128")


@dataclass(frozen=True, slots=True)
class WarpMatrix:
    """A fragment that `wmma.load` and `wmma.store` move.

    Attributes:
        kind: the type of the elements.
        places: the positions in the matrix of the elements that each lane holds, in the order of
            its registers.
        by_columns: True if the matrix lies in memory column by column.
        stride: elements from a row (or column) to the next, where the instruction has no stride.
        registers: the number of registers that hold the elements.
    """

    kind: str
    places: ElementPlaces
    by_columns: bool
    stride: int
    registers: int

    def offsets(self, stride: Array) -> Array:
        """Return the offsets of the elements in memory, in elements: int64 [warp, lane, element].

        Args:
            stride: elements from a row (or column) to the next, as an array [warp].
        """
        row, column = self.places
        outer, inner = (column, row) if self.by_columns else (row, column)
        found: Array = np.asarray(stride, np.int64)[:, None, None] * outer + inner
        return found


def _places(rows: int, columns: int, count: int) -> ElementPlaces:
    each = rows * columns // LANES
    number = np.arange(LANES)[:, None] * each + np.arange(count) % each
    return ElementPlaces(number // columns, number % columns)


def _count(part: str, kind: str, rows: int, columns: int) -> int:
    """Return the number of elements that a lane holds."""
    return 16 if part in "ab" and kind == "f16" else rows * columns // LANES


def _matrix_sizes(part: str, shape: str) -> tuple[int, int]:
    rows, columns, depth = _SIZES[shape]
    return {"a": (rows, depth), "b": (depth, columns)}.get(part, (rows, columns))


def matrix_moved_by(form: Form) -> WarpMatrix:
    """Return the fragment of a `wmma.load` or `wmma.store`, after reading its modifiers.

    The state space, such as `.global`, must have been taken from the form before.

    Raises:
        UserError: PTX has no such fragment.
        Unsupported: matrices of 4 and 1 bits.
    """
    _check_has_all(form)
    part = form.must_take("a", "b", "c", "d")
    by_columns = form.must_take("row", "col") == "col"
    kind = form.type
    is_factor = part in "ab"
    shapes = [
        shape
        for factor, (shapes, sums) in _FACTORS.items()
        for shape in shapes.split()
        if kind == factor or (not is_factor and kind in sums.split())
    ]
    if not shapes or (is_factor and kind not in _FACTORS):
        raise form.damaged(f"wmma does not have a fragment {part} of .{kind}")
    shape = form.must_take(*shapes)
    form.check_read()
    rows, columns = _matrix_sizes(part, shape)
    count = _count(part, kind, rows, columns)
    neighbours = max(1, 32 // bits_of(kind))
    return WarpMatrix(
        kind,
        _places(rows, columns, count),
        by_columns,
        rows if by_columns else columns,
        count // neighbours,
    )


def _check_has_all(form: Form) -> None:
    lacking = form.take(*_LACKING)
    if lacking:
        raise form.unsupported(f"wmma with .{lacking}")
    form.must_take("load", "store", "mma")
    form.must_take("sync")
    form.must_take("aligned")


def warp_product_of(form: Form) -> FragmentProduct:
    """Return the product that a `wmma.mma` computes, after reading its modifiers.

    Raises:
        UserError: PTX has no such product.
        Unsupported: products of 4 and 1 bits.
    """
    _check_has_all(form)
    types = form.types
    if len(types) == 2:  # D and C: A and B are f16
        types = (types[0], "f16", "f16", types[1])
    if len(types) != 4 or types[1] != types[2] or types[1] not in _FACTORS:
        raise form.damaged(f"wmma does not have the types .{'.'.join(form.types)}")
    result, factor, _, addend = types
    shapes, sums = _FACTORS[factor]
    if not {result, addend} <= {*sums.split()}:
        raise form.damaged(f"wmma does not have the types .{'.'.join(form.types)}")
    shape = form.must_take(*shapes.split())
    # The loads decided where the elements are.
    form.must_take("row", "col")
    form.must_take("row", "col")
    saturates = factor in ("s8", "u8") and form.has("satfinite")
    if factor == "f64":
        form.take("rn")
    form.check_read()
    return _product(shape, result, factor, addend, saturates)


def _product(
    shape: str, result: str, factor: str, addend: str, saturates: bool
) -> FragmentProduct:
    def read(part: str, kind: str, fragment: Array) -> Array:
        rows, columns = _matrix_sizes(part, shape)
        each = rows * columns // LANES
        elements = elements_of(fragment, kind)[..., :each]
        return matrix_of(elements, _places(rows, columns, each))

    def registers(part: str, kind: str) -> int:
        count = _count(part, kind, *_matrix_sizes(part, shape))
        return count // max(1, 32 // bits_of(kind))

    def compute(a: Array, b: Array, c: Array) -> Array:
        total = sum_of_products(
            read("a", factor, a),
            read("b", factor, b),
            read("c", addend, c),
            result,
            saturates,
        )
        row, column = _places(*_matrix_sizes("d", shape), total[0].size // LANES)
        return fragment_of(total[:, row, column], result)

    return FragmentProduct(
        compute,
        (registers("a", factor), registers("b", factor), registers("d", result)),
    )
