"""Layouts of matrices, held against the equations of AMD's Matrix Instruction Calculator."""

import numpy as np
import pytest

from refcomp.emulator.instructions.matrix.layouts import broadcast_blocks, moved_lanes, product_of
from tests.emulator.instructions.matrix.matrix_tables import GFX90A, GFX942, SHAPES

_ALL = GFX942 | GFX90A


def test_all_dense_products_are_known():
    assert (len(GFX942), len(GFX90A)) == (32, 27)
    assert all(product_of(name) for name in _ALL)


@pytest.mark.parametrize("name", _ALL)
def test_layouts_are_those_of_the_calculator(name):
    rows, depth, blocks, held, total, *elements = _ALL[name]
    product = product_of(name)
    found = (product.rows, product.depth, product.blocks, product.each, product.sum)
    assert found == (rows, depth, blocks, held, total)
    assert product.elements == tuple(elements)
    shape = SHAPES[rows, blocks, total == "f64"]
    lane, number = product.sum_places()
    for b, i, j in np.ndindex(blocks, rows, rows):
        wanted = shape.sum_lane(b, i, j), shape.sum_register(b, i)
        assert (lane[b, i, j], number[b, i, j]) == wanted
    places = np.arange(64 * held).reshape(1, 64, held)
    matrix = product.factor_lanes(places)[0]
    for b, i, k in np.ndindex(blocks, rows, depth):
        assert matrix[b, i, k] == shape.factor_lane(b, i, k // held) * held + k % held


@pytest.mark.parametrize(
    "name",
    [
        "v_mfma_f32_16x16x1_f32",
        "v_mfma_f32_32x32x16_f16",
        "v_mfma_f32_16x16x32_f16",
        "v_smfmac_f32_16x16x32_f16",
        "v_mfma_scale_f32_16x16x128_f8f6f4",
    ],
)
def test_other_names_are_no_products(name):
    assert product_of(name) is None


def test_blocks_and_lanes_that_others_are_read_from():
    assert broadcast_blocks(16, 2, 3).tolist() == [3] * 4 + [7] * 4 + [11] * 4 + [15] * 4
    assert broadcast_blocks(4, 0, 0).tolist() == [0, 1, 2, 3]
    read = {pattern: moved_lanes(pattern)[[0, 20, 33, 63]].tolist() for pattern in range(8)}
    assert read == {
        0: [0, 20, 33, 63],
        1: [0, 20, 1, 31],
        2: [32, 52, 33, 63],
        3: [16, 36, 49, 15],
        4: [0, 4, 1, 15],
        5: [16, 20, 17, 31],
        6: [32, 36, 33, 47],
        7: [48, 52, 49, 63],
    }
