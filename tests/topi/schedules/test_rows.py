"""Chains of rows: which stages are one, who shares a row, and that results stay."""

import pytest

from refcomp.schedule.schedule import create_schedule
from refcomp.te import maths
from refcomp.te.operation import compute
from refcomp.te.reducer import max as max_over
from refcomp.te.reducer import reduce_axis
from refcomp.te.reducer import sum as sum_over
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import var
from refcomp.topi.elementwise.activations import relu
from refcomp.topi.normalization.softmax import softmax
from refcomp.topi.pooling.global_pool import global_avg_pool2d
from refcomp.topi.schedules.rows import find_rows
from refcomp.topi.tags import REDUCTION
from tests.strategies.operands import tensors
from tests.topi.schedules.scheduled import (
    EVERYWHERE,
    check,
    conflicts,
    loops,
    lowered,
    profiled,
    scope_of,
)


def chain_of(output):
    schedule = create_schedule(output)
    return find_rows(schedule, output.op, [stage.op for stage in schedule.stages])


def members(output):
    return [member.op.name for member in chain_of(output).members]


def row_sum(data, name="total"):
    *kept, length = data.shape
    k = reduce_axis(length, "k")
    return compute(kept, lambda *i: sum_over(data[*i, k], k), name=name, tag=REDUCTION)


def normalized(data):
    """Layer normalization, as a chain of two statistics."""
    length = data.shape[-1].value
    mean = row_sum(data, "sum")

    def centred(*i):
        return data[i] - mean[i[:-1]] / float(length)

    k = reduce_axis(length, "r")
    square = compute(
        data.shape[:-1],
        lambda *i: sum_over(centred(*i, k) * centred(*i, k), k),
        name="square",
        tag=REDUCTION,
    )
    return compute(
        data.shape,
        lambda *i: centred(*i) / maths.sqrt(square[i[:-1]] / float(length) + 1.0),
        name="normalized",
        tag=INJECTIVE,
    )


def log_sum(data):
    """The logarithm of a sum of exponentials: the root has one element for each row."""
    k, r = (reduce_axis(data.shape[1], name) for name in "kr")
    greatest = compute(
        data.shape[:1], lambda i: max_over(data[i, k], k), name="greatest", tag=REDUCTION
    )
    total = compute(
        data.shape[:1],
        lambda i: sum_over(maths.exp(data[i, r] - greatest[i]), r),
        name="total",
        tag=REDUCTION,
    )
    return compute(
        data.shape[:1], lambda i: maths.log(total[i]) + greatest[i], name="log_sum", tag=INJECTIVE
    )


def test_softmax_is_one_chain_over_the_axis_that_it_sums():
    (data,) = tensors((4, 6))
    for axis, row in ((0, "i0"), (1, "i1")):
        output = softmax(data, axis=axis)
        assert members(output) == ["inverse", "total", "power", "greatest"]
        chain = chain_of(output)
        assert [one.name for one in chain.row] == [row]
        assert chain.is_contiguous == (axis == 1)


def test_a_root_of_one_element_a_row_has_no_axis_along_it():
    (data,) = tensors((4, 6))
    chain = chain_of(log_sum(data))
    assert (len(chain.kept), chain.row, chain.length) == (1, (), 6)
    assert chain.is_contiguous


def test_a_reduction_by_itself_is_a_chain():
    (data,) = tensors((4, 6))
    assert members(row_sum(data)) == []


def test_what_reduces_nothing_is_not_a_chain():
    (data,) = tensors((4, 6))
    assert chain_of(relu(data)) is None


def test_a_sum_of_sums_is_two_kernels():
    (data,) = tensors((4, 6))
    assert members(row_sum(row_sum(data))) == []


def test_a_statistic_that_is_read_across_rows_keeps_its_memory():
    (data,) = tensors((4, 4))
    total = row_sum(data)
    last = compute((4, 4), lambda i, j: total[i] + total[j], name="last", tag=INJECTIVE)
    assert chain_of(last) is None


def test_statistics_of_rows_and_of_columns_are_two_kernels():
    (data,) = tensors((4, 5))
    rows = row_sum(data)
    k = reduce_axis(4, "k")
    columns = compute((5,), lambda j: sum_over(data[k, j], k), name="columns", tag=REDUCTION)
    last = compute((4, 5), lambda i, j: rows[i] + columns[j], name="last", tag=INJECTIVE)
    assert members(last) == ["columns"]


def test_an_axis_of_one_element_is_kept_and_reduced_alike():
    (data,) = tensors((1, 9))
    assert members(softmax(data)) == ["inverse", "total", "power", "greatest"]


def test_a_long_row_is_shared_by_the_threads_of_a_group():
    (data,) = tensors((3, 1000))
    func = lowered([data], softmax(data))
    assert loops(func, "blockIdx.x") == [3]
    assert loops(func, "threadIdx.x") == [256]
    scopes = [scope_of(func, name) for name in ("greatest", "power", "total")]
    assert scopes == ["local", "shared", "local"]


def test_a_group_has_several_short_rows():
    (data,) = tensors((100, 5))
    func = lowered([data], softmax(data))
    sizes = [loops(func, tag) for tag in ("blockIdx.x", "threadIdx.y", "threadIdx.x")]
    assert sizes == [[13], [8], [8]]
    assert scope_of(func, "power") is None, "it is computed twice"


def test_what_does_not_fit_in_shared_memory_is_computed_twice():
    (data,) = tensors((2, 4097))
    assert scope_of(lowered([data], softmax(data)), "power") is None


def test_a_thread_has_a_row_whose_elements_lie_apart():
    (data,) = tensors((5, 100))
    func = lowered([data], softmax(data, axis=0))
    assert [loops(func, tag) for tag in ("blockIdx.x", "threadIdx.x")] == [[2], [64]]
    assert scope_of(func, "total") == "local"


def test_symbolic_rows_are_shared_by_a_group():
    (data,) = tensors((3, var("n")))
    assert loops(lowered([data], softmax(data)), "threadIdx.x") == [64]


def cases():
    (long,) = tensors((3, 600))
    yield "long", [long], softmax(long)
    (short,) = tensors((21, 5))
    yield "short", [short], softmax(short)
    yield "across", [short], softmax(short, axis=0)
    (half,) = tensors((2, 70), dtype="float16")
    yield "half", [half], softmax(half)
    yield "normalized", [long], normalized(long)
    yield "log_sum", [short], log_sum(short)
    (image,) = tensors((2, 3, 7, 7))
    yield "image", [image], global_avg_pool2d(image)
    (vector,) = tensors((300,))
    yield "vector", [vector], row_sum(vector)
    (whole,) = tensors((4, 33), dtype="int32")
    yield "whole", [whole], row_sum(relu(whole))
    (wide,) = tensors((2, 4100))
    yield "wide", [wide], softmax(wide)


CASES = list(cases())
NAMES = [name for name, _, _ in CASES]


@pytest.mark.parametrize("way", EVERYWHERE)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_results_stay(case, way):
    check(way, case[1], case[2])


@pytest.mark.rocm
@pytest.mark.parametrize("gpu", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("axis", [0, 1])
def test_all_bytes_that_move_are_used_and_banks_do_not_conflict(gpu, axis):
    (data,) = tensors((64, 256) if axis else (16, 512))
    _, (report,) = profiled([data], softmax(data, axis=axis), gpu)
    assert report.efficiency == 1
    assert conflicts(report) == 0
