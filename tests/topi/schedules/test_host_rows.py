"""The host's schedule of rows: which reductions it takes, where, and their results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import VECTORIZED, Allocate, For
from refcomp.lowering.lower import lower
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.te.tensor import var
from refcomp.topi.normalization.softmax import softmax, softmax_numpy
from refcomp.topi.reduction.sums import sum as sum_along
from refcomp.topi.schedules.host_rows import vector_lanes
from refcomp.topi.schedules.llvm import schedule_llvm, stored_tensors
from tests.strategies.operands import integers, seeds, tensors


def _lowered(data, output):
    schedule = schedule_llvm([output])
    assert stored_tensors(schedule) == ()
    return lower(schedule, [data, output], "f")


def _of_class(func, cls):
    return [node for node in walk(func.body) if isinstance(node, cls)]


def test_a_row_is_computed_whole_inside_the_loop_over_rows() -> None:
    (data,) = tensors((var("n"), 40))
    func = _lowered(data, softmax(data))
    rows = func.body
    assert isinstance(rows, For)
    shapes = {
        node.buffer.name: [extent.value for extent in node.buffer.shape]
        for node in _of_class(func, Allocate)
    }
    assert shapes["greatest"] == shapes["total"] == [1]
    assert shapes["power"] == [1, 40]
    # Five vectors at once, which are added up in the end, and then its halves.
    partial = ["total.rf", "total.rf.1", "total.rf.2"]
    assert [shapes[name] for name in partial] == [[1, 40], [1, 8], [1, 4]]
    lanes = {loop.extent.value for loop in _of_class(func, For) if loop.kind == VECTORIZED}
    assert lanes == {8, 4}


def test_sums_are_stored_once() -> None:
    (data,) = tensors((3, 32))
    func = _lowered(data, sum_along(data, axis=1))
    local = [node.buffer for node in _of_class(func, Allocate)]
    assert {buffer.scope for buffer in local} == {"local"}


def test_lanes_divide_a_row_if_they_can() -> None:
    (data,) = tensors((4,))
    lengths = {1: 1, 7: 7, 16: 16, 49: 7, 56: 8, 1000: 8, 1024: 16, 1021: 16}
    assert {length: vector_lanes(length, data) for length in lengths} == lengths
    wide = refcomp.placeholder((4,), "float64")
    assert vector_lanes(1024, wide) == 8


def _interpreted(output, data, array):
    func = _lowered(data, output)
    result = np.full([extent.value for extent in output.shape], np.nan, np.float32)
    interpret(func, [array, result])
    return result


_shapes = st.lists(st.integers(1, 40), min_size=1, max_size=3)


@given(_shapes, seeds)
def test_sums_of_any_rows_are_right(shape, seed):
    shape[-1] += 3
    (data,) = tensors(tuple(shape))
    array = integers(seed, *shape)
    for axis in (-1, None):
        result = _interpreted(sum_along(data, axis=axis), data, array)
        np.testing.assert_array_equal(result, array.sum(axis=axis))


@given(st.integers(4, 90), seeds)
def test_a_single_row_is_right(length, seed):
    (data,) = tensors((length,))
    array = integers(seed, length)
    result = _interpreted(softmax(data), data, array)
    np.testing.assert_allclose(result, softmax_numpy(array), rtol=1e-5)


@pytest.mark.llvm
@pytest.mark.parametrize("length", [5, 64, 67, 1000])
def test_machine_code_is_right(length):
    (data,) = tensors((3, length))
    output = sum_along(data, axis=1)
    built = refcomp.build(schedule_llvm([output]), [data, output], "llvm")
    array = integers(length, 3, length)
    result = np.full(3, np.nan, np.float32)
    built(array, result)
    np.testing.assert_array_equal(result, array.sum(axis=1))
