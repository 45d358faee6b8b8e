"""Bounds of what the user's own loops, and functions that they call, make of inexact inputs."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.oracle.floats.error_bounds import bound_errors
from refcomp.oracle.tensors.evaluate import evaluate


def bounded(statement, values=(1.1, 3.0, 7.0, 9.0), scale=None, dtype="float32", after=None):
    """The bounds of extern(T), and its values by numpy, for T = A * scale."""
    n = rc.var("n")
    a = rc.placeholder((n,), dtype, name="A")
    t = a if scale is None else rc.compute((n,), lambda i: a[i] * scale, name="T")
    e = rc.extern((n,), [t], statement, name="E")
    output = e if after is None else rc.compute((n,), lambda i: after(e, i), name="B")
    feeds = {a: np.asarray(values, dtype)}
    return bound_errors([output], feeds)[0], evaluate([output], feeds)[0]


def _loop(body):
    def statement(ins, outs):
        ib, (n,) = rc.ir_builder.create(), ins[0].shape
        with ib.for_range(0, n, name="y") as y:
            body(ib, ins[0], outs[0], y)
        return ib.get()

    return statement


def _store(value):
    return _loop(lambda ib, source, target, y: ib.emit(target.vstore(y, value(source[y]))))


def _exact_error(found, actual):
    return np.abs(actual.astype(np.longdouble) - found.value)


def test_each_operation_of_a_loop_rounds():
    found, actual = bounded(_store(lambda x: x / 3.0 + 0.1))
    off = _exact_error(found, actual)
    assert (off <= found.error).all() and (found.error > 0).all()
    assert found.error.max() < 1e-6


def test_errors_of_inputs_travel_and_exact_values_stay_exact():
    assert not bounded(_store(lambda x: x * 2))[0].error.any()
    inexact, actual = bounded(_store(lambda x: x * 2), scale=0.1)
    assert (inexact.error > 0).all()
    assert (_exact_error(inexact, actual) <= inexact.error).all()


def test_what_is_written_is_read_again():
    def running(ib, source, target, y):
        with ib.if_scope(y < 1):
            ib.emit(target.vstore(y, source[y]))
        with ib.else_scope():
            ib.emit(target.vstore(y, target.vload(y - 1) * 0.1 + source[y]))

    found, actual = bounded(_loop(running))
    assert (_exact_error(found, actual) <= found.error).all()
    assert found.error[0] == 0 and (found.error[1:] > 0).all()


def test_lets_and_memory_of_its_own():
    def statement(ins, outs):
        ib, (n,) = rc.ir_builder.create(), ins[0].shape
        kept = ib.allocate("float32", (n,), name="kept")
        with ib.for_range(0, n, name="y") as y:
            kept[y] = ins[0][y] * 0.1
        with ib.for_range(0, n, name="z") as z:
            ib.emit(outs[0].vstore(z, kept[n - 1 - z]))
        return ib.get()

    found, actual = bounded(statement)
    assert (_exact_error(found, actual) <= found.error).all() and (found.error > 0).all()


@pytest.mark.parametrize("scale", [None, 0.1])
def test_an_undecided_condition_leaves_nothing_known(scale):
    def chosen(ib, source, target, y):
        with ib.if_scope(source[y] > 0.7):
            ib.emit(target.vstore(y, source[y]))
        with ib.else_scope():
            ib.emit(target.vstore(y, -source[y]))

    found, actual = bounded(_loop(chosen), scale=scale)
    assert np.isinf(found.error).all() == (scale is not None)
    assert np.array_equal(found.nearest, actual)


def _half(source, target):
    target[...] = source.asnumpy() / 2


@pytest.mark.parametrize("scale", [None, 0.1])
def test_a_function_gives_what_it_gives_for_what_is_exact(scale):
    rc.register_func("tests.half", _half, override=True)
    call = lambda ins, outs: rc.call_packed("tests.half", *ins, *outs)  # noqa: E731
    found, actual = bounded(call, scale=scale, after=lambda e, i: e[i] + 1.0)
    assert np.array_equal(found.nearest, actual)
    assert np.isfinite(found.error).all() == (scale is None)


def test_nothing_to_write():
    found, actual = bounded(_store(lambda x: x * 2), values=())
    assert found.error.shape == actual.shape == (0,)
