"""Joined calls: several calls of machine code as one call of C, without Python between them.

Modules of several functions have a function `refcomp.call_all`, which makes calls from a table
(`templates/llvm/joined_calls.j2`). A call that fails ends the run. Its error names its function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from refcomp.runtime.host.machine_code import BoundCall, failure
from refcomp.runtime.host.threads import shared_thread_count

Call = Callable[[], None]


def join_calls(calls: Sequence[Call]) -> Call:
    """Return a callable that makes all calls in order, in one call of C if it can.

    Args:
        calls: results of `Function.bind`. Calls of another device, and of functions with scalar
            arguments, are made one by one.
    """
    joined = [call for call in calls if isinstance(call, BoundCall) and call.can_join]
    if len(calls) > 1 and len(joined) == len(calls):
        return JoinedCalls(joined)
    kept = tuple(calls)

    def call_each() -> None:
        for call in kept:
            call()

    return call_each


class JoinedCalls:
    """Calls of machine code that are made by one call of C.

    Args:
        calls: at least one. All can be joined.
    """

    __slots__ = ("_arguments", "_call_all", "_calls", "_table")

    def __init__(self, calls: Sequence[BoundCall]) -> None:
        self._calls = tuple(calls)
        call_all = calls[0].call_all
        assert call_all is not None
        self._call_all = call_all
        # The table has the addresses of the arguments, so that they must live as long as it does.
        self._arguments = [call.argument_words() for call in calls]
        words = []
        for call, arguments in zip(calls, self._arguments, strict=True):
            words += [call.caller, call.function, ctypes.addressof(arguments)]
        self._table = (ctypes.c_uint64 * len(words))(*words)

    def __call__(self) -> None:
        failed = ctypes.c_int64(0)
        count = ctypes.c_int64(len(self._calls))
        threads = shared_thread_count()
        status = self._call_all(self._table, count, ctypes.byref(failed), threads)
        if status:
            raise failure(self._calls[failed.value].name, status)
