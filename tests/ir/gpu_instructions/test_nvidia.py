"""Rows of NVIDIA's instructions, compared with the formulas of the PTX ISA, written down anew."""

import re

import pytest

from refcomp.ir.gpu_instructions.nvidia import NVIDIA, PREFIX, sum_error_bound
from refcomp.ir.gpu_instructions.records import MatrixProduct

PRODUCTS = [row for row in NVIDIA if isinstance(row, MatrixProduct)]


def test_each_row_has_a_compute_capability_and_no_gpus():
    for row in NVIDIA:
        assert row.name.startswith(PREFIX) and row.capability in (61, 75, 80) and row.gpus == ()


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: p.name)
def test_names_state_the_shapes(product):
    rows, columns, depth = map(int, re.search(r"m(\d+)n(\d+)k(\d+)", product.name).groups())
    assert (product.depth, columns) == (depth, 8)
    assert product.a.count == rows * depth // 32 and product.b.count == 8 * depth // 32
    assert product.c.count == rows * 8 // 32


def _fragment(matrix, product, lane, i):
    """(row, column) of element i, as the PTX ISA's sections on matrix fragments list the cases."""
    group, member = lane >> 2, lane % 4
    if matrix == "C":
        return (group if i < 2 else group + 8), member * 2 + (i & 1)
    if "k8.row.col.tf32" in product.name:
        if matrix == "A":
            return (group if i in (0, 2) else group + 8), (member if i < 2 else member + 4)
        return (member if i == 0 else member + 4), group
    if "m16n8k8." in product.name:
        if matrix == "A":
            return (group if i < 2 else group + 8), member * 2 + (i & 1)
        return member * 2 + i, group
    if "m8n8k16" in product.name:
        return (group, member * 4 + i) if matrix == "A" else (member * 4 + i, group)
    if "m16n8k16" in product.name:
        if matrix == "A":
            row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
            return row, member * 2 + (i & 1) + (8 if i >= 4 else 0)
        return member * 2 + (i & 1) + (8 if i >= 2 else 0), group
    assert "m16n8k32" in product.name
    if matrix == "A":
        row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
        return row, member * 4 + (i & 3) + (16 if i >= 8 else 0)
    return member * 4 + (i & 3) + (16 if i >= 4 else 0), group


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: p.name)
def test_fragments_lie_as_the_ptx_isa_says(product):
    for matrix, fragment in zip("ABC", (product.a, product.b, product.c), strict=True):
        for lane in range(32):
            for i in range(fragment.count):
                assert fragment.place(lane, i) == _fragment(matrix, product, lane, i)


def test_the_bound_of_a_sum_grows_with_depth_and_magnitude():
    shallow, deep = (next(p for p in PRODUCTS if f"k{k}.row.col.f32" in p.name) for k in (8, 16))
    assert sum_error_bound(shallow, 2.0) == 2 * 9 * 2.0**-22
    assert sum_error_bound(deep, 1.0) == 17 * 2.0**-22
