"""Fragments that are loaded, multiplied and stored, against numpy's products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.matrix import elements_of, fragment_of
from refcomp.emulator.ptx.instructions.wmma import WarpMatrix, matrix_moved_by, warp_product_of
from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.instructions.worded import instruction

DRAW = np.random.default_rng(11)
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f64": np.float64,
    "s8": np.int8,
    "u8": np.uint8,
    "f32": np.float32,
    "s32": np.int32,
}
SIZES = {"m16n16k16": (16, 16, 16), "m32n8k16": (32, 8, 16), "m8n32k16": (8, 32, 16)}
SIZES |= {"m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}
# Shape, type of A and B, type of C and D, registers of A, B and D as nvcc 13.0 writes them.
PRODUCTS = [
    ("m16n16k16", "f16", "f32", (8, 8, 8)),
    ("m16n16k16", "f16", "f16", (8, 8, 4)),
    ("m32n8k16", "f16", "f32", (8, 8, 8)),
    ("m16n16k16", "bf16", "f32", (4, 4, 8)),
    ("m8n32k16", "bf16", "f32", (2, 8, 8)),
    ("m16n16k8", "tf32", "f32", (4, 4, 8)),
    ("m32n8k16", "s8", "s32", (4, 1, 8)),
    ("m16n16k16", "u8", "s32", (2, 2, 8)),
    ("m8n8k4", "f64", "f64", (1, 1, 2)),
]


def moved(text: str) -> WarpMatrix:
    return matrix_moved_by(Form(instruction(f"wmma.{text} r, p, s")))


def loaded(matrix: np.ndarray, found: WarpMatrix) -> np.ndarray:
    """The fragment of one warp, of a matrix that lies in memory as `found` has it."""
    memory = (matrix.T if found.by_columns else matrix).ravel()
    offsets = found.offsets(np.array([found.stride]))
    elements = memory[offsets]
    return np.ascontiguousarray(elements).view(f"u{max(4, elements.itemsize)}")


@pytest.mark.parametrize("layout", ["row", "col"])
@pytest.mark.parametrize(("shape", "factor", "kind", "registers"), PRODUCTS)
def test_product_agrees_with_numpy(
    shape: str, factor: str, kind: str, registers: tuple[int, int, int], layout: str
) -> None:
    rows, columns, depth = SIZES[shape]
    a = DRAW.integers(0, 5, (rows, depth)).astype(DTYPES[factor])
    b = DRAW.integers(0, 5, (depth, columns)).astype(DTYPES[factor])
    c = DRAW.integers(0, 9, (rows, columns)).astype(DTYPES[kind])
    types = f"{kind}.{kind}" if factor == "f16" else f"{kind}.{factor}.{factor}.{kind}"
    text = f"wmma.mma.sync.aligned.{layout}.col.{shape}.{types} d, a, b, c"
    product = warp_product_of(Form(instruction(text)))
    parts = []
    for name, matrix, matrix_kind in (("a", a, factor), ("b", b, factor), ("c", c, kind)):
        found = moved(f"load.{name}.sync.aligned.{layout}.{shape}.{matrix_kind}")
        parts.append(loaded(matrix, found))
        assert parts[-1].shape == (1, 32, found.registers)
    assert tuple(part.shape[2] for part in parts) == product.registers == registers
    result = product.compute(*parts)
    stored = moved(f"store.d.sync.aligned.{layout}.{shape}.{kind}")
    memory = np.zeros(rows * columns, DTYPES[kind])
    memory[stored.offsets(np.array([stored.stride]))] = elements_of(result, kind)
    found_d = memory.reshape(columns, rows).T if layout == "col" else memory.reshape(rows, columns)
    wide = np.float64 if kind != "s32" else np.int64
    np.testing.assert_array_equal(found_d, (a.astype(wide) @ b.astype(wide) + c.astype(wide)))


def test_stride_may_be_wider_than_the_matrix() -> None:
    found = moved("load.a.sync.aligned.row.m16n16k16.bf16")
    assert found.offsets(np.array([100, 16])).max(axis=(1, 2)).tolist() == [1515, 255]


def test_fragments_keep_the_order_of_elements() -> None:
    elements = np.arange(64, dtype=np.uint8).reshape(1, 32, 2, 1).repeat(2, 3).reshape(1, 32, 4)
    words = fragment_of(elements, "u8")
    assert words.shape == (1, 32, 1)
    assert elements_of(words, "u8").tolist() == elements.tolist()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("load.a.sync.aligned.row.m16n16k16.s32", UserError, "fragment a of .s32"),
        ("load.a.sync.aligned.row.m16n16k8.f16", UserError, "wmma needs one of .m16n16k16"),
        ("load.e.sync.aligned.row.m16n16k16.f16", UserError, "wmma needs one of .a, .b, .c, .d"),
        ("load.a.sync.aligned.row.m8n8k32.s4", Unsupported, "wmma with .m8n8k32"),
    ],
)
def test_other_fragments_are_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        moved(text)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ("f32.s8.s8.s32", "wmma does not have the types .f32.s8.s8.s32"),
        ("f32.bf16.f16.f32", "wmma does not have the types .f32.bf16.f16.f32"),
        ("f32.f32.satfinite", "wmma does not have the modifier .satfinite"),
    ],
)
def test_other_products_are_refused(types: str, message: str) -> None:
    text = f"wmma.mma.sync.aligned.row.col.m16n16k16.{types} d, a, b, c"
    with pytest.raises(UserError, match=message):
        warp_product_of(Form(instruction(text)))
