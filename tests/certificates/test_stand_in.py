"""Smaller computations for the same schedule: what is shortened, kept and left over."""

import pytest

import refcomp as rc
from refcomp.certificates import certify
from refcomp.certificates.stand_in import factors_of, find_stand_in, points_of, trips_of


def _product(size, factor=16, thread=None):
    a, b = (rc.placeholder((size, size), name=name) for name in "AB")
    k = rc.reduce_axis((0, size), "k")
    c = rc.compute((size, size), lambda i, j: rc.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = rc.create_schedule(c)
    _, inner = s[c].split(c.op.axis[1], factor=factor)
    s[c].vectorize(inner)
    return s, [a, b, c]


def _shapes(found):
    return [tuple(dim.value for dim in arg.shape) for arg in found.args]


def test_what_factors_leave_over_is_kept():
    s, args = _product(1000)
    assert factors_of(s) == [16]
    found = find_stand_in(s, args, {}, 200_000)
    assert found.extents == {"C.i": 40, "C.j": 40, "C.k": 40}  # two wholes of 16, and 1000 % 16
    assert _shapes(found) == [(40, 40)] * 3
    assert points_of(found.schedule, {}) == 40**3
    assert list(map(str, found.schedule.steps)) == list(map(str, s.steps))


def test_less_is_taken_where_less_is_asked_for():
    s, args = _product(1000)
    assert find_stand_in(s, args, {}, 20_000).extents["C.i"] == 24
    assert find_stand_in(s, args, {}, 600).extents["C.i"] == 8
    assert find_stand_in(s, args, {}, 3) is None


def test_producers_are_as_long_as_what_is_read_of_them():
    a = rc.placeholder((100, 102), name="A")
    t = rc.compute((100, 102), lambda i, j: a[i, j] + 1, name="T")
    b = rc.compute((100, 50), lambda i, j: t[i, 2 * j] + t[i, 2 * j + 2], name="B")
    found = find_stand_in(rc.create_schedule(b), [a, b], {}, 1000)
    rows, columns = _shapes(found)[1]
    assert _shapes(found)[0] == (rows, 2 * columns + 1)
    assert certify(found.schedule, found.args).holds


def test_what_is_not_known_keeps_its_size():
    a, at = rc.placeholder((500,), name="A"), rc.placeholder((500,), "int32", name="I")
    b = rc.compute((500,), lambda i: a[at[i]] + a[499 - i], name="B")
    found = find_stand_in(rc.create_schedule(b), [a, at, b], {}, 100)
    assert _shapes(found)[0] == (500,)
    assert _shapes(found)[1] == _shapes(found)[2] == (found.extents["B.i"],)
    assert certify(found.schedule, found.args).holds


def test_symbols_stay_symbols():
    n = rc.var("n")
    a = rc.placeholder((n, 300), name="A")
    b = rc.compute((n, 300), lambda i, j: a[i, j] + 1, name="B")
    found = find_stand_in(rc.create_schedule(b), [a, b], {n: 5}, 200)
    assert found.args[0].shape[0] is n and "B.i" not in found.extents


def test_a_schedule_that_fits_no_smaller_axis_has_no_stand_in():
    a = rc.placeholder((640,), name="A")
    b = rc.compute((640,), lambda i: a[i] + 1, name="B")
    s = rc.create_schedule(b)
    s[b].bind(b.op.axis[0], rc.thread_axis((0, 640), "threadIdx.x"))
    assert find_stand_in(s, [a, b], {}, 100) is None


def test_tensors_that_steps_made_are_found_again():
    s, args = _product(100)
    local = s.rfactor(args[2], args[2].op.reduce_axis[0])
    found = find_stand_in(s, [*args, local], {}, 5000)
    assert found.args[3].op.name == "C.rf"
    assert certify(found.schedule, found.args).holds


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_reductions_of_several_values(dtype):
    a = rc.placeholder((90, 80), dtype, name="A")
    k = rc.reduce_axis((0, 80), "k")
    pair = rc.comm_reducer(
        lambda x, y: (x[0] + y[0], rc.maximum(x[1], y[1])),
        lambda p, q: (rc.const(0, p), rc.min_value(q)),
        name="pair",
    )
    b = rc.compute((90,), lambda i: pair((a[i, k], a[i, k]), axis=k), name="B")
    s = rc.create_schedule(b[0].op)
    found = find_stand_in(s, [a, *b], {}, 500)
    assert points_of(found.schedule, {}) <= 500
    assert certify(found.schedule, found.args).holds


def test_extern_operations_and_scans_have_none():
    n = rc.var("n")
    a, state = rc.placeholder((8, n), name="A"), rc.placeholder((8, n), name="state")
    b = rc.extern((8, n), [a], _copied, name="B")
    s = rc.create_schedule(b)
    assert points_of(s, {n: 5}) == trips_of(b.op.body, {n: 5}) == 40
    assert find_stand_in(s, [a, b], {n: 5}, 10) is None
    init = rc.compute((1, n), lambda t, i: a[t, i], name="init")
    update = rc.compute((8, n), lambda t, i: state[t - 1, i] + a[t, i], name="U")
    rows = rc.scan(init, update, state)
    assert find_stand_in(rc.create_schedule(rows), [a, rows], {n: 5}, 10) is None


def _copied(ins, outs):
    ib, (rows, n) = rc.ir_builder.create(), ins[0].shape
    with ib.for_range(0, rows, name="y") as y, ib.for_range(0, n, name="x") as x:
        ib.emit(outs[0].vstore((y, x), ins[0][y, x]))
    return ib.get()
