"""The arguments of a kernel as bytes, as compilers of C lay out its parameters."""

from collections.abc import Sequence

from refcomp.runtime.arrays.scalars import typed_scalar
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.launch import Argument, KernelSignature

_POINTER_BYTES = 8


def pack_arguments(
    kernel: KernelSignature, values: Sequence[Argument], behind: Sequence[int] = ()
) -> bytes:
    """Return the arguments of `kernel`: memory by its address, numbers as they are.

    Each argument starts at a multiple of its size. The integers `behind` follow, 64 bits each.
    """
    pieces: list[bytes] = []
    for dtype, value in zip(kernel.params, values, strict=True):
        if isinstance(value, DeviceMemory):
            pieces.append(value.address.to_bytes(_POINTER_BYTES, "little"))
        else:
            assert dtype is not None, "a buffer is passed as DeviceMemory"
            pieces.append(typed_scalar(dtype, value).tobytes())
    pieces += [number.to_bytes(8, "little") for number in behind]
    buffer = bytearray()
    for piece in pieces:
        buffer += bytes(-len(buffer) % len(piece)) + piece
    return bytes(buffer)


def buffer_offsets(kernel: KernelSignature) -> dict[int, int]:
    """Return where the address of each buffer lies in `pack_arguments`: position -> byte."""
    offsets = {}
    end = 0
    for position, dtype in enumerate(kernel.params):
        size = _POINTER_BYTES if dtype is None else dtype.bytes
        begin = end + -end % size
        end = begin + size
        if dtype is None:
            offsets[position] = begin
    return offsets
