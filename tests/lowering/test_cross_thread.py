import numpy as np
import pytest

import refcomp
from refcomp.certificates import certify
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Allocate, Barrier
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.passes.insert_barriers import insert_barriers
from tests.lowering.reductions import argmax, row_sums, whole_numbers
from tests.quotations import quoted
from tests.strategies.tensor_intrins import block_product, product


def _bind(stage, axis, tag):
    stage.bind(axis, refcomp.thread_axis(tag))


def _share(stage, axis, threads, tag="threadIdx.x"):
    """Threads share out the reduction along `axis`; the loop that each has for itself."""
    outer, inner = stage.split(axis, threads)
    _bind(stage, inner, tag)
    return outer


def _kernels(s, args):
    return insert_barriers(refcomp.lower(s, args))


def _count(func, cls):
    return sum(isinstance(node, cls) for node in walk(func))


def _sums(func, *shapes):
    for shape in shapes:
        values, out = whole_numbers(*shape), np.full(shape[0], 77, np.float32)
        interpret(func, [values, out])
        assert out.tolist() == values.sum(axis=tuple(range(1, len(shape)))).tolist()


def _buffers(func):
    return {node.buffer.name: node.buffer for node in walk(func) if isinstance(node, Allocate)}


_SHAPES = ((1, 1), (3, 0), (3, 2), (5, 29))


@pytest.mark.search
def test_threads_share_out_a_row(golden):
    s, a, b, k = row_sums()
    _bind(s[b], b.op.axis[0], "blockIdx.x")
    _share(s[b], k, 8)
    func = _kernels(s, [a, b])
    golden("lowering/cross_thread.txt", refcomp.print_func(func))
    _sums(func, *_SHAPES)
    certify(s, [a, b], every_step=True).require()


@pytest.mark.search
@pytest.mark.parametrize("threads", [*range(1, 10), 13, 16, 31])
def test_any_number_of_threads_needs_at_most_a_barrier_a_step(threads):
    s, a, b, k = row_sums()
    _bind(s[b], b.op.axis[0], "blockIdx.x")
    _share(s[b], k, threads)
    func = _kernels(s, [a, b])
    steps = (threads - 1).bit_length()
    assert _count(func, Barrier) <= steps and bool(_count(func, Barrier)) == (threads > 1)
    assert ("B.parts" in _buffers(func)) == (threads > 1)
    _sums(func, (2, 29))


@pytest.mark.search
def test_rows_of_threads_reduce_for_themselves(golden):
    s, a, b, k = row_sums()
    rows, row = s[b].split(b.op.axis[0], 3)  # 3 does not divide: some rows have nothing to store
    _bind(s[b], rows, "blockIdx.x")
    _bind(s[b], row, "threadIdx.y")
    _share(s[b], k, 5)
    func = _kernels(s, [a, b])
    assert [str(dim) for dim in _buffers(func)["B.parts"].shape] == ["3", "5"]
    golden("lowering/cross_thread_rows.txt", refcomp.print_func(func))
    _sums(func, *_SHAPES)
    certify(s, [a, b]).require()


def test_a_loop_around_reuses_the_memory_behind_a_barrier():
    s, a, b, k = row_sums()
    rows, _ = s[b].split(b.op.axis[0], 2)
    _bind(s[b], rows, "blockIdx.x")
    _share(s[b], k, 4)
    func = _kernels(s, [a, b])
    assert _count(func, Barrier) == 3
    _sums(func, *_SHAPES)


def test_threads_of_two_axes_and_two_reduction_axes():
    n, m, p = (refcomp.var(name) for name in "nmp")
    a = refcomp.placeholder((n, m, p), name="A")
    k, r = refcomp.reduce_axis((0, m), "k"), refcomp.reduce_axis((0, p), "r")
    b = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k, r], axis=[k, r]), name="B")
    s = refcomp.create_schedule(b.op)
    _bind(s[b], b.op.axis[0], "blockIdx.x")
    _share(s[b], k, 3, "threadIdx.z")
    _share(s[b], r, 2)
    func = _kernels(s, [a, b])
    assert [str(dim) for dim in _buffers(func)["B.parts"].shape] == ["6"]
    _sums(func, (2, 4, 5), (1, 1, 1), (2, 0, 3))


@pytest.mark.search
def test_outputs_inside_the_reduction_have_a_share_each(golden):
    n, m = refcomp.var("n"), refcomp.var("m")
    a = refcomp.placeholder((n, m, 6), name="A")
    k = refcomp.reduce_axis((0, m), "k")
    b = refcomp.compute((n, 6), lambda i, j: refcomp.sum(a[i, k, j], axis=k), name="B")
    s = refcomp.create_schedule(b.op)
    i, j = b.op.axis
    _bind(s[b], i, "blockIdx.x")
    outer, inner = s[b].split(j, 4)
    own = _share(s[b], k, 4)
    s[b].reorder(i, own, outer, inner)
    s[b].vectorize(inner)
    func = _kernels(s, [a, b])
    assert [str(dim) for dim in _buffers(func)["B.share"].shape] == ["2", "4"]
    golden("lowering/cross_thread_inside.txt", refcomp.print_func(func))
    certify(s, [a, b]).require()
    values, out = whole_numbers(3, 7, 6), np.zeros((3, 6), np.float32)
    interpret(func, [values, out])
    assert out.tolist() == values.sum(axis=1).tolist()


def test_conditions_and_tails_combine_the_identity():
    s, a, b, k = row_sums(where=lambda value: value > 0)
    _bind(s[b], b.op.axis[0], "blockIdx.x")
    _share(s[b], k, 4)
    values, out = whole_numbers(3, 6), np.zeros(3, np.float32)
    interpret(_kernels(s, [a, b]), [values, out])
    assert out.tolist() == np.where(values > 0, values, 0).sum(axis=1).tolist()
    certify(s, [a, b]).require()


def test_a_product_is_one_where_there_is_nothing():
    a = refcomp.placeholder((refcomp.var("n"), 5), "int32", "A")
    k = refcomp.reduce_axis((0, 5), "k")
    b = refcomp.compute(a.shape[:1], lambda i: refcomp.prod(a[i, k], axis=k), name="B")
    s = refcomp.create_schedule(b.op)
    _bind(s[b], b.op.axis[0], "blockIdx.x")
    _share(s[b], k, 8)
    values, out = np.full((2, 5), 2, np.int32), np.zeros(2, np.int32)
    interpret(_kernels(s, [a, b]), [values, out])
    assert out.tolist() == [32, 32]


@pytest.mark.search
def test_values_of_a_tuple_are_combined_together():
    s, a, b, k = argmax()
    _bind(s[b[0]], b[0].op.axis[0], "blockIdx.x")
    _share(s[b[0]], k, 6)
    values = whole_numbers(4, 11)
    index, value = np.zeros(4, np.int64), np.zeros(4, np.float32)
    interpret(_kernels(s, [a, *b]), [values, index, value])
    assert index.tolist() == values.argmax(axis=1).tolist()
    assert value.tolist() == values.max(axis=1).tolist()
    certify(s, [a, *b]).require()


def _factored(threads=4):
    """The classic schedule: each thread a part of the reduction, and then the parts together."""
    s, a, b, k = row_sums()
    _, inner = s[b].split(k, threads)
    made = s.rfactor(b, inner)
    rows, row = s[b].split(b.op.axis[0], 2)
    _bind(s[b], rows, "blockIdx.x")
    _bind(s[b], row, "threadIdx.y")
    tx = refcomp.thread_axis("threadIdx.x")
    rest = s[b].op.reduce_axis[0]
    s[b].bind(rest, tx)
    s[made].compute_at(s[b], rest)
    s[b].set_store_predicate(tx.var == 0)
    return s, a, b


@pytest.mark.search
def test_a_factored_reduction(golden):
    s, a, b = _factored()
    func = _kernels(s, [a, b])
    golden("lowering/cross_thread_factored.txt", refcomp.print_func(func))
    _sums(func, *_SHAPES)
    certify(s, [a, b]).require()


@pytest.mark.pocl
@pytest.mark.parametrize("threads", [4, 6])
def test_a_factored_reduction_on_a_device(threads):
    s, a, b = _factored(threads)
    module = refcomp.build(s, [a, b], target="opencl")
    for shape in ((3, 2), (5, 29)):
        values, device = whole_numbers(*shape), refcomp.opencl(0)
        x, out = (refcomp.array(v, device) for v in (values, np.full(shape[0], 77, np.float32)))
        module(x, out)
        assert out.asnumpy().tolist() == values.sum(axis=1).tolist()


def _means():
    """C reads what threads have summed, beside which the same threads compute elements."""
    n = refcomp.var("n")
    a = refcomp.placeholder((n, 12), name="A")
    k = refcomp.reduce_axis((0, 12), "k")
    b = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    c = refcomp.compute((n, 12), lambda i, j: a[i, j] * 12.0 - b[i], name="C")
    s = refcomp.create_schedule(c.op)
    i, j = c.op.axis
    rows, row = s[c].split(i, 2)
    outer, inner = s[c].split(j, 4)
    s[c].reorder(rows, row, inner, outer)
    for axis, tag in ((rows, "blockIdx.x"), (row, "threadIdx.y"), (inner, "threadIdx.x")):
        _bind(s[c], axis, tag)
    _share(s[b], k, 4)
    return s, a, b, c, (rows, row, inner)


def _check_means(s, a, c):
    func = _kernels(s, [a, c])
    values, out = whole_numbers(5, 12), np.zeros((5, 12), np.float32)
    interpret(func, [values, out])
    assert out.tolist() == (values * 12 - values.sum(axis=1, keepdims=True)).tolist()
    certify(s, [a, c]).require()
    return func


@pytest.mark.search
def test_all_threads_read_a_result_in_shared_memory():
    s, a, b, c, (rows, _, _) = _means()
    s[b].compute_at(s[c], rows)
    assert _buffers(_check_means(s, a, c))["B"].scope == "shared"


@pytest.mark.search
def test_a_stage_inside_shares_its_rows_out_too():
    s, a, b, c, (rows, _, _) = _means()
    s[b].compute_at(s[c], rows)
    _bind(s[b], b.op.axis[0], "threadIdx.y")
    func = _check_means(s, a, c)
    assert [str(dim) for dim in _buffers(func)["B.parts"].shape] == ["2", "4"]


@pytest.mark.search
@pytest.mark.parametrize("place", [1, 2])
def test_each_thread_may_keep_the_result_of_its_row(place, golden):
    s, a, b, c, loops = _means()
    s[b].compute_at(s[c], loops[place])
    func = _check_means(s, a, c)
    assert _buffers(func)["B"].scope == "local"
    assert [str(dim) for dim in _buffers(func)["B.parts"].shape] == ["2", "4"]
    if place == 2:
        golden("lowering/cross_thread_local.txt", refcomp.print_func(func))


@pytest.mark.search
def test_other_threads_stand_by():
    """Of threads that the stage does not use, the first ones reduce, or those that were chosen."""
    for chosen in (0, 1):
        s, a, b, c, (rows, _, _) = _means()
        s[b].compute_at(s[c], rows)
        s[b].set_store_predicate(refcomp.thread_axis("threadIdx.y").var == chosen)
        assert f"threadIdx.y == {chosen}" in refcomp.print_func(_check_means(s, a, c))


@pytest.mark.search
def test_what_is_read_may_be_fetched_by_the_same_threads():
    s, a, b, k = row_sums(m=32)
    copy = s.cache_read(a, "shared", [b])
    rows, row = s[b].split(b.op.axis[0], 2)
    _bind(s[b], rows, "blockIdx.x")
    _bind(s[b], row, "threadIdx.y")
    outer, inner = s[b].split(k, 8)
    _bind(s[b], inner, "threadIdx.x")
    s[copy].compute_at(s[b], outer)
    x, y = s[copy].op.axis
    _bind(s[copy], x, "threadIdx.y")
    _bind(s[copy], y, "threadIdx.x")
    _sums(_kernels(s, [a, b]), (1, 32), (5, 32))
    certify(s, [a, b]).require()


def test_results_that_differ_within_a_row():
    n = refcomp.var("n")
    a = refcomp.placeholder((n, 12), name="A")
    k = refcomp.reduce_axis((0, 12), "k")
    b = refcomp.compute((n,), lambda i: refcomp.sum(a[i, k], axis=k), name="B")
    c = refcomp.compute((n,), lambda i: b[i] * 2.0, name="C")
    s = refcomp.create_schedule(c.op)
    rows, row = s[c].split(c.op.axis[0], 4)
    _bind(s[c], rows, "blockIdx.x")
    _bind(s[c], row, "threadIdx.x")
    _share(s[b], k, 4)
    s[b].compute_at(s[c], row)
    with pytest.raises(
        UserError, match=r"threads of threadIdx.x share(.|\n)*set_scope\(.shared.\)"
    ):
        refcomp.lower(s, [a, c])
    s[b].set_scope("shared")
    values, out = whole_numbers(6, 12), np.zeros(6, np.float32)
    interpret(_kernels(s, [a, c]), [values, out])
    assert out.tolist() == (values.sum(axis=1) * 2).tolist()


def test_rows_of_unknown_number():
    s, a, b, k = row_sums()
    rows, row = s[b].split(b.op.axis[0], nparts=2)
    _bind(s[b], rows, "blockIdx.x")
    _bind(s[b], row, "threadIdx.y")
    _share(s[b], k, 4)
    with pytest.raises(
        UserError, match=r"threads of threadIdx.y(.|\n)*split axis i.inner of stage"
    ):
        refcomp.lower(s, [a, b])


def test_outputs_of_unknown_number_inside_the_reduction():
    s, a, b, k = row_sums()
    rows, row = s[b].split(b.op.axis[0], nparts=2)
    _bind(s[b], rows, "blockIdx.x")
    own = _share(s[b], k, 4)
    s[b].reorder(rows, own, row)
    with pytest.raises(UserError, match=r"loop i.inner over the output(.|\n)*reorder i.inner"):
        refcomp.lower(s, [a, b])


def test_groups_cannot_combine():
    s, _, b, k = row_sums()
    _, inner = s[b].split(k, 4)
    with pytest.raises(Unsupported, match=r"groups of threads cannot wait(.|\n)*rfactor"):
        _bind(s[b], inner, "blockIdx.x")


def test_not_by_intrinsic():
    a, b, c, k = product(8, 4, 8)
    s = refcomp.create_schedule(c)
    i, j = c.op.axis
    outer, inner = s[c].split(k, 2)
    s[c].reorder(outer, i, j, inner)
    s[c].tensorize(i, block_product(8, 4, 2))
    _bind(s[c], outer, "threadIdx.x")
    with pytest.raises(Unsupported, match=r"rfactor the axis that threads") as caught:
        refcomp.lower(s, [a, b, c])
    assert quoted(caught.value, "tensorized here") == "s[c].tensorize(i, block_product(8, 4, 2))"


@pytest.mark.search
def test_virtual_threads_have_rows_of_their_own():
    s, a, b, k = row_sums(m=7)
    outer, inner = s[b].split(b.op.axis[0], 2)
    s[b].bind(outer, refcomp.thread_axis("blockIdx.x"))
    s[b].bind(inner, refcomp.thread_axis("vthread"))
    _share(s[b], k, 4)
    assert certify(s, [a, b], every_step=True).holds
