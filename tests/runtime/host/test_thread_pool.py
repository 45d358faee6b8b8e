"""The pool of threads: sharing, nesting, forks, and many threads that want it at once."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.registry import register_func, remove_global_func
from refcomp.ir.parser import parse_func
from refcomp.runtime.host import thread_pool

pytestmark = pytest.mark.llvm

_ROWS = 1000
Register = Callable[[str, Callable[[int], None]], None]


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = rc.runtime.thread_count()
    rc.runtime.set_thread_count(4)
    yield
    rc.runtime.set_thread_count(before)


def _parallel_module(factor: float, name: str = "scale") -> rc.runtime.Module:
    a = rc.placeholder((_ROWS, 8), name="A")
    b = rc.compute((_ROWS, 8), lambda i, j: a[i, j] * factor, name="B")
    schedule = rc.create_schedule(b)
    schedule[b].parallel(b.op.axis[0])
    return rc.build(schedule, [a, b], name=name)


def _assert_scales(module: rc.runtime.Module, factor: float) -> None:
    a = np.arange(_ROWS * 8, dtype="float32").reshape(_ROWS, 8)
    b = np.zeros_like(a)
    module(a, b)
    np.testing.assert_array_equal(b, a * np.float32(factor))


def _pool_of(library: ctypes.CDLL) -> int | None:
    return ctypes.c_void_p.in_dll(library, thread_pool.VARIABLE).value


def test_modules_share_one_pool(tmp_path: Path) -> None:
    _assert_scales(_parallel_module(2.0), 2.0)
    for number in range(2):
        path = tmp_path / f"{number}.so"
        _parallel_module(3.0 + number).export_library(path)
        library = ctypes.CDLL(str(path))
        own = _pool_of(library)
        thread_pool.connect(library)
        assert _pool_of(library) == thread_pool._pool[0] != own


def test_any_number_of_threads_runs_each_task_once() -> None:
    module = _parallel_module(2.0)
    for count in (1, 2, 3, 7, 40):
        rc.runtime.set_thread_count(count)
        _assert_scales(module, 2.0)


def test_thousands_of_regions_of_changing_width() -> None:
    """Late workers of one region meet the next ones."""
    module = _parallel_module(2.0)
    a = np.ones((_ROWS, 8), "float32")
    b = np.zeros_like(a)
    bound = module.entry.bind(a, b)
    for turn in range(3000):
        rc.runtime.set_thread_count(2 + turn % 5)
        b[::97] = 0
        bound()
        assert b.all()


def _in_threads(count: int, work: Callable[[], None]) -> None:
    """Run `work` in several threads; raise what one of them raised."""
    errors = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # shown by the caller
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_python_threads_that_call_at_once() -> None:
    """One gets the pool; regions of the others run in their callers."""
    module = _parallel_module(2.0)

    def work() -> None:
        for _ in range(200):
            _assert_scales(module, 2.0)

    _in_threads(4, work)


@pytest.fixture
def register() -> Iterator[Register]:
    names = []

    def registered(name: str, function: Callable[[int], None]) -> None:
        names.append(name)
        register_func(name, function)

    yield registered
    for name in names:
        remove_global_func(name)


def _calling(function: str) -> rc.runtime.Module:
    """Return a module that calls a registered function in each iteration of a parallel loop."""
    body = f"for i in range(64) parallel {{ packed {function}(i)  A[i] = 1.0f32 }}"
    return rc.build(parse_func(f"func f(A: f32[64] out) {{ {body} }}"))


def test_a_region_inside_of_a_region_runs_in_its_caller(register: Register) -> None:
    inner = _parallel_module(5.0)
    register("tests.nested", lambda _: _assert_scales(inner, 5.0))
    a = np.zeros(64, "float32")
    _calling("tests.nested")(a)
    assert a.all()


def test_an_exception_in_a_task_is_raised_and_frees_the_pool(register: Register) -> None:
    def fail(number: int) -> None:
        if number == 40:
            raise ValueError("task 40")

    register("tests.fail", fail)
    a = np.zeros(64, "float32")
    module = _calling("tests.fail")
    for _ in range(3):
        with pytest.raises(ValueError, match="task 40"):
            module(a)
    _assert_scales(_parallel_module(2.0), 2.0)


_FORK = """
import os, sys
import numpy as np
from refcomp.runtime import load_module, set_thread_count

def threads():
    return len(os.listdir("/proc/self/task"))

def check(what, call):
    b[:] = 0
    call()
    print(what, (b == 2 * a).all(), threads(), flush=True)

set_thread_count(3)
a = np.arange(8000, dtype="float32").reshape(1000, 8)
b = np.zeros_like(a)
scale = load_module(sys.argv[1])["scale"]
bound = scale.bind(a, b)
before = threads()
bound()
print("workers", threads() - before, flush=True)
if os.fork() == 0:
    check("child, bound before", bound)
    check("child, called", lambda: scale(a, b))
    check("child, loaded", lambda: load_module(sys.argv[1])["scale"](a, b))
    if os.fork() == 0:
        check("grandchild", bound)
        os._exit(0)
    os.wait()
    os._exit(0)
_, status = os.wait()
print("status", status, flush=True)
bound()
"""


def test_a_forked_child_starts_threads_of_its_own(tmp_path: Path) -> None:
    _parallel_module(2.0).save(tmp_path / "module")
    script = tmp_path / "script.py"
    script.write_text(_FORK)
    # The limit ends a hang, which is how this fails; it measures nothing.
    done = subprocess.run(
        [sys.executable, script, tmp_path / "module"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "workers 2",
        "child, bound before True 3",
        "child, called True 3",
        "child, loaded True 3",
        "grandchild True 3",
        "status 0",
    ]


def test_a_bare_shared_object_has_a_pool_of_its_own(tmp_path: Path) -> None:
    """Without refcomp, nobody connects it."""
    path = tmp_path / "scale.so"
    _parallel_module(2.0).export_library(path)
    scale = ctypes.CDLL(str(path)).scale
    a = np.ones((_ROWS, 8), "float32")
    b = np.zeros_like(a)
    assert scale(ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(b.ctypes.data), 3) == 0
    assert (b == 2).all()


_CLOSE = """
import _ctypes, ctypes, os, sys, time
library = ctypes.CDLL(sys.argv[1])
a = (ctypes.c_float * 8000)(*[1.0] * 8000)
b = (ctypes.c_float * 8000)()
status = library.scale(a, b, 2)
_ctypes.dlclose(library._handle)
time.sleep(0.1)  # the worker goes to sleep, in code of the object
child = os.fork()
if child == 0:
    os._exit(7)
_, ended = os.waitpid(child, 0)
print(status, b[0], os.waitstatus_to_exitcode(ended))
"""


def test_a_shared_object_stays_while_its_threads_run(tmp_path: Path) -> None:
    """A closed object still has workers, and a handler that each fork calls."""
    path = tmp_path / "scale.so"
    _parallel_module(2.0).export_library(path)
    script = tmp_path / "script.py"
    script.write_text(_CLOSE)
    done = subprocess.run(
        [sys.executable, script, path], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 2.0 7\n", "")


def test_a_module_without_regions_is_left_alone() -> None:
    thread_pool.connect(ctypes.CDLL(None))
