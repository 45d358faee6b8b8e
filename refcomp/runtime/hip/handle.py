"""Ownership of what the HIP library makes: memory, streams, events, modules.

A HipHandle releases its object when it is deleted, in whichever thread. It does not in a forked
child, which owns nothing on the GPU. Nor does it at the end of the process, when calls are unsafe
and the driver releases everything. A failing release is a ResourceWarning.
"""

import ctypes
import os
import warnings
from weakref import finalize

from refcomp.runtime.hip.library import HipLibrary, call_text


class HipHandle:
    """An object of the HIP library, which is released with the last reference to this handle."""

    __slots__ = ("__weakref__", "value")

    def __init__(
        self,
        library: HipLibrary,
        value: int,
        give_back: str,
        busy_device: int | None = None,
    ) -> None:
        """Own `value`, an address or a handle, which the function `give_back` releases.

        The work of `busy_device` must be complete before the release.
        """
        self.value = value
        release = finalize(
            self, _release, os.getpid(), library, value, give_back, busy_device
        )
        release.atexit = False


def make(
    library: HipLibrary, function: str, *args: object, give_back: str
) -> HipHandle:
    """Return the handle that `function` writes to its first argument; `args` are the others."""
    made = ctypes.c_void_p()
    library.call(function, made, *args)
    return HipHandle(library, made.value or 0, give_back)


def _release(
    process: int,
    library: HipLibrary,
    value: int,
    function: str,
    busy_device: int | None,
) -> None:
    if process != os.getpid():
        return
    if busy_device is not None:
        library.status("hipSetDevice", busy_device)
        library.status("hipDeviceSynchronize")
    number = library.status(function, value)
    if number:
        report = f"{call_text(function, (value,))} says: {library.text(number)}"
        warnings.warn(report, ResourceWarning, stacklevel=2)
