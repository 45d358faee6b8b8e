"""The host's schedule of dot products: what it finds, its tiles, and their results."""

import numpy as np
import pytest

from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.topi.contraction.dense import gemm, gemm_numpy
from refcomp.topi.schedules.host_dots import choose_dot_tile, find_host_dot
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors
from refcomp.topi.schedules.vector_registers import AVX2, AVX512, NEON, SSE
from tests.strategies.operands import integers, tensors


def _interpreted(inputs, output, arrays):
    func = lower(schedule_llvm([output]), [*inputs, output], "f")
    result = np.full([extent.value for extent in output.shape], np.nan, np.float32)
    interpret(func, [*arrays, result])
    return result


@pytest.mark.parametrize("registers", [SSE, AVX2, AVX512, NEON], ids=str)
def test_sums_and_operands_of_a_step_fit_the_registers_of_each_processor(registers) -> None:
    for rows, columns in ((64, 1024), (6, 10), (7, 11)):
        a, b = tensors((rows, 64), (columns, 64))
        dot = find_host_dot(gemm(a, b, trans_b=True).op, registers)
        row, column = choose_dot_tile(dot, registers)
        assert row * column + column + 1 <= registers.count


def test_dot_products_share_the_vectors_of_both_factors() -> None:
    a, b, c = tensors((6, 64), (10, 64), (10,))
    product = gemm(a, b, trans_b=True)
    found = find_host_dot(product.op, AVX512)
    assert (found.row, found.column, found.lanes) == (0, 1, 16)
    output = gemm(a, b, c, trans_b=True)
    schedule = schedule_llvm([output], "llvm -mcpu=x86-64-v4")
    assert stored_tensors(schedule) == ()
    func = lower(schedule, [a, b, c, output], "f")
    shapes = {
        node.buffer.name: [extent.value for extent in node.buffer.shape]
        for node in walk(func.body)
        if isinstance(node, Allocate)
    }
    # Vectors are halved twice, and four lanes are added one by one.
    assert shapes.pop("gemm") == [3, 2]
    assert shapes == {"gemm.rf": [3, 2, 16], "gemm.rf.1": [3, 2, 8], "gemm.rf.2": [3, 2, 4]}
    arrays = [integers(k, *shape) for k, shape in enumerate(((6, 64), (10, 64), (10,)))]
    result = _interpreted([a, b, c], output, arrays)
    np.testing.assert_array_equal(result, gemm_numpy(*arrays, trans_b=True))


def test_a_single_row_shares_nothing() -> None:
    a, b = tensors((1, 64), (10, 64))
    assert find_host_dot(gemm(a, b, trans_b=True).op, AVX512) is None
    a, b = tensors((6, 63), (10, 63))  # no whole vectors
    assert find_host_dot(gemm(a, b, trans_b=True).op, AVX512) is None
