"""Tracebacks without refcomp's frames, which end at the user's own line.

Python prints an uncaught error by `sys.excepthook`, and in threads by `threading.excepthook`. This
file installs a hook that removes refcomp's frames, calls the previous hook, and restores the
frames, so that debuggers see all of them. IPython and pytest have protocols of their own.

Frames are removed from deliberate failures, and from errors that a user's function raised after
refcomp had called it. A bug of refcomp keeps all frames. `REFCOMP_TRACEBACK=full` shows everything.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import FrameType, TracebackType
from typing import Protocol

from refcomp.foundation.snippets import Snippet, call_in

VARIABLE = "REFCOMP_TRACEBACK"
_PACKAGE = __name__.partition(".")[0]
# True while a traceback is printed that ends at the user's line: messages need not quote it again.
_SHOWS_CALL: ContextVar[bool] = ContextVar("shows_call", default=False)


def is_ours(frame: FrameType) -> bool:
    """Return True for a frame of refcomp's code, including generated methods."""
    name = str(frame.f_globals.get("__name__", ""))
    return name == _PACKAGE or name.startswith(f"{_PACKAGE}.")


def users_frames(entry: TracebackType | None) -> TracebackType | None:
    """Return the traceback `entry` without refcomp's frames; None if it has no others.

    A frame of contextlib is removed together with the frame below it, since it belongs to a
    function of refcomp that a context decorates.
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
    """Return True if REFCOMP_TRACEBACK requests all frames."""
    return os.environ.get(VARIABLE, "") == "full"


def _is_of_the_user(error: BaseException) -> bool:
    """Return True for a deliberate failure, and for an error raised in a frame of the user."""
    keeps_frames = getattr(error, "keeps_frames", None)
    if keeps_frames is not None:
        return not keeps_frames
    frames = [entry.tb_frame for entry in _entries(error.__traceback__)]
    if not frames or is_ours(frames[-1]):
        return False
    return not frames[-1].f_code.co_filename.startswith(_libraries())


@cache
def _libraries() -> tuple[str, ...]:
    """Return the beginnings of the file names of code that no user wrote."""
    import sysconfig  # noqa: PLC0415  (for messages of errors only)

    paths = sysconfig.get_paths()
    folders = (paths[name] + os.sep for name in ("stdlib", "purelib", "platlib"))
    return "<frozen ", *folders


def is_call_shown() -> bool:
    """Return True if the user sees the line of the call elsewhere: in a traceback, or in pytest.

    In pytest, a quoted line would also satisfy `pytest.raises(match=...)` by its own words.
    """
    return _SHOWS_CALL.get() or "_pytest" in sys.modules


def call_of(error: BaseException) -> Snippet | None:
    """Return the innermost line of the user in the traceback of `error`.

    Returns None if all frames belong to refcomp or to libraries.
    """
    found = None
    for entry in _entries(error.__traceback__):
        is_library = entry.tb_frame.f_code.co_filename.startswith(_libraries())
        if not is_library and not is_ours(entry.tb_frame):
            found = entry
    return None if found is None else call_in(found)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield `error` and all errors that it came from or contains, once each."""
    waiting = [error]
    seen = set()
    while waiting:
        item = waiting.pop()
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        waiting += [item.__cause__, item.__context__, *getattr(item, "exceptions", ())]


@contextmanager
def only_users_frames(error: BaseException) -> Iterator[None]:
    """Remove refcomp's frames from `error` and its causes, and restore them at the end.

    A cause without any frame of the user is removed as a whole. Messages do not quote the user's
    line while the traceback shows it.
    """
    hidden = [
        item
        for item in _chain(error)
        if not shows_everything() and _is_of_the_user(item)
    ]
    before = [(e, e.__traceback__, e.__cause__, e.__suppress_context__) for e in hidden]
    token = _SHOWS_CALL.set(not shows_everything())
    try:
        for item in hidden:
            item.__traceback__ = users_frames(item.__traceback__) or item.__traceback__
            reason = item.__cause__ or item.__context__
            if reason is not None and users_frames(reason.__traceback__) is None:
                item.__cause__ = None  # Python then prints no context either
        yield
    finally:
        _SHOWS_CALL.reset(token)
        for item, entry, cause, suppressed in before:
            item.__traceback__ = entry
            item.__cause__ = cause
            item.__suppress_context__ = suppressed


def install_hooks() -> None:
    """Install hooks that print errors of all threads with the user's frames only."""
    show = sys.excepthook
    show_of_thread = threading.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, entry: TracebackType | None
    ) -> None:
        with only_users_frames(error):
            show(kind, error, error.__traceback__)
        choice = os.environ.get(VARIABLE, "")
        if choice not in ("", "full", "user"):
            print(
                f"environment variable {VARIABLE}: {choice!r} is not known; use full or user",
                file=sys.stderr,
            )

    def hook_of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is None:
            show_of_thread(args)
            return
        with only_users_frames(args.exc_value):
            show_of_thread(args)

    sys.excepthook = hook
    threading.excepthook = hook_of_thread


def render(error: BaseException) -> list[str]:
    """Return the lines of the traceback of `error`, with the user's frames only."""
    import traceback  # noqa: PLC0415  (for messages of errors only)

    with only_users_frames(error):
        return "".join(traceback.format_exception(error)).splitlines()


def hide_from_pytest() -> None:
    """Mark refcomp's modules on the stack, so that pytest hides their frames.

    The mark is a function, which pytest calls with each error. Does nothing without pytest.
    """
    frame = sys._getframe(1) if "_pytest" in sys.modules else None
    while frame is not None:
        if is_ours(frame):
            frame.f_globals["__tracebackhide__"] = _is_hidden_by_pytest
        frame = frame.f_back


class _ExceptionInfo(Protocol):
    """The part of pytest's ExceptionInfo that refcomp uses."""

    @property
    def value(self) -> BaseException: ...


def _is_hidden_by_pytest(raised: _ExceptionInfo) -> bool:
    return not getattr(raised.value, "keeps_frames", True) and not shows_everything()
