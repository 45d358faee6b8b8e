"""Where the elements of matrices lie, as AMD's Matrix Instruction Calculator states it.

Written down from the equations that it prints, anew and for each shape by itself; the emulator's
own layouts are derived otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Shape:
    """Lane of an element (block, row, k // held) of a factor, of which each lane holds `held` in
    a row; register (or pair) and lane of an element (block, row, column) of C and D."""

    factor_lane: Callable[[int, int, int], int]
    sum_register: Callable[[int, int], int]
    sum_lane: Callable[[int, int, int], int]


# By rows, blocks, and whether sums have 64 bits.
SHAPES: dict[tuple[int, int, bool], Shape] = {
    (32, 2, False): Shape(
        lambda b, i, k: 32 * b + i,
        lambda b, i: 16 * b + 4 * (i // 8) + i % 4,
        lambda b, i, j: 32 * (i // 4) % 64 + j,
    ),
    (32, 1, False): Shape(
        lambda b, i, k: 32 * k + i,
        lambda b, i: 4 * (i // 8) + i % 4,
        lambda b, i, j: 32 * (i // 4) % 64 + j,
    ),
    (16, 4, False): Shape(
        lambda b, i, k: 16 * b + i,
        lambda b, i: 4 * b + i % 4,
        lambda b, i, j: 16 * (i // 4) + j,
    ),
    (16, 1, False): Shape(
        lambda b, i, k: 16 * k + i,
        lambda b, i: i % 4,
        lambda b, i, j: 16 * (i // 4) + j,
    ),
    (4, 16, False): Shape(
        lambda b, i, k: 4 * b + i,
        lambda b, i: i,
        lambda b, i, j: 4 * b + j,
    ),
    (16, 1, True): Shape(
        lambda b, i, k: 16 * k + i,
        lambda b, i: i // 4,
        lambda b, i, j: 16 * (i % 4) + j,
    ),
    (4, 4, True): Shape(
        lambda b, i, k: 4 * b + 16 * k + i,
        lambda b, i: 0,
        lambda b, i, j: 16 * (i % 4) + 4 * b + j,
    ),
}

# Instruction: rows, depth, blocks, elements that a lane holds, types of sums, of A and of B.
Row = tuple[int, int, int, int, str, str, str]


def _rows(total: str, a: str, b: str, *shapes: tuple[str, int, int, int, int]) -> dict[str, Row]:
    return {
        f"v_mfma_{total}_{name}": (rows, depth, blocks, held, total, a, b)
        for name, rows, depth, blocks, held in shapes
    }


_SIXTEEN_BITS = (
    ("32x32x4_2b", 32, 4, 2, 4),
    ("16x16x4_4b", 16, 4, 4, 4),
    ("4x4x4_16b", 4, 4, 16, 4),
    ("32x32x8", 32, 8, 1, 4),
    ("16x16x16", 16, 16, 1, 4),
)
_EIGHT_BITS = (("16x16x32", 16, 32, 1, 8), ("32x32x16", 32, 16, 1, 8))
GFX942: dict[str, Row] = {
    **_rows(
        "f32",
        "f32",
        "f32",
        ("32x32x1_2b_f32", 32, 1, 2, 1),
        ("16x16x1_4b_f32", 16, 1, 4, 1),
        ("4x4x1_16b_f32", 4, 1, 16, 1),
        ("32x32x2_f32", 32, 2, 1, 1),
        ("16x16x4_f32", 16, 4, 1, 1),
    ),
    **_rows("f32", "xf32", "xf32", ("16x16x8_xf32", 16, 8, 1, 2), ("32x32x4_xf32", 32, 4, 1, 2)),
    **{
        name: row
        for kind in ("f16", "bf16")
        for name, row in _rows(
            "f32", kind, kind, *((f"{s[0]}_{kind}", *s[1:]) for s in _SIXTEEN_BITS)
        ).items()
    },
    **_rows(
        "i32",
        "i8",
        "i8",
        ("32x32x4_2b_i8", 32, 4, 2, 4),
        ("16x16x4_4b_i8", 16, 4, 4, 4),
        ("4x4x4_16b_i8", 4, 4, 16, 4),
        ("32x32x16_i8", 32, 16, 1, 8),
        ("16x16x32_i8", 16, 32, 1, 8),
    ),
    **_rows("f64", "f64", "f64", ("16x16x4_f64", 16, 4, 1, 1), ("4x4x4_4b_f64", 4, 4, 4, 1)),
    **{
        name: row
        for a in ("fp8", "bf8")
        for b in ("fp8", "bf8")
        for name, row in _rows(
            "f32", a, b, *((f"{s[0]}_{a}_{b}", *s[1:]) for s in _EIGHT_BITS)
        ).items()
    },
}
GFX90A: dict[str, Row] = {
    **_rows(
        "f32",
        "f32",
        "f32",
        ("32x32x1f32", 32, 1, 2, 1),
        ("16x16x1f32", 16, 1, 4, 1),
        ("4x4x1f32", 4, 1, 16, 1),
        ("32x32x2f32", 32, 2, 1, 1),
        ("16x16x4f32", 16, 4, 1, 1),
    ),
    **_rows("f32", "f16", "f16", *((f"{s[0].split('_')[0]}f16", *s[1:]) for s in _SIXTEEN_BITS)),
    **_rows(
        "f32",
        "bf16",
        "bf16",
        *((f"{s[0].split('_')[0]}bf16_1k", *s[1:]) for s in _SIXTEEN_BITS),
        ("32x32x2bf16", 32, 2, 2, 2),
        ("16x16x2bf16", 16, 2, 4, 2),
        ("4x4x2bf16", 4, 2, 16, 2),
        ("32x32x4bf16", 32, 4, 1, 2),
        ("16x16x8bf16", 16, 8, 1, 2),
    ),
    **_rows(
        "i32",
        "i8",
        "i8",
        ("32x32x4i8", 32, 4, 2, 4),
        ("16x16x4i8", 16, 4, 4, 4),
        ("4x4x4i8", 4, 4, 16, 4),
        ("32x32x8i8", 32, 8, 1, 4),
        ("16x16x16i8", 16, 16, 1, 4),
    ),
    **_rows("f64", "f64", "f64", ("16x16x4f64", 16, 4, 1, 1), ("4x4x4f64", 4, 4, 4, 1)),
}
TYPES: dict[str, Any] = {
    **{"f32": np.float32, "xf32": np.float32, "f64": np.float64, "i32": np.int32},
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8},
    **{"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz},
}


def row_of(name: str) -> tuple[Row, Shape]:
    """What is written above of an instruction."""
    row = GFX942.get(name) or GFX90A[name]
    return row, SHAPES[row[0], row[2], row[4] == "f64"]


def factor_words(name: str, matrix: Any, kind: str) -> Any:
    """[block, row, depth] as the lanes hold it: [lane, register]."""
    (rows, depth, blocks, held, *_), shape = row_of(name)
    lanes = np.zeros((64, held), TYPES[kind])
    for b, i, k in np.ndindex(blocks, rows, depth):
        lanes[shape.factor_lane(b, i, k // held), k % held] = matrix[b, i, k]
    return lanes.view(np.uint32)


def sum_words(name: str, matrix: Any) -> Any:
    """[block, row, column] as the lanes hold it: [lane, register]."""
    (rows, _, blocks, _, total, *_), _ = row_of(name)
    lanes = np.zeros((64, rows * rows * blocks // 64), TYPES[total])
    lanes[_sum_places(name)] = matrix
    return lanes.view(np.uint32)


def sums_of(name: str, words: Any) -> Any:
    """The reverse of `sum_words`."""
    (*_, total, _, _), _ = row_of(name)
    return np.ascontiguousarray(words).view(TYPES[total])[_sum_places(name)]


def _sum_places(name: str) -> Any:
    """Lane and register of each element of [block, row, column]."""
    (rows, _, blocks, *_), shape = row_of(name)
    places = np.array(
        [
            (shape.sum_lane(*place), shape.sum_register(*place[:2]))
            for place in np.ndindex(blocks, rows, rows)
        ]
    )
    return tuple(places.T.reshape(2, blocks, rows, rows))


def drawn_matrices(name: str) -> tuple[Any, Any, Any]:
    """A, B transposed and C, of small integers, which all types hold."""
    (rows, depth, blocks, *_), _ = row_of(name)
    rng = np.random.default_rng(4)
    a, b = rng.integers(-7, 8, (2, blocks, rows, depth))
    return a, b, rng.integers(-9, 10, (blocks, rows, rows))
