"""The width of panels: that of the tile, for each processor and number of rows."""

import pytest

from refcomp.te.operation import placeholder
from refcomp.topi.contraction.dense import matmul
from refcomp.topi.contraction.quantized_packed_dense import quantized_dense_pack
from refcomp.topi.schedules.host_panels import choose_pair_panel_width, choose_panel_width
from refcomp.topi.schedules.host_products import choose_register_tile, find_host_product
from refcomp.topi.schedules.vector_registers import AVX2, AVX512, NEON, SSE
from tests.strategies.operands import tensors


@pytest.mark.parametrize("registers", [SSE, AVX2, AVX512, NEON], ids=str)
@pytest.mark.parametrize("rows", [1, 8, 128])
def test_a_panel_is_as_wide_as_the_tile_of_the_product(registers, rows) -> None:
    width = choose_panel_width(rows, 64, 1000, "float32", registers)
    a, b = tensors((rows, 64), (64, 1000))
    tile = choose_register_tile(find_host_product(matmul(a, b).op), registers)
    assert width == tile.vectors * tile.lanes


def test_rows_that_a_run_determines_and_a_single_column() -> None:
    assert choose_panel_width(None, 64, 1000, "float32", AVX2) % 8 == 0
    assert choose_panel_width(4, 64, 1, "float32", AVX2) == 1
    assert choose_panel_width(4, 64, 6, "float32", AVX2) == 6


@pytest.mark.parametrize("registers", [SSE, AVX2, AVX512, NEON], ids=str)
@pytest.mark.parametrize("rows", [1, 8, 128])
def test_a_panel_of_pairs_is_as_wide_as_the_tile_of_the_product(registers, rows) -> None:
    width = choose_pair_panel_width(rows, 32, 1000, registers)
    data = placeholder((rows, 64), "uint8")
    panels = placeholder((-(-1000 // width), 32, width), "int32")
    sums = quantized_dense_pack(data, panels, units=1000)
    product = find_host_product(sums.op)
    assert product is not None and product.temporaries == 1
    tile = choose_register_tile(product, registers)
    assert width == tile.vectors * tile.lanes
    # A product needs a register before it is added.
    across = tile.columns * tile.vectors
    assert across * (tile.rows + 1) + 1 < registers.count


def test_few_columns_of_pairs_are_vectors_of_four() -> None:
    assert choose_pair_panel_width(None, 32, 1000, AVX2) % 8 == 0
    assert choose_pair_panel_width(4, 32, 1, AVX2) == 4
    assert choose_pair_panel_width(4, 32, 10, AVX2) == 12
