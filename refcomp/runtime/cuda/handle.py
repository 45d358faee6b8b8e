"""Ownership of what pycuda makes: memory, streams, events, modules.

pycuda releases an object in its destructor. A destructor in another thread than the one that first
used the GPU releases nothing. A destructor in a forked child, or after the end of the context, may
abort the process. So a CudaHandle holds the only reference, and deletes the object while its
context is pushed. In three cases that is impossible: in a forked child, at the end of the process,
and after the context has ended. Then the object is kept for ever.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import warnings
from typing import Any, Generic, TypeVar
from weakref import finalize

from refcomp.foundation.errors import RefcompError
from refcomp.runtime.cuda.context import CudaContext

_T = TypeVar("_T")
# The objects of all handles, each in a list.
_alive: dict[int, list[Any]] = {}


class CudaHandle(Generic[_T]):
    """An object of pycuda, which is released with the last reference to this handle."""

    __slots__ = ("__weakref__", "_objects")

    def __init__(
        self, context: CudaContext, made: _T, *, is_busy: bool = False
    ) -> None:
        """Own `made`, to which nobody else may keep a reference.

        If it `is_busy`, the device's work must be complete before the release.
        """
        # `finalize` runs before the slots of the handle are cleared. So it empties this list.
        self._objects: list[_T] = [made]
        _alive[id(self._objects)] = self._objects
        release = finalize(self, _release, os.getpid(), context, self._objects, is_busy)
        release.atexit = False

    @property
    def value(self) -> _T:
        """The object. Keep no reference to it."""
        return self._objects[0]


def _release(
    process: int, context: CudaContext, objects: list[Any], is_busy: bool
) -> None:
    if process != os.getpid():
        return
    if not context.ending:
        try:
            with context.use("releasing an object") as cuda:
                if is_busy:
                    cuda.Context.synchronize()
                objects.clear()
        except (RefcompError, MemoryError) as error:
            warnings.warn(str(error), ResourceWarning, stacklevel=2)
    if objects:
        _keep_for_ever(objects)
    del _alive[id(objects)]


def _keep_for_ever(objects: object) -> None:
    """Add a reference that nobody removes, so that no destructor runs."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(objects))


def _keep_all() -> None:
    """Keep all objects: the driver releases everything at the end of the process."""
    for objects in list(_alive.values()):
        _keep_for_ever(objects)


atexit.register(_keep_all)
os.register_at_fork(after_in_child=_keep_all)
