"""The version of refcomp's own code, as a part of cache keys.

A wheel has a version. A checkout may be edited at any time, so there each source file counts, with
its size and the time of its last change. Nothing is read, so that it takes about a millisecond.

Ensures: the version of a checkout belongs to the code that this process runs. A file that was
changed after the process began may have been imported before or after the change. Such a checkout
has no version.
"""

import os
import time
from functools import cache
from operator import attrgetter
from pathlib import Path

from refcomp import __version__
from refcomp.foundation.hashing import sha256

_PACKAGE = Path(__file__).resolve().parents[1]
_DATA = ("templates", "toolchains")  # beside the package in a checkout, else in it
_IGNORED = "__pycache__"
_name_of = attrgetter("name")
# Position of the start time among the fields of /proc/self/stat behind the name: proc(5).
_START_FIELD = 19


@cache
def own_version() -> str | None:
    """Return a text that changes with refcomp's code; None if the code changes at this time."""
    return version_of(_PACKAGE, _started())


def is_own_version_current() -> bool:
    """Return True if no source has changed since `own_version` was called first."""
    return own_version() == version_of(_PACKAGE, _started())


def version_of(package: Path, started: float) -> str | None:
    """Return the text for the package in a folder, for a process that began at a time.

    Args:
        package: the folder of the package.
        started: seconds since 1970.
    """
    folders = [package.parent / name for name in _DATA]
    if not all(folder.is_dir() for folder in folders):
        return __version__
    last_change = int(started * 1e9)
    lines = [__version__]
    pending = [str(folder) for folder in (package, *folders)]
    for folder in pending:
        lines.append(folder)
        with os.scandir(folder) as entries:
            found = sorted(entries, key=_name_of)
        for entry in found:
            if entry.is_dir():
                if entry.name != _IGNORED:
                    pending.append(entry.path)
                continue
            status = entry.stat()
            if status.st_mtime_ns > last_change:
                return None
            lines.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    return sha256("\n".join(lines).encode()).hexdigest()


@cache
def _started() -> float:
    """Return when this process began, in seconds since 1970; 0 if it is not known."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/uptime", "rb") as file:
            running = float(
                file.read().split()[0]
            )  # seconds since the machine was started
    except OSError:
        return 0.0
    ticks = int(fields[_START_FIELD])
    return time.time() - running + ticks / os.sysconf("SC_CLK_TCK")
