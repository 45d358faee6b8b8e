"""Runs of machine code on this host that detect what a caller would not see.

Each array lies between guard bytes that nobody may write. The code runs twice: with other guard
bytes, other contents of fresh heap memory, and another number of threads. Results that differ
depend on reads beyond an array or of uninitialised memory. Heap memory must be freed.

The code may crash, so it must run in a child. Needs glibc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.artifacts import Binary
from refcomp.oracle.tensors.arrays import Array
from refcomp.runtime.host.machine_code import load_shared_object

_GUARD_BYTES = 256  # before and behind each array; a multiple of every alignment
# The parameter of glibc's mallopt for the byte that fills fresh and freed memory.
_M_PERTURB = -6
_MAX_KEPT_BYTES = 4096  # of heap memory after a run: Python itself allocates, too
_OUT_OF_MEMORY = 1  # the status that a function returns
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of running a program."""

    arrays: tuple[Array, ...]  # the arguments after the first run
    fault: str = ""  # what went wrong
    failed: bool = False  # it reported that it lacks memory


def run_on_host(binary: Binary, name: str, arrays: Sequence[Array]) -> Ran:
    """Run the function `name` of the shared object twice on copies of `arrays`."""
    function = getattr(load_shared_object(binary), machine_symbol(name))
    function.restype = ctypes.c_int32
    first = _run(function, arrays, byte=0x5A, threads=3)
    second = _run(function, arrays, byte=0xC3, threads=1)
    fault = first.fault or second.fault
    pairs = zip(first.arrays, second.arrays, strict=True)
    if not fault and any(a.tobytes() != b.tobytes() for a, b in pairs):
        fault = "the results depend on memory that is not the program's"
    return Ran(first.arrays, fault, first.failed and second.failed)


_MALLINFO = (
    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
)


class _MallInfo(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _MALLINFO.split())


def _bytes_in_use() -> int:
    """Return the bytes allocated on the main thread's heap and in mappings of their own."""
    _LIBC.mallinfo2.restype = _MallInfo
    info = _LIBC.mallinfo2()
    return int(info.uordblks + info.hblkhd)


def _run(
    function: Callable[..., int], arrays: Sequence[Array], byte: int, threads: int
) -> Ran:
    """Run a compiled function on guarded copies of `arrays`.

    Args:
        function: the C function.
        arrays: its arguments.
        byte: the first array's guard bytes, and what fills fresh heap memory.
        threads: how many it may use.
    """
    # Other guard bytes for each array, so that no array is read in place of another.
    guards = [(byte + k) % 256 for k in range(len(arrays))]
    copies = []
    for array, guard in zip(arrays, guards, strict=True):
        copy = np.full(array.nbytes + 2 * _GUARD_BYTES, guard, np.uint8)
        inside = np.frombuffer(array.tobytes(), np.uint8)
        copy[_GUARD_BYTES : _GUARD_BYTES + array.nbytes] = inside
        copies.append(copy)
    _LIBC.mallopt(_M_PERTURB, byte)
    addresses = [ctypes.c_void_p(copy.ctypes.data + _GUARD_BYTES) for copy in copies]
    before = _bytes_in_use()
    status = function(*addresses, ctypes.c_int32(threads))
    kept = _bytes_in_use() - before
    fault = ""
    # Libraries that start threads keep some memory for good; one thread alone does not.
    if threads == 1 and kept > _MAX_KEPT_BYTES:
        fault = "it keeps memory"
    results = []
    for array, guard, copy in zip(arrays, guards, copies, strict=True):
        around = np.concatenate([copy[:_GUARD_BYTES], copy[-_GUARD_BYTES:]])
        if (around != guard).any():
            fault = "it writes beyond an array"
        inside = copy[_GUARD_BYTES : _GUARD_BYTES + array.nbytes]
        result = np.frombuffer(inside.tobytes(), array.dtype)
        results.append(result.reshape(array.shape))
    if status not in (0, _OUT_OF_MEMORY):
        fault = f"it returns {status}"
    return Ran(tuple(results), fault, status == _OUT_OF_MEMORY)
