"""Arguments of kernels that are shared memory of a group: `local T *` in OpenCL C.

    kernels["reverse"](x, LocalMemory(256), grid=2, block=64)

Such an argument is an offset of 32 bits into the shared memory of a group. What the kernel declares
itself comes first, then what is asked for beside it, then one piece for each such argument, in
their order. Refuses sizes that are not positive numbers of bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from refcomp.foundation.errors import UserError

POINTER_BYTES = 4
# The kind of such an argument in the metadata of a code object.
LOCAL_POINTER = "dynamic_shared_pointer"


@dataclass(frozen=True, slots=True)
class LocalMemory:
    """Shared memory for one argument of a kernel, one piece for each group.

    Attributes:
        size: Bytes, at least 1.
    """

    size: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            raise UserError(
                f"LocalMemory({self.size!r}) is not a size",
                why="it counts the bytes of shared memory that a group gets for an argument",
                remedy="give a whole number from 1 on: LocalMemory(64 * 4) for 64 floats",
            )


def place_local(
    start: int, wanted: Iterable[tuple[LocalMemory, int]]
) -> tuple[list[int], int]:
    """Return the offset of each piece and the end of the last, in bytes.

    Each piece comes with its alignment in bytes; the first begins at `start` or behind it.
    """
    offsets, end = [], start
    for piece, alignment in wanted:
        offset = -(-end // alignment) * alignment
        offsets.append(offset)
        end = offset + piece.size
    return offsets, end
