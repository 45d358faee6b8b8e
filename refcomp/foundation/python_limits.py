"""What compiling asks of Python itself: deeper recursion, and no garbage collection meanwhile.

A tree of nodes is as deep as the user's expression, and most rooms walk trees by recursion. The
doors of these rooms raise Python's recursion limit by `deep_recursion` while they are at work;
what is deeper still is refused. Both settings belong to the process: they are changed when the
first caller enters, in whatever thread, and put back when the last one leaves.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from refcomp.foundation.errors import Unsupported

# Room for trees some 3,000 nodes deep; a stack of 4 MiB holds what they take of it.
MOST_FRAMES = 20_000


class _Shared:
    """A setting of the process, changed by the first of those who need it, restored by the last.

    `change` changes it and returns what restores it.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change, self._lock, self._users = change, Lock(), 0
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
    sys.setrecursionlimit(max(before, MOST_FRAMES))

    def restore() -> None:
        sys.setrecursionlimit(before)

    return restore


def _pause_collector() -> Callable[[], None]:
    if not gc.isenabled():
        return lambda: None
    gc.disable()
    return gc.enable


_recursion, _collector = _Shared(_raise_limit), _Shared(_pause_collector)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Lets what runs inside (or the function decorated with it) recurse along deep trees.

    Raises Unsupported in place of RecursionError.
    """
    _recursion.enter()
    try:
        yield
    except RecursionError:
        # The chain of tracebacks would be as long as the tree is deep.
        raise Unsupported(
            "the program is nested too deeply",
            why=f"it takes more than {sys.getrecursionlimit()} nested calls of Python to walk it",
            remedy="split long expressions into several computes, and let some have memory",
        ) from None
    finally:
        _recursion.leave()


@contextmanager
def paused_collector() -> Iterator[None]:
    """Runs without garbage collection: nodes form no cycles, and scanning hundreds of thousands
    of them again and again takes longer than making them."""
    _collector.enter()
    try:
        yield
    finally:
        _collector.leave()
