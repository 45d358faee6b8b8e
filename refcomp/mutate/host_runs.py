"""Runs machine code of this host on numbers, and notices what a caller would not.

Each array stands between margins that nobody may write, and the code runs twice: with other
margins, other bytes in fresh memory on the heap, and another number of threads. What differs hangs
on what was read beyond an array, or was never written. Memory of the heap must be given back.
Belongs into a child: the code may crash. Needs glibc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.artifacts import Binary
from refcomp.runtime.host.machine_code import load_shared_object

_MARGIN = 256  # bytes; a multiple of every alignment
_M_PERTURB = -6  # of mallopt: which bytes fresh and freed memory holds (glibc)
_KEPT = 4096  # bytes that may be more in use afterwards: Python itself runs, too
_OUT_OF_MEMORY = 1
_LIBC = ctypes.CDLL(None)
_RUNS = ((0x5A, 3), (0xC3, 1))  # the bytes around, and how many threads


@dataclass(frozen=True, slots=True)
class Ran:
    """The arrays after the first run, what went wrong, in words ('' for nothing), and whether it
    said that it lacks memory."""

    arrays: tuple[Any, ...]
    fault: str = ""
    failed: bool = False


def run_on_host(binary: Binary, name: str, arrays: Sequence[Any]) -> Ran:
    """Runs the function `name` of the shared object on copies of `arrays`."""
    function = getattr(load_shared_object(binary), machine_symbol(name))
    function.restype = ctypes.c_int32
    first, second = (
        _GuardedRun(arrays, byte).call(function, threads) for byte, threads in _RUNS
    )
    fault = first.fault or second.fault
    pairs = zip(first.arrays, second.arrays, strict=True)
    if not fault and not all(a.tobytes() == b.tobytes() for a, b in pairs):
        fault = "the results hang on memory that is not the program's"
    return Ran(first.arrays, fault, first.failed and second.failed)


class _Heap(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _bytes_in_use() -> int:
    """Of the main thread's heap, and of what is mapped for itself."""
    _LIBC.mallinfo2.restype = _Heap
    heap = _LIBC.mallinfo2()
    return int(heap.uordblks + heap.hblkhd)


class _GuardedRun:
    def __init__(self, arrays: Sequence[Any], byte: int) -> None:
        self._byte, self._given = byte, arrays
        # Other bytes around each array, so that none is taken for another's.
        self._memory = [
            np.full(array.nbytes + 2 * _MARGIN, (byte + k) % 256, np.uint8)
            for k, array in enumerate(arrays)
        ]
        for memory, array in zip(self._memory, arrays, strict=True):
            memory[_MARGIN : _MARGIN + array.nbytes] = np.frombuffer(
                array.tobytes(), np.uint8
            )

    def call(self, function: Any, threads: int) -> Ran:
        _LIBC.mallopt(_M_PERTURB, self._byte)
        places = [
            ctypes.c_void_p(memory.ctypes.data + _MARGIN) for memory in self._memory
        ]
        count, before = ctypes.c_int32(threads), _bytes_in_use()
        status = function(*places, count)
        # Libraries that start threads keep some memory for good; one thread alone does not.
        kept = _bytes_in_use() - before if threads == 1 else 0
        fault = self._written_beyond() or ("it keeps memory" if kept > _KEPT else "")
        fault = f"it returns {status}" if status not in (0, _OUT_OF_MEMORY) else fault
        arrays = tuple(map(self._taken, self._memory, self._given))
        return Ran(arrays, fault, status == _OUT_OF_MEMORY)

    def _written_beyond(self) -> str:
        for k, memory in enumerate(self._memory):
            margins = np.concatenate([memory[:_MARGIN], memory[-_MARGIN:]])
            if (margins != (self._byte + k) % 256).any():
                return "it writes beyond an array"
        return ""

    def _taken(self, memory: Any, given: Any) -> Any:
        inside = memory[_MARGIN : _MARGIN + given.nbytes].tobytes()
        return np.frombuffer(inside, given.dtype).reshape(given.shape)
