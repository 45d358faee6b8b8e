"""Registered functions get copies as NDArrays, and the program gets what they write."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.foundation.lent_arrays import LentMemory, call_with_copies
from refcomp.foundation.registry import remove_global_func

TARGETS = ["interp", pytest.param("llvm", marks=pytest.mark.llvm)]


def _call(function, target="interp", count=4, dtype="float32"):
    """Return what `function(a, b)` makes of 0, 1, ... and zeros, and the input afterwards."""
    rc.register_func("tests.lent", function, override=True)
    try:
        a = rc.placeholder((count,), dtype, name="A")
        b = rc.extern(
            (count,), [a], lambda ins, outs: rc.call_packed("tests.lent", ins[0], outs[0]), name="B"
        )
        given, found = rc.array(np.arange(count), dtype=dtype), rc.array(np.zeros(count, dtype))
        rc.build(rc.create_schedule(b), [a, b], target=target)(given, found)
    finally:
        remove_global_func("tests.lent")
    return found.asnumpy().tolist(), given.asnumpy().tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_the_callback_of_the_classic_tutorial_runs(target):
    def add_one(x, y):
        rc.nd.array(x.asnumpy() + 1).copyto(y)

    assert _call(add_one, target)[0] == [1, 2, 3, 4]


@pytest.mark.parametrize("target", TARGETS)
def test_buffers_arrive_as_ndarrays(target):
    seen = []

    def note(x, y):
        seen.append((type(x), x.shape, x.dtype, x.ndim, x.device, x.ctx, x.numpy().tolist()))
        y[:] = np.sort(x)[::-1] + np.add(x, 1) + np.sum(x)

    assert _call(note, target)[0] == [10, 10, 10, 10]
    assert seen == [(rc.nd.NDArray, (4,), "float32", 1, rc.cpu(0), rc.cpu(0), [0, 1, 2, 3])]


@pytest.mark.parametrize("target", TARGETS)
def test_parts_of_an_output_are_written_through_numpy(target):
    def write_part(x, y):
        y.numpy()[1:3] = x[1:3] * 2

    assert _call(write_part, target)[0] == [0, 2, 4, 0]


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_of_the_caller_is_never_written(target):
    def write_input(x, y):
        elements = x.numpy()
        with pytest.raises(ValueError, match="read-only"):
            elements[0] = 9
        with pytest.raises(UserError, match=r"read-only\n(.|\n)*an input of the operation"):
            x.copyfrom(np.ones(4))
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            elements.flags.writeable = True
        copied = elements
        while isinstance(copied.base, np.ndarray):
            copied = copied.base
        copied.flags.writeable = True
        copied[:] = 9
        y[:] = x

    assert _call(write_input, target) == ([9, 9, 9, 9], [0, 1, 2, 3])


@pytest.mark.parametrize("target", TARGETS)
def test_kept_arrays_stay_valid(target):
    kept = []

    def keep(x, y):
        y[:] = 7
        kept.extend([x, y, x.numpy(), y.numpy()])

    found, _ = _call(keep, target, count=100_000)
    assert found == [7] * 100_000
    kept[1][:] = 8  # writes the copy alone
    assert kept[0].asnumpy().tolist() == list(range(100_000))
    assert kept[3].tolist() == [8] * 100_000 and set(found) == {7}


def test_memory_that_is_passed_twice_is_one_array():
    memory = np.zeros(3)

    def add(first, second, read):
        first.numpy()[0] = 1
        second.numpy()[1] = 2
        assert first is second and read.asnumpy().tolist() == [0, 0, 0]

    call_with_copies(
        add, [LentMemory(memory, True), LentMemory(memory, True), LentMemory(memory, False)]
    )
    assert memory.tolist() == [1, 2, 0]


def test_a_function_that_raises_changes_nothing():
    memory = np.zeros(3)

    def fail(x):
        x[:] = 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        call_with_copies(fail, [LentMemory(memory, True)])
    assert memory.tolist() == [0, 0, 0]


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_may_build_and_call_with_its_arrays(target):
    a = rc.placeholder((4,), name="A")
    b = rc.compute((4,), lambda i: a[i] * 3.0, name="B")
    inner = rc.build(rc.create_schedule(b), [a, b], target=target)
    assert _call(lambda x, y: inner(x, y), target)[0] == [0, 3, 6, 9]
