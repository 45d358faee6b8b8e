"""The functions of AMD's HIP runtime that refcomp calls: names and parameters, as data.

This is the only list. `refcomp.hip.interface` reads it, both for AMD's library and for
implementations that need no GPU. All functions except those of `TEXTS` return an error number,
which is 0 for success. The values of constants are in `refcomp.hip.numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.hip.numbers import NUMBERS, VERSIONS

LIBRARY = "libamdhip64.so"
# Number in the library's file name, libamdhip64.so.5; later ones are accepted.
MIN_MAJOR = 5

# Function -> kind and name of each parameter, in the order of the library's header. The kinds:
# - i32, u32, and size (unsigned, 64 bits)
# - address: of memory on the device or the host
# - handle: an object of the library (a stream, an event, a module, a function)
# - text
# - extra: an array of addresses
# - out_KIND: the address to which the function writes a value
FUNCTIONS: dict[str, str] = {
    # Devices. The functions below act on the device that the thread has set.
    "hipRuntimeGetVersion": "out_i32 version",
    "hipDriverGetVersion": "out_i32 version",
    "hipGetDeviceCount": "out_i32 count",
    "hipSetDevice": "i32 device",
    "hipDeviceGetName": "out_text name, i32 bytes, i32 device",
    "hipDeviceGetAttribute": "out_i32 value, i32 attribute, i32 device",
    "hipDeviceSynchronize": "",
    # Memory of the device, and memory of the host that the device can access (pinned).
    "hipMemGetInfo": "out_size free, out_size total",
    "hipMalloc": "out_address memory, size bytes",
    "hipFree": "address memory",
    "hipHostMalloc": "out_address memory, size bytes, u32 flags",
    "hipHostFree": "address memory",
    "hipMemcpy": "address target, address source, size bytes, i32 kind",
    "hipMemcpyAsync": "address target, address source, size bytes, i32 kind, handle stream",
    "hipMemcpyPeer": (
        "address target, i32 target_device, address source, i32 source_device, size bytes"
    ),
    "hipMemset": "address target, i32 value, size bytes",
    "hipMemsetAsync": "address target, i32 value, size bytes, handle stream",
    # Streams. A null handle is the default stream.
    "hipStreamCreate": "out_handle stream",
    "hipStreamDestroy": "handle stream",
    "hipStreamSynchronize": "handle stream",
    "hipStreamWaitEvent": "handle stream, handle event, u32 flags",
    # Events.
    "hipEventCreate": "out_handle event",
    "hipEventDestroy": "handle event",
    "hipEventRecord": "handle event, handle stream",
    "hipEventSynchronize": "handle event",
    "hipEventElapsedTime": "out_f32 milliseconds, handle start, handle stop",
    # Code.
    "hipModuleLoadData": "out_handle module, address image",
    "hipModuleUnload": "handle module",
    "hipModuleGetFunction": "out_handle function, handle module, text name",
    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor": (
        "out_i32 groups, handle function, i32 threads, size shared_bytes"
    ),
    # The kernel's arguments stand in one buffer, which `extra` describes. `params`, which would
    # pass them one by one, is not used.
    "hipModuleLaunchKernel": (
        "handle function, u32 grid_x, u32 grid_y, u32 grid_z, "
        "u32 block_x, u32 block_y, u32 block_z, u32 shared_bytes, handle stream, "
        "extra params, extra extra"
    ),
}
# Functions that return a text.
TEXTS: dict[str, str] = {
    "hipGetErrorName": "i32 error",
    "hipGetErrorString": "i32 error",
}

# Keys in the array `extra` of hipModuleLaunchKernel; each but the last precedes its value.
LAUNCH_BUFFER_POINTER = 1
LAUNCH_BUFFER_SIZE = 2
LAUNCH_END = 3

# HIP numbers its versions major * 10,000,000 + minor * 100,000 + patch.
MAJOR_UNIT = 10_000_000


def number(name: str, major: int | None = None) -> int:
    """Return the value of the constant `name` in HIP `major`.

    Without `major`, and for later versions, this is the newest known value. Raises KeyError if the
    version does not have the constant.
    """
    values = [
        value
        for version, value in zip(VERSIONS, NUMBERS[name], strict=True)
        if value is not None and (major is None or version // MAJOR_UNIT <= major)
    ]
    if not values:
        raise KeyError(f"{name} in HIP {major}")
    return values[-1]


@dataclass(frozen=True, slots=True)
class PropertiesCall:
    """A function that fills in a struct hipDeviceProp_t, of which refcomp reads one field.

    The layout of the struct depends on the version. It is read nevertheless, because no other
    function returns the name of the GPU's instruction set.
    """

    function: str  # (address of the struct, device) -> error number
    arch_offset: int  # bytes, of the field gcnArchName
    arch_bytes: int = 256  # size of this field
    size: int = 4096  # bytes to allocate: more than any version writes


# The first function that the library has is used. From HIP 6 on, the struct has two layouts.
PROPERTIES = (
    PropertiesCall(
        "hipGetDevicePropertiesR0600", number("hipDeviceProp_t.gcnArchName", 6)
    ),
    PropertiesCall("hipGetDeviceProperties", number("hipDeviceProp_t.gcnArchName", 5)),
)


def code_object_version(major: int | None) -> int:
    """Return the newest version of the code-object format that HIP `major` can load.

    HIP 6 introduced version 5. Every HIP can load version 4, so this is the answer for None.
    """
    return 5 if major is not None and major >= 6 else 4
