"""Products against numpy's, with fragments that are filled by the ISA's formulas."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.matrix import (
    FragmentProduct,
    loaded_fragments,
    product_of,
    stored_rows,
    transposed_fragment,
)
from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.instructions.worded import instruction

DRAW = np.random.default_rng(9)
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f64": np.float64,
    "s8": np.int8,
    "u8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "f32": np.float32,
    "s32": np.int32,
}
# Shape, type of C and D, types of A and B.
PRODUCTS = [
    ("m16n8k8", "f16", "f16", "f16"),
    ("m16n8k8", "f32", "bf16", "bf16"),
    ("m16n8k16", "f32", "f16", "f16"),
    ("m16n8k16", "f32", "bf16", "bf16"),
    ("m16n8k4", "f32", "tf32", "tf32"),
    ("m16n8k8", "f32", "tf32", "tf32"),
    ("m8n8k4", "f64", "f64", "f64"),
    ("m16n8k4", "f64", "f64", "f64"),
    ("m16n8k16", "f64", "f64", "f64"),
    ("m8n8k16", "s32", "s8", "u8"),
    ("m16n8k16", "s32", "u8", "u8"),
    ("m16n8k32", "s32", "s8", "s8"),
    ("m16n8k32", "f32", "e4m3", "e5m2"),
    ("m16n8k16", "f16", "e5m2", "e5m2"),
]


def product(text: str) -> FragmentProduct:
    return product_of(Form(instruction(f"mma.sync.aligned.{text} d, a, b, c")))


def place_in_a(lane: int, i: int, rows: int, per: int) -> tuple[int, int]:
    """Row and column of element i, as the ISA has it for registers of `per` elements."""
    group, thread = lane >> 2, lane % 4
    register = i // per
    row = group if rows == 8 or register % 2 == 0 else group + 8
    block = register if rows == 8 else register // 2
    return row, thread * per + i % per + 4 * per * block


def fragment(matrix: np.ndarray, kind: str, part: str) -> np.ndarray:
    rows, columns = matrix.shape
    width = matrix.dtype.itemsize
    per = max(1, 4 // width)
    count = rows * columns // 32
    result = np.zeros((1, 32, count), matrix.dtype)
    for lane in range(32):
        for i in range(count):
            if part == "a":
                place = place_in_a(lane, i, rows, per)
            elif part == "b":
                group, thread = lane >> 2, lane % 4
                place = (thread * per + i % per + 4 * per * (i // per), group)
            else:
                place = ((lane >> 2) + 8 * (i // 2), lane % 4 * 2 + i % 2)
            result[0, lane, i] = matrix[place]
    return result.view(f"u{max(4, width)}")


def drawn(rows: int, columns: int, kind: str) -> np.ndarray:
    """Small whole numbers, of which all sums are exact."""
    least = 0 if kind == "u8" else -4
    return DRAW.integers(least, 5, (rows, columns)).astype(DTYPES[kind])


@pytest.mark.parametrize(("shape", "kind", "first", "second"), PRODUCTS)
def test_product_agrees_with_numpy(shape: str, kind: str, first: str, second: str) -> None:
    rows, depth = int(shape[1 : shape.index("n")]), int(shape[shape.index("k") + 1 :])
    a, b, c = drawn(rows, depth, first), drawn(depth, 8, second), drawn(rows, 8, kind)
    found = product(f"{shape}.row.col.{kind}.{first}.{second}.{kind}")
    parts = [fragment(a, first, "a"), fragment(b, second, "b"), fragment(c, kind, "c")]
    assert tuple(part.shape[2] for part in parts) == found.registers
    wide = np.int64 if kind == "s32" else np.float64
    exact = a.astype(wide) @ b.astype(wide) + c.astype(wide)
    result = found.compute(*parts)
    np.testing.assert_array_equal(result, fragment(exact.astype(DTYPES[kind]), kind, "c"))


def test_result_is_rounded_once() -> None:
    a = np.full((16, 8), 1 + 2.0**-10, np.float16)
    b = np.full((8, 8), 1 + 2.0**-10, np.float16)
    c = np.full((16, 8), 2.0**-30, np.float32)
    found = product("m16n8k8.row.col.f32.f16.f16.f32")
    result = found.compute(
        fragment(a, "f16", "a"), fragment(b, "f16", "b"), fragment(c, "f32", "c")
    )
    assert (result.view(np.float32) == np.float32(8 * (1 + 2.0**-10) ** 2 + 2.0**-30)).all()


def test_nan_is_the_one_of_gpus() -> None:
    a = np.full((16, 8), np.nan, np.float16)
    zeros = np.zeros((16, 8), np.float16)
    found = product("m16n8k8.row.col.f16.f16.f16.f16")
    b = fragment(zeros[:8], "f16", "b")
    result = found.compute(fragment(a, "f16", "a"), b, fragment(zeros, "f16", "c"))
    assert (result == 0x7FFF7FFF).all()


def test_sums_of_integers_wrap_or_saturate() -> None:
    a = np.full((8, 16), 127, np.int8)
    b = np.full((16, 8), 127, np.int8)
    c = np.full((8, 8), 2**31 - 1, np.int32)
    parts = [fragment(a, "s8", "a"), fragment(b, "s8", "b"), fragment(c, "s32", "c")]
    total = 2**31 - 1 + 16 * 127 * 127
    wrapped = product("m8n8k16.row.col.s32.s8.s8.s32").compute(*parts)
    assert (wrapped == total).all()  # of its bits, modulo 2**32
    clamped = product("m8n8k16.row.col.satfinite.s32.s8.s8.s32").compute(*parts)
    assert (clamped == 2**31 - 1).all()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("m16n8k16.row.col.f32.f32.f32.f32", UserError, "does not have the types .f32.f32"),
        ("m16n8k16.row.col.f16.f16.f16.f32", UserError, "does not have the types .f16.f16"),
        ("m16n8k32.row.col.f32.f16.f16.f32", UserError, "mma needs one of .m16n8k8, .m16n8k16"),
        ("m16n8k8.row.row.f32.f16.f16.f32", UserError, "mma needs one of .col"),
        ("m16n8k8.row.col.satfinite.f32.f16.f16.f32", UserError, "the modifier .satfinite"),
        ("m16n8k8.row.col.f32.f16", UserError, "mma needs the types of D, A, B and C"),
        ("m8n8k4.row.col.f32.f16.f16.f32", Unsupported, "mma.m8n8k4 of .f16"),
        ("m16n8k64.row.col.s32.s4.s4.s32", Unsupported, "mma with .s4"),
    ],
)
def test_other_products_are_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        product(text)


def test_matrices_are_loaded_row_by_row() -> None:
    rows = np.arange(4 * 64, dtype=np.uint16).reshape(1, 32, 8)
    found = loaded_fragments(rows)
    crossed = loaded_fragments(rows, transposed=True)
    for lane in range(32):
        for number in range(4):
            matrix = rows[0, 8 * number : 8 * number + 8]
            row, column = lane // 4, 2 * (lane % 4)
            pair = int(matrix[row, column]), int(matrix[row, column + 1])
            assert found[0, lane, number] == pair[0] | pair[1] << 16
            pair = int(matrix[column, row]), int(matrix[column + 1, row])
            assert crossed[0, lane, number] == pair[0] | pair[1] << 16
    for transposed in (False, True):
        again = stored_rows(loaded_fragments(rows, transposed), transposed)
        np.testing.assert_array_equal(again, rows)
    one = loaded_fragments(rows[:, :8])
    np.testing.assert_array_equal(transposed_fragment(one), crossed[:, :, :1])
