"""The place in the user's program that made a call, and how a message quotes it later."""

import contextlib
import sys
from pathlib import Path

from refcomp.foundation.snippets import Snippet

# refcomp's files, and contextlib, whose frames stand above functions that a context decorates.
_NOT_THE_USERS = (str(Path(__file__).resolve().parents[1]), contextlib.__file__)

# Primitive -> its participle in messages, where the two differ.
_PARTICIPLES = {
    "bind": "bound",
    "cache_read": "cached",
    "cache_write": "cached",
    "compute_at": "attached",
    "fuse": "fused",
    "parallel": "parallelized",
    "pragma": "marked",
    "reorder": "reordered",
    "rfactor": "factored",
    "tensorize": "tensorized",
    "tile": "tiled",
    "unroll": "unrolled",
    "vectorize": "vectorized",
}


def caller_line() -> str:
    """Return `file:line` of the innermost frame outside of refcomp ('' if all are inside)."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def declared_at(line: str, name: str = "") -> Snippet:
    """Quote the line that declared a tensor, a stage or an axis."""
    return Snippet(line, f"{name} is declared here" if name else "declared here")


def done_at(primitive: str, line: str, name: str = "") -> Snippet:
    """Quote the line that called a primitive of schedules. No primitive is a declaration."""
    if not primitive:
        return declared_at(line, name)
    done = f"{_PARTICIPLES.get(primitive, primitive)} here"
    return Snippet(line, f"{name} is {done}" if name else done)
