"""Arrays that are arguments of a kernel: they are copied to the memory of an emulated GPU."""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import Arena
from refcomp.foundation.errors import UserError


def place_array(arena: Arena, name: str, given: Array) -> int:
    """Copy an array to the GPU, and return its address there.

    Args:
        name: of the argument.

    Raises:
        UserError: the array is not contiguous, or holds Python objects.
        MemoryError: there is too little memory.
    """
    if not given.flags.c_contiguous:
        raise UserError(
            f"the array for {name} is not contiguous",
            why="its bytes are copied to the GPU and back",
            remedy="give numpy.ascontiguousarray(...) of it",
        )
    if given.dtype.hasobject:
        raise UserError(
            f"the array for {name} holds Python objects",
            why="a GPU has no Python objects",
            remedy="give numbers: numpy.asarray(..., dtype)",
        )
    place = arena.allocate(given.nbytes, f"the argument {name}")
    if place is None:
        raise MemoryError(f"no room for the argument {name}")
    arena.write(place.address, given.reshape(-1).view(np.uint8))
    return place.address
