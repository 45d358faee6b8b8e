"""A count of the warnings that builds print, so that no cache hides one.

Ensures: a warning counts from any thread, for all builds in progress.
"""

import threading

_LOCK = threading.Lock()
_counts = {"warnings": 0}


def note_warning() -> None:
    """Count a warning that a build is about to print."""
    with _LOCK:
        _counts["warnings"] += 1


def warning_count() -> int:
    """Return the number of warnings of builds in this process."""
    return _counts["warnings"]
