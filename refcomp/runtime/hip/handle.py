"""Ownership of what the HIP library makes: memory, streams, events, modules.

A HipHandle releases its object when it is deleted, in whichever thread. It does not in a forked
child, which owns nothing on the GPU, nor at the end of the process, when calls are unsafe and the
driver releases everything. A failing release is a ResourceWarning.
"""

import ctypes
import os
import warnings
from typing import Any
from weakref import finalize

from refcomp.runtime.hip.library import HipLibrary, told_call


class HipHandle:
    """`value` is an address or a handle, which the function `give_back` releases.

    `busy_device` is the device whose work must be complete before.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(
        self,
        library: HipLibrary,
        value: int,
        give_back: str,
        busy_device: int | None = None,
    ) -> None:
        self.value = value
        ours = os.getpid(), library, value, give_back, busy_device
        finalize(self, _give_back, *ours).atexit = False


def make(library: HipLibrary, function: str, *args: Any, give_back: str) -> HipHandle:
    """Return the handle that `function` writes to its first argument; `args` are the others."""
    made = ctypes.c_void_p()
    library.call(function, made, *args)
    return HipHandle(library, made.value or 0, give_back)


def _give_back(
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
        told = f"{told_call(function, (value,))} says: {library.text(number)}"
        warnings.warn(told, ResourceWarning, stacklevel=2)
