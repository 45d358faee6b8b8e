"""Files that are mapped into memory, so that arrays of their bytes take memory only while in use.

The system reads a page of such a file when it is first touched, and reads it again if the page was
given back. If a file is replaced or deleted, its bytes stay. If it is written in place, the arrays
change, and the process dies when it reads bytes behind a new end of the file. So code that is about
to read such arrays asks first whether the file has changed (`changed_file`).
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.generic]


class MappedFile(mmap.mmap):
    """The bytes of a file, read-only. `open` makes it.

    Attributes:
        path: the path of the file, without links.
        is_stable: True if the caller promises that nobody changes the file. Then code may keep
            arrays of its bytes for as long as it likes.
    """

    path: Path
    is_stable: bool
    _state: tuple[int, ...]

    @classmethod
    def open(
        cls, file: IO[bytes], path: Path, *, is_stable: bool = False
    ) -> MappedFile:
        """Return the bytes of an open file that is not empty.

        Args:
            file: a regular file.
            path: its path.
            is_stable: see the attribute.

        Raises:
            OSError: the file cannot be mapped.
        """
        mapped = cls(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.path = path.resolve()
        mapped.is_stable = is_stable
        mapped._state = _state_of(os.fstat(file.fileno()))
        return mapped

    @property
    def is_changed(self) -> bool:
        """Return True if the file was written since it was mapped."""
        try:
            now = _state_of(os.stat(self.path))
        except OSError:
            return False  # deleted: nobody can open it
        # Another file of this name says nothing about the mapped one.
        return now[:2] == self._state[:2] and now != self._state

    def give_back(self, begin: int = 0, size: int | None = None) -> None:
        """Give the memory of some bytes back to the system. What is read later is read anew.

        Args:
            begin: the first byte.
            size: the number of bytes; None for all that follow.
        """
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        size = len(self) - begin if size is None else size
        start = begin - begin % mmap.PAGESIZE
        self.madvise(mmap.MADV_DONTNEED, start, begin + size - start)


def file_of(array: _Array) -> MappedFile | None:
    """Return the file whose bytes an array shows; None if it is in memory of another kind."""
    view = _view_of(array)
    return view.obj if view is not None and isinstance(view.obj, MappedFile) else None


def give_back(array: _Array) -> None:
    """Give the memory of an array of a file's bytes back to the system. Other arrays stay."""
    view = _view_of(array)
    if view is None or not isinstance(view.obj, MappedFile):
        return
    first, start = (np.frombuffer(one, np.uint8) for one in (view.obj, view))
    offset = start.__array_interface__["data"][0] - first.__array_interface__["data"][0]
    view.obj.give_back(offset, view.nbytes)


def changed_file(arrays: Iterable[_Array]) -> Path | None:
    """Return the path of a file that was written since it was mapped, if an array shows one."""
    files = {id(file): file for file in map(file_of, arrays) if file is not None}
    changed = (file.path for file in files.values() if file.is_changed)
    return next(changed, None)


def _view_of(array: _Array) -> memoryview | None:
    """Return the part of a buffer that an array shows."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, memoryview) else None


def _state_of(status: os.stat_result) -> tuple[int, ...]:
    """Return two numbers that name a file, and its size and time, which writing changes."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
