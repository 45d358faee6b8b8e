"""Temporary folders of this process. If the process is killed, the next one removes them.

A folder is `refcomp-*` in TMPDIR, and only this user can read it. It holds `work`, where the caller
writes, and `.refcomp-lock`, which this process locks (flock) while it uses the folder. The kernel
releases the lock when the process ends for any reason.

Ensures: only folders of this user are removed, and only if they have a lock file that no process
holds. A folder without a lock file was kept for the user, or is not refcomp's. No link is followed.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from refcomp.foundation.errors import ToolchainError

_PREFIX = "refcomp-"
_WORK = "work"
_LOCK = ".refcomp-lock"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: if somebody put a pipe there, do not wait for its other end.
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Folders whose leftovers this process has removed already.
_swept: set[str] = set()


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user can read, and remove it at the end.

    It stays if the body raises a ToolchainError that names it as `kept`. Raises ToolchainError if
    no folder can be made.
    """
    with _explained():
        temporary = tempfile.gettempdir()
        if temporary not in _swept:
            _swept.add(temporary)
            remove_stale(temporary)
        outer = Path(tempfile.mkdtemp(prefix=_PREFIX))
    folder = outer / _WORK
    lock = None
    kept = False
    try:
        with _explained():
            lock = _make_lock(outer)
            folder.mkdir(0o700)
        yield folder
    except ToolchainError as error:
        kept = error.kept == folder
        raise
    finally:
        if kept:
            with suppress(OSError):
                os.unlink(outer / _LOCK)
        else:
            shutil.rmtree(outer, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolchainError(
            "no temporary folder can be made",
            why=str(error),
            remedy="set TMPDIR to a folder",
        ) from error


def _make_lock(outer: Path) -> int:
    """Return the descriptor of a locked lock file in `outer`.

    The file gets its name after it is locked, so that no other process finds it unlocked.
    """
    unnamed = outer / "new-lock"
    descriptor = os.open(unnamed, _FILE | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(unnamed, outer / _LOCK)
    except OSError:
        # The file system has no locks. Then the folders of killed processes stay.
        with suppress(OSError):
            os.unlink(unnamed)
    return descriptor


def remove_stale(temporary: str) -> None:
    """Remove the folders in `temporary` that killed processes of this user left behind."""
    with suppress(OSError), _opened(temporary, os.O_RDONLY | os.O_DIRECTORY) as parent:
        for name in os.listdir(parent):
            if name.startswith(_PREFIX):
                with suppress(OSError), _opened(name, _FOLDER, parent) as outer:
                    _remove_if_stale(parent, name, outer)


def _remove_if_stale(parent: int, name: str, outer: int) -> None:
    """Remove the folder `outer`, called `name` in `parent`, if its process is dead.

    Uses descriptors only. If somebody replaces `name` by another folder in the meantime, that
    folder keeps its files, since rmdir removes empty folders only.
    """
    is_ours = os.fstat(outer).st_uid == os.geteuid()
    if not is_ours or not {_LOCK, _WORK}.issuperset(os.listdir(outer)):
        return
    with _opened(_LOCK, _FILE, outer) as lock:
        # Raises BlockingIOError if a process still uses the folder.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between our open and our lock, its process may have kept the folder for the user.
        named = os.stat(_LOCK, dir_fd=outer, follow_symlinks=False)
        if not os.path.samestat(os.fstat(lock), named):
            return
        shutil.rmtree(_WORK, ignore_errors=True, dir_fd=outer)
        # Remove the lock last: if this process is killed before, the next one continues.
        if os.listdir(outer) == [_LOCK]:
            os.unlink(_LOCK, dir_fd=outer)
            os.rmdir(name, dir_fd=parent)


@contextmanager
def _opened(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
