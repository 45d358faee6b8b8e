"""The state spaces of memory, and their windows of generic addresses.

Global memory, constants and the parameters of a kernel lie in the arena. Their addresses are the
same in their own space and among generic addresses. Shared memory begins at 0 in each block, and
local memory in each thread. Each of the two has a window of generic addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from refcomp.emulator.ptx.text.module import Variable

SHARED_WINDOW = 0x2000_0000_0000  # the generic address of a block's shared memory
LOCAL_WINDOW = 0x3000_0000_0000  # of a thread's local memory
WINDOW_BYTES = 1 << 40
_MAX_LOAD = 16  # bytes of an access
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


@dataclass(frozen=True, slots=True)
class SpaceLayout:
    """Variables in a memory of their own.

    Attributes:
        offsets: name -> offset in bytes.
        bytes: the size of all variables.
        padded: the size if each variable is padded to a multiple of its alignment, at most 16
            bytes. Compilers load whole multiples, beyond the end of a shorter variable.
    """

    offsets: Mapping[str, int]
    bytes: int
    padded: int = 0


def lay_out(variables: Iterable[Variable], begin: int = 0) -> SpaceLayout:
    """Place variables one after the other, each at a multiple of its alignment.

    Arrays without a length all begin after the last variable, as dynamic shared memory does.
    """
    offsets: dict[str, int] = {}
    end = begin
    listed = list(variables)
    for variable in listed:
        if variable.bytes:
            offsets[variable.name] = -(-end // variable.alignment) * variable.alignment
            end = offsets[variable.name] + variable.bytes
    unsized = [variable for variable in listed if not variable.bytes]
    alignment = max((variable.alignment for variable in unsized), default=1)
    end = -(-end // alignment) * alignment
    offsets |= {variable.name: end for variable in unsized}
    padded = end
    for variable in listed:
        unit = min(variable.alignment, _MAX_LOAD)
        whole = -(-variable.bytes // unit) * unit
        padded = max(padded, offsets[variable.name] + whole)
    return SpaceLayout(offsets, end, padded)


def space_of_generic(addresses: np.ndarray) -> dict[str, np.ndarray]:
    """Return the spaces of generic addresses: space -> bool, for each space that occurs."""
    page = addresses >> np.uint64(40)
    found: dict[str, np.ndarray] = {}
    rest = np.ones(addresses.shape, np.bool_)
    for space, window in WINDOWS.items():
        here = page == np.uint64(window >> 40)
        if here.any():
            found[space] = here
            rest &= ~here
    if rest.any():
        found["global"] = rest
    return found
