"""needed_guards: what an attached stage computes beyond its tensor, when that does no harm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import refcomp
from refcomp.ir.rewrite import buffers_in, walk
from refcomp.ir.stmt import BufferStore, IfThenElse
from refcomp.oracle.lockstep.interpret import interpret


def _guards_of(func, name):
    """How many conditions stand around the stores to the buffer of that name."""
    conditions = [item for item in walk(func.body) if isinstance(item, IfThenElse)]
    return sum(
        any(isinstance(i, BufferStore) and i.buffer.name == name for i in walk(condition))
        for condition in conditions
    )


def _packed_product(n, m, k, rows, columns):
    """C = A B, with B in panels of whole tiles, and the sums of a tile in local memory."""
    a, b = refcomp.placeholder((n, k), name="A"), refcomp.placeholder((k, m), name="B")
    panels = -(-m // columns)

    def element(p, r, j):
        inside = p * columns + j < m
        return refcomp.if_then_else(inside, b[r, p * columns + j], refcomp.const(0.0, "float32"))

    packed = refcomp.compute((panels, k, columns), element, name="P")
    r = refcomp.reduce_axis((0, k), name="r")
    c = refcomp.compute(
        (n, m),
        lambda i, j: refcomp.sum(a[i, r] * packed[j // columns, r, j % columns], axis=r),
        name="C",
    )
    schedule = refcomp.create_schedule(c)
    local = schedule.cache_write(c, "local")
    _, tile, _, _ = schedule[c].tile(*c.op.axis, rows, columns)
    schedule[local].compute_at(schedule[c], tile)
    schedule[local].reorder(*local.op.reduce_axis, *local.op.axis)
    return schedule, [a, b, c]


def test_sums_over_whole_panels_have_no_guard_of_columns():
    schedule, args = _packed_product(8, 10, 3, 4, 4)
    func = refcomp.lower(schedule, args)
    assert _guards_of(func, "C.local") == 0
    assert _guards_of(func, "C") == 1


def test_rows_that_are_not_there_are_not_read():
    schedule, args = _packed_product(7, 10, 3, 4, 4)
    assert _guards_of(refcomp.lower(schedule, args), "C.local") == 2  # to begin with, and to add


@pytest.mark.search
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 4))
def test_products_of_all_sizes(n, m, rows, columns):
    schedule, args = _packed_product(n, m, 3, rows, columns)
    func = refcomp.lower(schedule, args)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((n, 3), (3, m)))
    result = np.full((n, m), 99, np.float32)
    interpret(func, [a, b, result])  # it refuses what is out of range or was never written
    np.testing.assert_array_equal(result, a @ b)


def _chain(n, factor, reach):
    """C[i] = B[i] + B[i + reach], B = A + 1: a tile of C at a time, with what it needs of B."""
    a = refcomp.placeholder((n + reach,), name="A")
    b = refcomp.compute((n + reach,), lambda i: a[i] + 1, name="B")
    c = refcomp.compute((n,), lambda i: b[i] + b[i + reach], name="C")
    schedule = refcomp.create_schedule(c)
    outer, _ = schedule[c].split(c.op.axis[0], factor=factor)
    schedule[b].compute_at(schedule[c], outer)
    return schedule, [a, c]


def test_a_guard_that_keeps_reads_inside_stays():
    schedule, args = _chain(10, 4, 2)
    assert _guards_of(refcomp.lower(schedule, args), "B") == 1
    schedule, args = _chain(12, 4, 2)
    assert _guards_of(refcomp.lower(schedule, args), "B") == 0


@pytest.mark.parametrize("place", ["root", "attached"])
def test_a_stage_at_the_root_keeps_its_guards(place):
    """Its memory is as large as its tensor, and not as its loops."""
    b = refcomp.compute((10,), lambda i: i * 2, name="B")
    c = refcomp.compute((10,), lambda i: b[i] + 1, name="C")
    schedule = refcomp.create_schedule(c)
    outer, _ = schedule[c].split(c.op.axis[0], factor=4)
    schedule[b].split(b.op.axis[0], factor=4)
    if place == "attached":
        schedule[b].compute_at(schedule[c], outer)
    func = refcomp.lower(schedule, [c])
    assert _guards_of(func, "B") == (1 if place == "root" else 0)
    result = np.zeros(10, np.int32 if c.dtype == "int32" else np.int64)
    interpret(func, [result])
    np.testing.assert_array_equal(result, np.arange(10) * 2 + 1)


def test_a_split_that_leaves_the_region_is_guarded():
    b = refcomp.compute((12,), lambda i: i * 2, name="B")
    c = refcomp.compute((12,), lambda i: b[i] + 1, name="C")
    schedule = refcomp.create_schedule(c)
    outer, _ = schedule[c].split(c.op.axis[0], factor=4)
    schedule[b].compute_at(schedule[c], outer)
    schedule[b].split(b.op.axis[0], factor=3)
    assert _guards_of(refcomp.lower(schedule, [c]), "B") == 1


def test_a_gather_keeps_its_guards():
    a = refcomp.placeholder((10,), "int64", name="A")
    index = refcomp.placeholder((10,), "int64", name="I")
    b = refcomp.compute((10,), lambda i: a[refcomp.maximum(index[i], 0) % 10], name="B")
    c = refcomp.compute((10,), lambda i: b[i] + 1, name="C")
    schedule = refcomp.create_schedule(c)
    outer, _ = schedule[c].split(c.op.axis[0], factor=4)
    schedule[b].compute_at(schedule[c], outer)
    func = refcomp.lower(schedule, [a, index, c])
    assert _guards_of(func, "B") == 1
    assert any(buffer.name == "I" for item in walk(func.body) for buffer in buffers_in(item))
