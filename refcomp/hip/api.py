"""The functions of AMD's HIP runtime that are in use: names, arguments, numbers; data only.

This is the only list of them. Whoever calls the library and whoever offers the same functions
without a GPU read it by way of `refcomp.hip.interface`. Every function returns an error number, 0
where all went well, but those of TEXTS. The numbers are in `refcomp.hip.numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.hip.numbers import NUMBERS, VERSIONS

# The kinds of arguments: i32, u32, size (unsigned, 64 bits), address (of memory on device or
# host), handle (what the library made: a stream, an event, a module, a function), text, extra (an
# array of addresses), and out_...: the address of what is written.
LIBRARY = "libamdhip64.so"
LEAST_MAJOR = 5  # of the library's file name, libamdhip64.so.5; there is no greatest

# Arguments in order, each by its kind and its name, as the library's header declares them.
FUNCTIONS: dict[str, str] = {
    # What there is. All calls below go to the device that the thread has set.
    "hipRuntimeGetVersion": "out_i32 version",
    "hipDriverGetVersion": "out_i32 version",
    "hipGetDeviceCount": "out_i32 count",
    "hipSetDevice": "i32 device",
    "hipDeviceGetName": "out_text name, i32 bytes, i32 device",
    "hipDeviceGetAttribute": "out_i32 value, i32 attribute, i32 device",
    "hipDeviceSynchronize": "",
    # Memory: of the device, and of the host where the device reaches it (pinned).
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
    # Streams; no stream is the default one.
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
    # `params` are the arguments one by one, which is not used; `extra` has them in one buffer.
    "hipModuleLaunchKernel": (
        "handle function, u32 grid_x, u32 grid_y, u32 grid_z, "
        "u32 block_x, u32 block_y, u32 block_z, u32 shared_bytes, handle stream, "
        "extra params, extra extra"
    ),
}
# These return a text.
TEXTS: dict[str, str] = {
    "hipGetErrorName": "i32 error",
    "hipGetErrorString": "i32 error",
}

# What precedes each value of the last argument of hipModuleLaunchKernel.
LAUNCH_BUFFER_POINTER, LAUNCH_BUFFER_SIZE, LAUNCH_END = 1, 2, 3

# HIP numbers its versions major * 10,000,000 + minor * 100,000 + patch.
MAJOR_UNIT = 10_000_000


def number(name: str, major: int | None = None) -> int:
    """What `name` of the header is in HIP `major`, by default and beyond in the newest known.

    KeyError for a name that it does not have.
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
    """A function (address of the answer, device) and where in its answer the GPU's name stands.

    The one answer that is read though its layout differs by version: no other function tells the
    name of the instruction set. `size` is more than any version writes.
    """

    function: str
    arch_offset: int
    arch_bytes: int = 256
    size: int = 4096


# The first one that the library has: from HIP 6 on there are two layouts of the answer.
PROPERTIES = (
    PropertiesCall(
        "hipGetDevicePropertiesR0600", number("hipDeviceProp_t.gcnArchName", 6)
    ),
    PropertiesCall("hipGetDeviceProperties", number("hipDeviceProp_t.gcnArchName", 5)),
)


def code_object_version(major: int | None) -> int:
    """The newest version of the code-object format that HIP `major` loads for certain.

    Version 5 came with HIP 6. Where no HIP is known, 4: each of them loads it.
    """
    return 5 if major is not None and major >= 6 else 4
