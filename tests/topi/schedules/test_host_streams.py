"""The host's schedule of products that read a large matrix once."""

import numpy as np
import pytest

import refcomp
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, For
from refcomp.lowering.lower import lower
from refcomp.topi.contraction.dense import matmul, matmul_numpy
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.schedules.host_products import find_host_product
from refcomp.topi.schedules.host_streams import is_streamed
from refcomp.topi.schedules.llvm import schedule_llvm
from refcomp.topi.schedules.vector_registers import AVX2, AVX512
from tests.strategies.operands import integers, tensors


def test_a_large_product_of_one_row_is_streamed() -> None:
    a, b = tensors((1, 256), (256, 1024))
    found = find_host_product(matmul(a, b).op)
    assert is_streamed(found, AVX2) and is_streamed(found, AVX512)
    product = matmul(a, b)
    func = lower(schedule_llvm([product], "llvm -mcpu=x86-64-v3"), [a, b, product], "f")
    # All sums stay in memory: four rows of b are added to them at once.
    assert not [node for node in walk(func.body) if isinstance(node, Allocate)]
    loops = [node for node in walk(func.body) if isinstance(node, For)]
    assert [loop.extent.value for loop in loops if loop.kind == "unrolled"] == [4]
    assert [loop.extent.value for loop in loops if loop.kind == "serial"][-2:] == [64, 128]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 512), (512, 64)),
        ((9, 4096), (4096, 4096)),
        ((8, 1024), (1024, 1024)),
        ((1, 512), (512, 1021)),
    ],
    ids=["small", "nine rows", "small for eight rows", "masks"],
)
def test_other_products_are_not_streamed(left, right) -> None:
    a, b = tensors(left, right)
    assert not is_streamed(find_host_product(matmul(a, b).op), AVX2)


def test_the_sums_of_all_rows_of_a_streamed_product_stay_in_the_cache() -> None:
    a, b = tensors((4, 256), (256, 4096))
    product = matmul(a, b)
    assert is_streamed(find_host_product(product.op), AVX2)
    func = lower(schedule_llvm([product], "llvm -mcpu=x86-64-v3"), [a, b, product], "f")
    assert not [node for node in walk(func.body) if isinstance(node, Allocate)]
    loops = [node for node in walk(func.body) if isinstance(node, For)]
    # Four rows of a are set to 0, and then multiplied by four rows of b. 16 KiB of sums are 128
    # vectors of each row.
    assert [loop.extent.value for loop in loops if loop.kind == "unrolled"] == [4, 4, 4]
    assert [loop.extent.value for loop in loops if loop.kind == "serial"][-2:] == [64, 128]


@pytest.mark.llvm
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize(("batch", "rows"), [((), 1), ((2,), 1), ((2,), 2)], ids=str)
def test_a_streamed_product_and_what_follows_are_right(level, batch, rows) -> None:
    a, b = tensors((*batch, rows, 257), (*batch, 257, 1040))
    output = relu(matmul(a, b))
    target = f"llvm -mcpu={level}"
    module = refcomp.build(schedule_llvm([output], target), [a, b, output], target)
    assert is_streamed(find_host_product(matmul(a, b).op), AVX2)
    given = integers(0, *batch, rows, 257), integers(1, *batch, 257, 1040)
    result = np.empty((*batch, rows, 1040), np.float32)
    module(*given, result)
    np.testing.assert_array_equal(result, np.maximum(matmul_numpy(*given), 0))
