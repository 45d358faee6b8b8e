"""Calls of registered functions from machine code."""

import gc
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.foundation.registry import register_func, remove_global_func
from refcomp.ir.parser import parse_func
from refcomp.runtime.host.machine_code import callback

pytestmark = pytest.mark.llvm
HEAD = "func f(A: f32[n, 2], B: i64[n] out, k: i64) "


def build(text, head=HEAD, target="llvm"):
    return refcomp.build(parse_func(head + "{" + text + "}"), target=target)


def arrays(n=3):
    return np.arange(2 * n, dtype=np.float32).reshape(n, 2), np.zeros(n, np.int64)


@pytest.fixture
def register():
    names = []

    def registered(name, f):
        names.append(name)
        register_func(name, f)

    yield registered
    for name in names:
        remove_global_func(name)


@pytest.mark.parametrize("target", ["interp", "llvm"])
def test_arguments_arrive(register, target):
    seen = []
    register("tests.f", lambda *args: seen.append(args))
    head = "func f(A: f32[n, 2], P: bool[n], H: bf16[1], k: i8, u: u64, x: f16, y: bf16, b: bool) "
    module = build("packed tests.f(read(A), read(P), read(H), k, u, x, y, b, n)", head, target)
    a, p, h = arrays()[0], np.array([True, False, True]), np.array([1.5], ml_dtypes.bfloat16)
    module(a, p, h, -7, 2**63 + 1, np.float16(0.5), ml_dtypes.bfloat16(2.5), True)
    (args,) = seen
    arrived = [x.numpy() for x in args[:3]]
    assert [(x.dtype, x.tolist()) for x in arrived] == [(x.dtype, x.tolist()) for x in (a, p, h)]
    assert args[3:] == (-7, 2**63 + 1, 0.5, 2.5, True, 3)
    assert [type(x) for x in args[3:]] == [int, int, float, float, bool, int]


def test_the_caller_gets_what_is_written(register):
    def fill(a, b):
        assert not a.numpy().flags.writeable
        b[:] = np.sum(a, axis=1)

    register("tests.fill", fill)
    a, b = arrays()
    build("packed tests.fill(read(A), write(B))")(a, b, 0)
    assert b.tolist() == [1, 5, 9]


def test_empty_arrays(register):
    shapes = []
    register("tests.shapes", lambda *args: shapes.extend(x.shape for x in args))
    build("packed tests.shapes(read(A), write(B))")(*arrays(0), 0)
    assert shapes == [(0, 2), (0,)]


@pytest.mark.parametrize("error", [KeyError("x"), KeyboardInterrupt(), UserError("mine")])
def test_what_is_raised_reaches_the_caller_and_ends_the_calls(register, error):
    called = []

    def fail():
        called.append(1)
        raise error

    register("tests.fail", fail)
    module = build("packed tests.fail() packed tests.fail()")
    for call in (lambda: module(*arrays(), 0), module.entry.bind(*arrays(), 0)):
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error
        assert caught.traceback[-1].name == "fail"
    assert len(called) == 2 and not callback._raised


def test_what_was_raised_is_not_kept(register):
    class Mine(Exception):
        pass

    def fail():
        raise Mine

    register("tests.fail", fail)
    with pytest.raises(Mine) as caught:
        build("packed tests.fail()")(*arrays(), 0)
    seen = weakref.ref(caught.value)
    del caught
    gc.collect()
    assert seen() is None


def test_errors_that_nobody_asks_for_are_forgotten(monkeypatch):
    monkeypatch.setattr(callback, "_MAX_KEPT", 3)
    numbers = [callback._keep(ValueError(k)) for k in range(5)]
    kept = [callback.take_raised(number) for number in numbers]
    assert [k if k is None else k.args[0] for k in kept] == [None, None, 2, 3, 4]


def test_in_parallel_regions(register):
    seen, lock = [], threading.Lock()

    def note(i):
        with lock:
            seen.append(i)
        if i == 61:
            raise ValueError(i)

    register("tests.note", note)
    module = build("for i in range(k) parallel { packed tests.note(i) }")
    module(*arrays(), 60)
    assert sorted(seen) == list(range(60))
    with pytest.raises(ValueError, match="61"):
        module(*arrays(), 64)


def test_each_of_several_threads_gets_its_own_error(register):
    barrier = threading.Barrier(4)

    def fail(k):
        barrier.wait(timeout=60)
        raise ValueError(k)

    register("tests.fail", fail)
    module, got = build("packed tests.fail(k)"), {}

    def call(k):
        with pytest.raises(ValueError) as caught:
            module(*arrays(), k)
        got[k] = caught.value.args[0]

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {k: k for k in range(4)}


def test_a_function_may_call_the_module_again(register):
    module = build(
        "B[0] = B[0] + k if (k > 0) { packed tests.again(update(B), k - 1) }".replace(
            " if", "\n if"
        )
    )
    depths = []

    def again(b, k):
        depths.append(k)
        module(arrays()[0], b, k)

    register("tests.again", again)
    _, b = arrays()
    module(arrays()[0], b, 4)
    assert b[0] == 10 and depths == [3, 2, 1, 0]


def test_a_name_is_looked_up_at_each_call(register):
    module = build("packed tests.late()")
    with pytest.raises(UserError, match="no function 'tests.late' is registered"):
        module(*arrays(), 0)
    called = []
    register("tests.late", lambda: called.append(1))
    module(*arrays(), 0)
    register_func("tests.late", lambda: called.append(2), override=True)
    module(*arrays(), 0)
    assert called == [1, 2]


def test_a_module_file_calls_back(register, tmp_path):
    called = []
    register("tests.f", lambda k: called.append(k))
    path = tmp_path / "f.refcomp"
    build("packed tests.f(k)").save(path)
    refcomp.load_module(path)(*arrays(), 5)
    assert called == [5]


def test_a_bare_shared_object_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"cannot be written as a bare shared object\n(.|\n)*save"):
        build("packed tests.f(k)").export_library(tmp_path / "f.so")
    build("B[0] = k").export_library(tmp_path / "g.so")


def test_a_parallel_loop_keeps_what_each_call_writes(register):
    """Each call stores a copy of all of B: such loops run in order, by one thread."""

    def count(i, b):
        b.numpy()[i] += i

    register("tests.count", count)
    _, b = arrays(40)
    build("for i in range(n) parallel { packed tests.count(i, update(B)) }")(arrays(40)[0], b, 0)
    assert b.tolist() == list(range(40))


def test_threads_call_back_with_arrays_of_their_own(register):
    barrier = threading.Barrier(4)

    def fill(a, b, k):
        barrier.wait(timeout=60)
        b[:] = np.sum(a, axis=1) + k

    register("tests.fill", fill)
    module = build("packed tests.fill(read(A), write(B), k)")
    made = [arrays() for _ in range(4)]
    threads = [threading.Thread(target=module, args=(a, b, k)) for k, (a, b) in enumerate(made)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [b.tolist() for _, b in made] == [[1 + k, 5 + k, 9 + k] for k in range(4)]
