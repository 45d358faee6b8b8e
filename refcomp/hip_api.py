"""The functions of AMD's HIP runtime that are in use: names, arguments, numbers; data only.

Read off the headers of HIP 5.2 and 7: the numbers below are the same in all versions from 5 on,
and what differs stands by version. Whoever calls the library and whoever imitates it read them
here. Every function returns an error number, 0 where all went well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# `out_...`: the address of what is written.
Argument = Literal["i32", "u32", "size", "address", "out_i32", "out_f32", "out_address", "bytes"]

LIBRARY = "libamdhip64.so"
LEAST_MAJOR = 4  # of the library's file name, libamdhip64.so.4; there is no greatest

FUNCTIONS: dict[str, tuple[Argument, ...]] = {
    "hipGetDeviceCount": ("out_i32",),
    "hipSetDevice": ("i32",),
    "hipDeviceGetName": ("bytes", "i32", "i32"),
    "hipDeviceGetAttribute": ("out_i32", "i32", "i32"),
    "hipDeviceSynchronize": (),
    "hipMalloc": ("out_address", "size"),
    "hipFree": ("address",),
    "hipMemcpy": ("address", "address", "size", "i32"),
    "hipModuleLoadData": ("out_address", "bytes"),
    "hipModuleUnload": ("address",),
    "hipModuleGetFunction": ("out_address", "address", "bytes"),
    # function, groups in x y z, threads of a group in x y z, bytes of shared memory, stream,
    # arguments one by one (unused), arguments in a buffer
    "hipModuleLaunchKernel": ("address", *("u32",) * 7, "address", "address", "address"),
    "hipEventCreate": ("out_address",),
    "hipEventDestroy": ("address",),
    "hipEventRecord": ("address", "address"),
    "hipEventSynchronize": ("address",),
    "hipEventElapsedTime": ("out_f32", "address", "address"),
}
# The only one that returns something else: a text.
ERROR_TEXT = "hipGetErrorString"

OUT_OF_MEMORY, NOT_INITIALIZED, INSUFFICIENT_DRIVER = 2, 3, 35
NO_DEVICE, INVALID_DEVICE = 100, 101
INVALID_IMAGE, NO_BINARY_FOR_GPU = 200, 209

MEMCPY_HOST_TO_DEVICE, MEMCPY_DEVICE_TO_HOST = 1, 2

MAX_BLOCK_DIMS = (26, 27, 28)  # attributes: threads of a group in x, y and z
MAX_THREADS_PER_BLOCK = 56
MAX_SHARED_MEMORY_PER_BLOCK = 74

# What precedes each value of the last argument of hipModuleLaunchKernel.
LAUNCH_BUFFER_POINTER, LAUNCH_BUFFER_SIZE, LAUNCH_END = 1, 2, 3


@dataclass(frozen=True, slots=True)
class PropertiesCall:
    """A function (address of the answer, device) and where in its answer the GPU's name stands."""

    function: str
    size: int
    arch_offset: int
    arch_size: int = 256


# The first one that the library has: from HIP 6 on there are two layouts of the answer.
PROPERTIES = (
    PropertiesCall("hipGetDevicePropertiesR0600", 1472, 1160),
    PropertiesCall("hipGetDeviceProperties", 792, 396),
)


def code_object_version(major: int | None) -> int:
    """The newest version of the code-object format that HIP `major` loads for certain.

    Version 5 came with HIP 6. Where no HIP is known, 4: each of them loads it.
    """
    return 5 if major is not None and major >= 6 else 4
