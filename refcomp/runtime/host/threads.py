"""The number of threads of a parallel region.

It is $REFCOMP_NUM_THREADS, else $OMP_NUM_THREADS, else the number of processors that this process
may use. One shared C integer holds the number, and every call passes it on. So a change also
reaches functions whose arguments were bound before.

A forked child keeps the number: its pool of threads starts threads of its own.
"""

import ctypes
import os
import reprlib

from refcomp.foundation.errors import UserError

MAX_THREADS = 1024

_VARIABLE = "REFCOMP_NUM_THREADS"


class _Threads:
    """The state of this process. A count of 0 means that the number is not yet known."""

    def __init__(self) -> None:
        self.count = ctypes.c_int32(0)


_THREADS = _Threads()


def thread_count() -> int:
    """Return the maximum number of threads of a parallel region, at least 1.

    Example::

        >>> rc.runtime.thread_count() >= 1
        True
    """
    return shared_thread_count().value


def shared_thread_count() -> ctypes.c_int32:
    """Return the C integer that holds `thread_count()` now and after later changes."""
    if _THREADS.count.value == 0:
        set_thread_count(None)
    return _THREADS.count


def set_thread_count(count: int | None) -> None:
    """Set the maximum number of threads of a parallel region, from now on.

    Args:
        count: an int from 1 to 1024. None reads $REFCOMP_NUM_THREADS and $OMP_NUM_THREADS again.

    Raises:
        UserError: the number is not such an int.

    Example::

        >>> before = rc.runtime.thread_count()
        >>> rc.runtime.set_thread_count(1)
        >>> rc.runtime.thread_count()
        1
        >>> rc.runtime.set_thread_count(before)
    """
    count = _count_from_environment() if count is None else count
    if not isinstance(count, int) or not 1 <= count <= MAX_THREADS:
        raise UserError(
            f"{count!r} is not a number of threads",
            remedy=f"use a number from 1 to {MAX_THREADS}",
        )
    _THREADS.count.value = count


def _count_from_environment() -> int:
    if text := os.environ.get(_VARIABLE, "").strip():
        is_short = text.isascii() and text.isdigit() and len(text) < 10
        if is_short and 1 <= int(text) <= MAX_THREADS:
            return int(text)
        raise UserError(
            f"{_VARIABLE} is {reprlib.repr(text)}, which is not a number of threads",
            where=f"environment variable {_VARIABLE}",
            remedy=f"set it to a number from 1 to {MAX_THREADS}, or unset it",
        )
    # OpenMP's variable may be a list with a number for each level of nesting. Like OpenMP's
    # library, ignore any other text.
    outermost = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    digits = outermost.lstrip("0")
    is_number = outermost.isascii() and digits.isdigit() and len(digits) < 10
    return min(int(digits) if is_number else usable_cores(), MAX_THREADS)


def usable_cores() -> int:
    """Return the number of processors that this process may use, at least 1.

    Variables and `set_thread_count` do not change it.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
