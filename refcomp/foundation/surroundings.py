"""The state of the environment variables and files on which a remembered answer depends.

Ensures: the state changes if a variable changes, or if a path appears, disappears or is replaced.
The state of a folder changes if an entry is added, removed or renamed. No file is read.
"""

import os
from collections.abc import Iterable

from refcomp.foundation.hashing import sha256


def state_of(variables: Iterable[str], paths: Iterable[str]) -> str:
    """Return a hash of the values of `variables` and of the files and folders at `paths`."""
    lines = [repr((name, os.environ.get(name))) for name in variables]
    lines += [repr((path, _state_of_path(path))) for path in paths]
    return sha256("\n".join(lines).encode()).hexdigest()


def _state_of_path(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
