"""Products of matrices: every layout, held against numpy on whole matrices.

Where elements lie is written down here anew, element by element, from the manual's formulas.
"""

import numpy as np
import pytest

from refcomp.emulator.matrix import product_of
from refcomp.emulator.program import bind
from refcomp.errors import Unsupported
from tests.emulator.snippets import LANE, instruction, make_waves, put, run, set_mask, undefined

_NAMES = [
    "v_mfma_f32_16x16x4_f32",
    "v_mfma_f32_32x32x2_f32",
    "v_mfma_f32_16x16x16_f16",
    "v_mfma_f32_32x32x8_f16",
    "v_mfma_f32_16x16x16_bf16",
    "v_mfma_f32_32x32x8_bf16",
    "v_mfma_i32_16x16x32_i8",
    "v_mfma_i32_32x32x16_i8",
]
# Row and column of D in (lane, register).
_PLACES = {
    16: {(0, 0): (0, 0), (17, 2): (6, 1), (63, 3): (15, 15), (40, 1): (9, 8)},
    32: {(0, 0): (0, 0), (33, 2): (6, 1), (63, 15): (31, 31), (5, 7): (11, 5), (40, 9): (21, 8)},
}


def _factor(matrix, dtype, rows, depth):
    """[rows, depth] as words: row l % rows in lane l, with consecutive elements of the depth."""
    each = rows * depth // 64
    lanes = [matrix[n % rows, n // rows * each :][:each] for n in range(64)]
    return np.ascontiguousarray(np.stack(lanes).astype(dtype)).view(np.uint32)


def _operands(name, rng):
    product = product_of(name)
    rows, depth = product.rows, product.depth
    a, b = rng.integers(-8, 9, (2, rows, depth))
    if product.element == "bf16":
        words = [
            _factor(m.astype(np.float32).view(np.uint32) >> 16, np.uint16, rows, depth)
            for m in (a, b)
        ]
    else:
        dtype = {"f32": np.float32, "f16": np.float16, "i8": np.int8}[product.element]
        words = [_factor(m, dtype, rows, depth) for m in (a, b)]
    return product, a, b, words


def _registers(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def _result(waves, first, product):
    """D by the formulas of the manual."""
    kind = np.float32 if product.sum == "f32" else np.int32
    d = np.zeros((product.rows, product.rows), kind)
    for lane in range(64):
        for register in range(product.sums):
            row = 8 * (register // 4) + 4 * (lane // product.rows) + register % 4
            value = waves.values.v[first + register, 0, lane]
            d[row, lane % product.rows] = value.view(kind)
    return d


@pytest.mark.parametrize("name", _NAMES)
def test_products_agree_with_numpy(name):
    product, a, b, words = _operands(name, np.random.default_rng(4))
    count = words[0].shape[1]
    waves = make_waves(vectors=40)
    for place, both in zip((2, 4), words, strict=True):
        for number in range(count):
            put(waves, place + number, both[:, number])
    set_mask(waves, LANE < 3)  # which does not matter
    factors = f"{_registers(2, count)}, {_registers(4, count)}"
    total = _registers(8, product.sums)
    run(waves, f"{name} {total}, {factors}, 0", f"{name} {total}, {factors}, {total}")
    assert (_result(waves, 8, product) == 2 * (a @ b.T)).all()
    assert not undefined(waves, 8).any()


@pytest.mark.parametrize("rows", _PLACES)
def test_places_are_those_of_the_tables(rows):
    row, column = product_of(f"v_mfma_f32_{rows}x{rows}x{64 // rows}_f32").places
    for (lane, register), place in _PLACES[rows].items():
        assert (row[lane, register], column[lane, register]) == place


def test_undefined_rows_make_undefined_sums():
    waves = make_waves(vectors=16)
    put(waves, 2, np.zeros(64, np.float32))
    put(waves, 3, np.zeros(64, np.float32))
    waves.shadow.v[2, 0, 5] = 1  # row 5 of A
    waves.dirty.add(131)
    run(waves, "v_mfma_f32_16x16x4_f32 v[8:11], v2, v3, 0")
    marked = np.stack([undefined(waves, 8 + n) for n in range(4)]) != 0
    assert {(n, lane // 16) for n, lane in np.argwhere(marked)} == {(1, 1)}


def test_what_is_not_known_is_refused():
    with pytest.raises(Unsupported, match="cbsz of a matrix product is not known"):
        bind(instruction("v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3] cbsz:1"))
    with pytest.raises(Unsupported, match="does not know the instruction v_mfma_f32_4x4x1"):
        bind(instruction("v_mfma_f32_4x4x1_16b_f32 v[0:3], v4, v5, v[0:3]"))
    assert product_of("v_mfma_f32_16x16x1_f32") is None
