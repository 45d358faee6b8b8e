"""What the HIP library made and somebody must give back: memory, streams, events, modules.

A HipHandle gives it back when it is let go, in whichever thread that happens. Not in a forked
child, to which nothing of the GPU belongs, and not at the process's end, when calls are not safe
any more and the driver takes back what is left. What cannot be given back is a ResourceWarning.
"""

import ctypes
import os
import warnings
from typing import Any
from weakref import finalize

from refcomp.runtime.hip.library import HipLibrary, told_call


class HipHandle:
    """`value` is an address or a handle, which the function `give_back` takes.

    `busy_device` is the device that must have done its work before.
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
    """What `function` writes to its first argument; `args` are the others."""
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
