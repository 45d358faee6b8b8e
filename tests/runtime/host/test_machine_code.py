"""Machine code: loading, the calling convention, threads, failures and the remedies told."""

import ctypes
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from refcomp.foundation.artifacts import Binary, Signature
from refcomp.foundation.dtype import SCALAR_DTYPES, to_numpy
from refcomp.foundation.errors import CompilerBug, ToolchainError, UserError
from refcomp.runtime.arrays.ndarray import array, empty
from refcomp.runtime.arrays.scalars import typed_scalar
from refcomp.runtime.host import machine_code as host
from refcomp.runtime.host.machine_code import HostFunction, load_shared_object, require_library
from refcomp.runtime.host.threads import set_thread_count
from refcomp.runtime.module import Module

llvm = pytest.mark.llvm


# ---- calling ---------------------------------------------------------------------------------


@llvm
def test_adds_vectors(module: Module) -> None:
    a, b = np.arange(5, dtype=np.float32), np.full(5, 2, np.float32)
    c = np.zeros(5, np.float32)
    assert module["add"](a, b, c) is None
    assert c.tolist() == [2, 3, 4, 5, 6]
    out = empty(5)
    module["add"](array(a), b, out)
    assert out.asnumpy().tolist() == [2, 3, 4, 5, 6]


@llvm
def test_empty_arrays(module: Module) -> None:
    module["add"](*(np.zeros(0, np.float32) for _ in range(3)))


@llvm
@pytest.mark.parametrize("is_bound", [False, True])
@pytest.mark.parametrize("pick", [min, max])
def test_every_scalar_arrives_with_its_bits(module: Module, is_bound: bool, pick) -> None:
    values = [
        True if d.is_bool else pick(d.min_value, d.max_value) if d.is_int else pick(-2.5, 3.25)
        for d in SCALAR_DTYPES
    ]
    stored = np.zeros(8 * len(SCALAR_DTYPES), np.uint8)
    if is_bound:
        module["scalars"].bind(stored, *values)()
    else:
        module["scalars"](stored, *values)
    for position, (dtype, value) in enumerate(zip(SCALAR_DTYPES, values, strict=True)):
        raw = stored[8 * position : 8 * position + dtype.bytes]
        assert raw.view(to_numpy(dtype))[0] == typed_scalar(dtype, value), dtype
        assert not stored[8 * position + dtype.bytes : 8 * position + 8].any(), dtype


@llvm
def test_the_number_of_threads_is_passed_and_may_change(module: Module) -> None:
    seen = np.zeros(1, np.int32)
    bound = module["threads"].bind(seen)
    try:
        for count in (1, 3, 2):
            set_thread_count(count)
            bound()
            assert seen[0] == count
            seen[0] = 0
            module["threads"](seen)
            assert seen[0] == count
    finally:
        set_thread_count(None)


@llvm
def test_a_bound_call_sees_the_arrays_as_they_are_then(module: Module) -> None:
    a, b, c = (np.zeros(4, np.float32) for _ in range(3))
    bound = module["add"].bind(a, b, c)
    a[:], b[:] = 1, 2
    bound()
    assert c.tolist() == [3, 3, 3, 3]


@llvm
def test_a_bound_call_keeps_its_arrays_alive(module: Module) -> None:
    bound = module["add"].bind(
        *(np.ones(1 << 18, np.float32) for _ in range(2)), out := empty(1 << 18)
    )
    del module
    gc.collect()
    rubble = [np.full(1 << 18, 9, np.float32) for _ in range(8)]
    bound()
    assert out.asnumpy().sum() == 2 * (1 << 18)
    del rubble


@llvm
def test_many_threads_call_one_function(module: Module) -> None:
    function = module["add"]

    def work(seed: int) -> bool:
        ok = True
        for step in range(50):
            size = 1 + (seed * 7 + step) % 97
            a = np.full(size, seed, np.float32)
            c = np.zeros(size, np.float32)
            function(a, np.full(size, step, np.float32), c)
            ok = ok and bool((c == seed + step).all())
        return ok

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(32)))


@llvm
def test_calls_run_at_the_same_time(module: Module) -> None:
    """Each of two calls waits for the other: with the interpreter lock held they would give up."""
    inside = np.zeros(1, np.int32)
    failures: list[BaseException] = []

    def enter() -> None:
        try:
            module["meet"](inside)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert inside[0] == 2


# ---- failures --------------------------------------------------------------------------------


@llvm
def test_status_one_is_lack_of_memory(module: Module) -> None:
    for call in (module["no_memory"], module["no_memory"].bind()):
        with pytest.raises(MemoryError, match=r"^no_memory could not allocate its temporary buff"):
            call()


@llvm
def test_any_other_status_is_a_bug(module: Module) -> None:
    for call in (module["broken"], module["broken"].bind()):
        with pytest.raises(CompilerBug, match=r"broken returned 7\n.*the number of an exception"):
            call()


@llvm
def test_a_function_that_is_not_there(binary: Binary) -> None:
    library = load_shared_object(binary)
    with pytest.raises(
        UserError, match=r"the shared object has no function 'nothing'\n(.|\n)*again"
    ):
        HostFunction(Signature("f", ()), library, "nothing")


def test_other_formats_are_refused() -> None:
    with pytest.raises(UserError, match=r"format 'o' cannot be loaded\n.*link it to a shared obj"):
        load_shared_object(Binary(b"", "o"))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"not machine code" * 100])
def test_rubbish_is_refused_by_the_loader(data: bytes) -> None:
    with pytest.raises(ToolchainError) as caught:
        load_shared_object(Binary(data, "so"))
    assert caught.value.what == "the dynamic loader refuses the compiled code"
    assert caught.value.stderr
    assert caught.value.remedy == "compile it again for this machine"


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            "libgomp.so.1: cannot open shared object file: No such file or directory",
            "install the library libgomp.so.1: apt-get install libgomp1",
        ),
        (
            "libother.so: cannot open shared object file: No such file or directory",
            "install the library libother.so",
        ),
        ("module.so: undefined symbol: foo", "compile it again for this machine"),
    ],
)
def test_what_the_loader_says_has_a_remedy(
    monkeypatch: pytest.MonkeyPatch, message: str, remedy: str
) -> None:
    def refuse(path: str, mode: int) -> None:
        raise OSError(message)

    monkeypatch.setattr(host.ctypes, "CDLL", refuse)
    with pytest.raises(ToolchainError) as caught:
        load_shared_object(Binary(b"", "so"))
    assert caught.value.stderr == message
    assert caught.value.remedy == remedy


def test_needed_libraries_are_sought() -> None:
    require_library("libc.so.6")
    with pytest.raises(ToolchainError) as caught:
        require_library("libnowhere.so.3")
    assert "needs the library libnowhere.so.3, which cannot be loaded" in caught.value.what
    assert caught.value.remedy == "install libnowhere.so.3"


# ---- files -----------------------------------------------------------------------------------


def test_the_file_is_in_memory_and_closed_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []

    def look(path: str, mode: int) -> object:
        assert mode == os.RTLD_LOCAL | os.RTLD_NOW
        assert Path(path).read_bytes() == b"data"
        assert os.readlink(path).startswith("/memfd:refcomp")
        paths.append(path)
        return object()

    monkeypatch.setattr(host.ctypes, "CDLL", look)
    before = os.listdir("/proc/self/fd")
    for _ in range(20):
        load_shared_object(Binary(b"data", "so"))
    # The loader would take two files of one path for one object.
    assert len(set(paths)) == 20
    assert os.listdir("/proc/self/fd") == before


def test_the_file_is_closed_when_loading_fails() -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ToolchainError):
        load_shared_object(Binary(b"rubbish", "so"))
    assert os.listdir("/proc/self/fd") == before


@llvm
def test_names_are_not_visible_to_other_objects(binary: Binary) -> None:
    load_shared_object(binary)
    with pytest.raises(AttributeError):
        _ = ctypes.CDLL(None).mangled_threads
