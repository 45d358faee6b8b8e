"""Kernel arguments that are shared memory of a group: `local T *` in OpenCL C.

    kernels["reverse"](x, LocalMemory(256), grid=2, block=64)

The kernel receives a 32-bit offset into the shared memory of its group. This memory begins with the
variables that the kernel declares. The dynamic shared memory of the launch follows, and then one
piece for each such argument, in order. Refuses sizes that are not positive integers.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from refcomp.foundation.errors import UserError

POINTER_BYTES = 4
# The kind of such an argument in the metadata of a code object.
LOCAL_POINTER = "dynamic_shared_pointer"


@dataclass(frozen=True, slots=True)
class LocalMemory:
    """Shared memory for one argument of a kernel. Each group gets a piece of its own.

    It is `local T *` in OpenCL C and a dynamic shared pointer in AMD's metadata. Pass it in the
    place of the argument when a kernel of `load_code_object` is launched.

    Args:
        size: bytes, an int of at least 1.

    Raises:
        UserError: the size is not such an int.

    Example::

        >>> rc.LocalMemory(64 * 4)
        LocalMemory(size=256)
    """

    size: int  # bytes, at least 1

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise UserError(
                f"LocalMemory({self.size!r}) is not a size",
                why="a size is the number of bytes that each group gets for the argument",
                remedy="give a whole number >= 1: LocalMemory(64 * 4) for 64 floats",
            )


def place_local(
    start: int, wanted: Iterable[tuple[LocalMemory, int]]
) -> tuple[list[int], int]:
    """Return the offset of each piece, and the end of the last one, in bytes.

    `wanted` has each piece with its alignment in bytes. No piece begins before `start`.
    """
    offsets = []
    end = start
    for piece, alignment in wanted:
        offset = -(-end // alignment) * alignment
        offsets.append(offset)
        end = offset + piece.size
    return offsets, end
