"""Tracebacks that end with the user's own frame: refcomp's frames are left out of them.

Python prints an uncaught error by `sys.excepthook` (`threading.excepthook` in threads). A hook
before it removes refcomp's frames, calls the hook that was there, and puts them back, so that
debuggers see everything. IPython and pytest have protocols of their own.

Left out are the frames of a deliberate failure, and those between two frames of the user, as where
a user's lambda fails. A bug of refcomp keeps all frames. `REFCOMP_TRACEBACK=full` shows everything.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

VARIABLE = "REFCOMP_TRACEBACK"
_PACKAGE = __name__.partition(".")[0]


def is_ours(frame: FrameType) -> bool:
    """Return True for a frame of refcomp's code, that of generated methods included."""
    name = str(frame.f_globals.get("__name__", ""))
    return name == _PACKAGE or name.startswith(f"{_PACKAGE}.")


def users_frames(entry: TracebackType | None) -> TracebackType | None:
    """Return the traceback `entry` without refcomp's frames; None when all of them are refcomp's.

    A frame of contextlib goes with the frame that it calls: a decorated function has one above it.
    """
    kept: TracebackType | None = None
    is_hidden = False
    for inner in reversed(list(_entries(entry))):
        through_contextlib = inner.tb_frame.f_globals.get("__name__") == "contextlib"
        is_hidden = is_ours(inner.tb_frame) or (through_contextlib and is_hidden)
        if not is_hidden:
            kept = TracebackType(kept, inner.tb_frame, inner.tb_lasti, inner.tb_lineno)
    return kept


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def shows_everything() -> bool:
    """Return True if the environment asks for all frames."""
    return os.environ.get(VARIABLE, "") == "full"


def _is_of_the_user(error: BaseException) -> bool:
    """Return True for a deliberate failure, and for an error that the user's own frame raised."""
    keeps_frames = getattr(error, "keeps_frames", None)
    if keeps_frames is not None:
        return not keeps_frames
    frames = [entry.tb_frame for entry in _entries(error.__traceback__)]
    if not frames or is_ours(frames[-1]):
        return False
    libraries = tuple(
        sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")
    )
    return not frames[-1].f_code.co_filename.startswith(libraries)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    waiting, seen = [error], set()
    while waiting:
        item = waiting.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        waiting += [item.__cause__, item.__context__, *getattr(item, "exceptions", ())]


@contextmanager
def only_users_frames(error: BaseException) -> Iterator[None]:
    """Take refcomp's frames out of `error` and of those it came from; put them back at the end.

    The cause of a deliberate failure is left out where it has no frame of the user.
    """
    hidden = [
        item
        for item in _chain(error)
        if not shows_everything() and _is_of_the_user(item)
    ]
    before = [(e, e.__traceback__, e.__cause__, e.__suppress_context__) for e in hidden]
    try:
        for item in hidden:
            item.__traceback__ = users_frames(item.__traceback__) or item.__traceback__
            reason = item.__cause__ or item.__context__
            if reason is not None and users_frames(reason.__traceback__) is None:
                item.__cause__ = None  # this suppresses the context, too
        yield
    finally:
        for item, entry, cause, suppressed in before:
            item.__traceback__, item.__cause__ = entry, cause
            item.__suppress_context__ = suppressed


def _check_variable() -> None:
    choice = os.environ.get(VARIABLE, "")
    if choice not in ("", "full", "user"):
        told = f"environment variable {VARIABLE}: {choice!r} is not known; use full or user"
        print(told, file=sys.stderr)


def install_hooks() -> None:
    """Print errors of the main thread and of others with the user's frames only."""
    show, show_of_thread = sys.excepthook, threading.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, entry: TracebackType | None
    ) -> None:
        with only_users_frames(error):
            show(kind, error, error.__traceback__)
        _check_variable()

    def hook_of_thread(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is None:
            show_of_thread(told)
            return
        with only_users_frames(told.exc_value):
            show_of_thread(told)

    sys.excepthook, threading.excepthook = hook, hook_of_thread


def render(error: BaseException) -> list[str]:
    """Return the lines of what is printed of `error`, with the user's frames only."""
    with only_users_frames(error):
        return "".join(traceback.format_exception(error)).splitlines()


def hide_from_pytest() -> None:
    """Mark refcomp's modules on the stack, so that pytest leaves their frames out.

    Without pytest this does nothing. pytest asks the mark about each error.
    """
    frame = sys._getframe(1) if "_pytest" in sys.modules else None
    while frame is not None:
        if is_ours(frame):
            frame.f_globals["__tracebackhide__"] = _is_hidden_by_pytest
        frame = frame.f_back


def _is_hidden_by_pytest(raised: Any) -> bool:
    return not getattr(raised.value, "keeps_frames", True) and not shows_everything()
