"""One pool of threads for the parallel regions of all modules of this process.

Each module with parallel regions has the code of a pool (`templates/llvm/threads.j2`). It calls
the pool through its variable `refcomp.parallel`. `connect` makes the variables of all modules hold
the pool of the module that was loaded first. That module is never unloaded. A shared object that
another program loads uses its own pool.
"""

from __future__ import annotations

import ctypes
from threading import Lock

VARIABLE = "refcomp.parallel"

_lock = Lock()
_pool: list[int] = []  # the address of the process's pool, once there is one


def connect(library: ctypes.CDLL) -> None:
    """Let the parallel regions of a loaded module use the pool of this process.

    Args:
        library: the loaded module. Without parallel regions, nothing changes.
    """
    try:
        place = ctypes.c_void_p.in_dll(library, VARIABLE)
    except ValueError:
        return
    with _lock:
        if not _pool:
            assert place.value is not None
            _pool.append(place.value)
        place.value = _pool[0]
