"""Settings of Python during a compilation: deeper recursion, and no garbage collection.

A tree of nodes is as deep as the user's expression, and most rooms walk trees by recursion. So the
public functions of these rooms raise Python's recursion limit by `deep_recursion`. Deeper trees are
refused. The settings belong to the whole process: the first thread that needs one changes it,
and the last one restores it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from refcomp.foundation.errors import Unsupported

# Python frames for trees about 3,000 nodes deep, which use less than 4 MiB of the C stack.
MAX_FRAMES = 20_000


class _Shared:
    """A setting of the process. Its first user changes it, and its last user restores it.

    `change` changes the setting, and returns a function that restores it.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change = change
        self._lock = Lock()
        self._users = 0
        self._restore: Callable[[], None] | None = None

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._restore = self._change()
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._restore is not None:
                self._restore()


def _raise_limit() -> Callable[[], None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, MAX_FRAMES))

    def restore() -> None:
        sys.setrecursionlimit(before)

    return restore


def _pause_collector() -> Callable[[], None]:
    if not gc.isenabled():
        return lambda: None
    gc.disable()
    return gc.enable


_recursion = _Shared(_raise_limit)
_collector = _Shared(_pause_collector)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise the recursion limit for the body, or for the function that it decorates.

    Raises Unsupported instead of RecursionError.
    """
    _recursion.enter()
    try:
        yield
    except RecursionError:
        # `from None`, since the traceback of the cause has as many entries as frames.
        raise Unsupported(
            "the program is nested too deeply",
            why=f"to walk it takes more than {sys.getrecursionlimit()} nested Python calls",
            remedy="split long expressions into several computes, and do not inline all of them",
        ) from None
    finally:
        _recursion.leave()


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector for the body.

    Nodes do not form cycles. Scanning hundreds of thousands of them again and again would take
    longer than making them.
    """
    _collector.enter()
    try:
        yield
    finally:
        _collector.leave()


def collect_young() -> None:
    """Free the cycles among the objects that were made since the last collection.

    Call it between two pieces of work while the collector is paused. Recursive functions that keep
    results are such cycles. Each object is scanned once, however many there are.
    """
    gc.collect(0)
