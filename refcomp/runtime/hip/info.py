"""The properties of an AMD GPU, from the HIP library: name, instruction set, sizes."""

import ctypes
import re
from dataclasses import dataclass

from refcomp.foundation.errors import ToolchainError
from refcomp.hip import api as hip_api
from refcomp.runtime.hip.library import HipLibrary

_NAME_BYTES = 256
_MINOR_UNIT = 100_000  # of a version number: its value for one minor version
_ARCH = re.compile(rb"gfx[0-9a-f]+")

# Fields of HipInfo that are one attribute each, by its name in the library.
_ATTRIBUTES = {
    "wave_lanes": "WarpSize",
    "threads": "MaxThreadsPerBlock",
    "threads_per_multiprocessor": "MaxThreadsPerMultiProcessor",
    "shared_bytes": "MaxSharedMemoryPerBlock",
    "shared_bytes_per_multiprocessor": "MaxSharedMemoryPerMultiprocessor",
    "registers": "MaxRegistersPerBlock",
    "multiprocessors": "MultiprocessorCount",
    "l2_bytes": "L2CacheSize",
    "memory_bus_bits": "MemoryBusWidth",
}


@dataclass(frozen=True, slots=True)
class HipInfo:
    """The properties of one GPU."""

    name: str  # the vendor's
    arch: str  # the instruction set as LLVM spells it, such as gfx90a
    arch_features: str  # the same with its features: gfx90a:sramecc+:xnack-
    threads_per_axis: tuple[int, int, int]  # maxima of a group
    groups_per_axis: tuple[int, int, int]  # maxima of a launch
    wave_lanes: int  # threads of a wave: 32 or 64
    threads: int  # maximum of a group
    threads_per_multiprocessor: int
    shared_bytes: int  # maximum of a group
    shared_bytes_per_multiprocessor: int
    registers: int  # of 32 bits, maximum of a group
    multiprocessors: int
    l2_bytes: int  # of the cache that all multiprocessors share
    clock: int  # Hz, of the multiprocessors, at most
    memory_clock: int  # Hz, at most
    memory_bus_bits: int
    memory_bytes: int
    free_bytes: int  # now
    pci: str  # domain:bus:device, in hexadecimal digits

    @property
    def compute_version(self) -> str:
        """Return the version of the instruction set: 9.4 for gfx942, 11.0 for gfx1100."""
        # The last two digits are the minor version and the stepping, which is hexadecimal.
        return f"{self.arch[3:-2]}.{self.arch[-2]}"

    @property
    def peak_bandwidth(self) -> float:
        """Return bytes a second between GPU and memory, from the clock and the width of the bus."""
        # Two transfers a clock.
        return 2.0 * self.memory_clock * self.memory_bus_bits / 8


def describe_gpu(library: HipLibrary, index: int) -> HipInfo:
    """Return all properties of device `index`, which must be the thread's current device."""

    def read(name: str) -> int:
        return attribute(library, index, name)

    free = ctypes.c_size_t()
    total = ctypes.c_size_t()
    library.call("hipMemGetInfo", free, total)
    features = arch_features(library, index)
    return HipInfo(
        name=gpu_name(library, index),
        arch=features.partition(":")[0],
        arch_features=features,
        threads_per_axis=axes(library, index, "MaxBlockDim"),
        groups_per_axis=axes(library, index, "MaxGridDim"),
        **{field: read(name) for field, name in _ATTRIBUTES.items()},
        clock=read("ClockRate") * 1000,
        memory_clock=read("MemoryClockRate") * 1000,
        memory_bytes=total.value,
        free_bytes=free.value,
        pci=f"{read('PciDomainID'):04x}:{read('PciBusId'):02x}:{read('PciDeviceId'):02x}",
    )


def library_versions(library: HipLibrary) -> dict[str, str]:
    """Return the path of the library, its version and that of its driver."""
    return {
        "library": library.path,
        "runtime": _version(library, "hipRuntimeGetVersion"),
        "driver": _version(library, "hipDriverGetVersion"),
    }


def _version(library: HipLibrary, function: str) -> str:
    number = ctypes.c_int32()
    library.call(function, number)
    major, rest = divmod(number.value, hip_api.MAJOR_UNIT)
    minor, patch = divmod(rest, _MINOR_UNIT)
    return f"{major}.{minor}.{patch}"


def attribute(library: HipLibrary, index: int, name: str) -> int:
    """Return one attribute of device `index`, by its name in the library."""
    value = ctypes.c_int32()
    number = library.number(f"hipDeviceAttribute{name}")
    library.call("hipDeviceGetAttribute", value, number, index)
    return value.value


def axes(library: HipLibrary, index: int, name: str) -> tuple[int, int, int]:
    """Return three attributes, for x, y and z."""
    x, y, z = (attribute(library, index, f"{name}{axis}") for axis in "XYZ")
    return x, y, z


def gpu_name(library: HipLibrary, index: int) -> str:
    """Return the vendor's name of the GPU."""
    text = ctypes.create_string_buffer(_NAME_BYTES)
    library.call("hipDeviceGetName", text, _NAME_BYTES, index)
    return text.value.decode(errors="replace").strip() or "AMD GPU"


def arch_features(library: HipLibrary, index: int) -> str:
    """Return the instruction set with its features, such as gfx90a:sramecc+:xnack-."""
    call = next(c for c in hip_api.PROPERTIES if library.has(c.function))
    # The whole struct of properties, whose layout depends on the version of the library.
    answer = ctypes.create_string_buffer(call.size)
    library.call(call.function, answer, index)
    field = answer.raw[call.arch_offset : call.arch_offset + call.arch_bytes]
    text = field.partition(b"\0")[0]
    if _ARCH.match(text) is None:
        raise ToolchainError(
            f"{call.function} does not return the GPU's name where it is expected",
            where=library.path,
            remedy="this version of HIP is unknown: name the GPU yourself, rocm -mcpu=gfx...",
        )
    return text.decode(errors="replace")
