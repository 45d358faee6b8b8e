"""Where in the user's program a call was made."""

import contextlib
import sys
from pathlib import Path

# Ours, and what stands between two of our functions where one is decorated by a context.
_NOT_THE_USERS = (str(Path(__file__).resolve().parents[1]), contextlib.__file__)


def caller_line() -> str:
    """`file:line` of the innermost frame outside the refcomp package ('' when there is none)."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
