"""The place in the user's program that made a call."""

import contextlib
import sys
from pathlib import Path

# refcomp's files, and contextlib, whose frames stand above functions that a context decorates.
_NOT_THE_USERS = (str(Path(__file__).resolve().parents[1]), contextlib.__file__)


def caller_line() -> str:
    """Return `file:line` of the innermost frame outside of refcomp ('' if all are inside)."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
