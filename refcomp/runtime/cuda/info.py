"""The properties of an NVIDIA GPU: name, architecture, sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from refcomp.runtime.cuda.interface import PycudaDevice, PycudaDriver

# Fields of CudaInfo that are one attribute each, by its name in pycuda.
_ATTRIBUTES = {
    "warp_lanes": "WARP_SIZE",
    "threads": "MAX_THREADS_PER_BLOCK",
    "threads_per_multiprocessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "shared_bytes": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "static_shared_bytes": "MAX_SHARED_MEMORY_PER_BLOCK",
    "shared_bytes_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "registers": "MAX_REGISTERS_PER_BLOCK",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "l2_bytes": "L2_CACHE_SIZE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
}


@dataclass(frozen=True, slots=True)
class CudaInfo:
    """The properties of one GPU."""

    name: str  # the vendor's
    arch: str  # such as sm_90
    threads_per_axis: tuple[int, int, int]  # maxima of a group
    groups_per_axis: tuple[int, int, int]  # maxima of a launch
    warp_lanes: int  # threads of a warp
    threads: int  # maximum of a group
    threads_per_multiprocessor: int
    shared_bytes: int  # maximum of a group
    static_shared_bytes: int  # maximum of a group without dynamic shared memory
    shared_bytes_per_multiprocessor: int
    registers: int  # of 32 bits, maximum of a group
    registers_per_multiprocessor: int
    multiprocessors: int
    l2_bytes: int  # of the cache that all multiprocessors share
    clock: int  # Hz, of the multiprocessors, at most
    memory_clock: int  # Hz, at most
    memory_bus_bits: int
    memory_bytes: int
    free_bytes: int  # now
    pci: str  # domain:bus:device.function, in hexadecimal digits

    @property
    def compute_version(self) -> str:
        """Return the compute capability: 9.0 for sm_90."""
        return f"{self.arch[3:-1]}.{self.arch[-1]}"

    @property
    def peak_bandwidth(self) -> float:
        """Return bytes a second between GPU and memory, from the clock and the width of the bus."""
        # Two transfers a clock.
        return 2.0 * self.memory_clock * self.memory_bus_bits / 8


def describe_gpu(cuda: PycudaDriver, device: PycudaDevice) -> CudaInfo:
    """Return all properties of `device`, whose context must be pushed."""
    read = attributes_of(cuda, device)
    free, total = cuda.mem_get_info()
    return CudaInfo(
        name=device.name(),
        arch=arch_of(device),
        threads_per_axis=axes(read, "MAX_BLOCK_DIM"),
        groups_per_axis=axes(read, "MAX_GRID_DIM"),
        **{field: read(name) for field, name in _ATTRIBUTES.items()},
        clock=read("CLOCK_RATE") * 1000,
        memory_clock=read("MEMORY_CLOCK_RATE") * 1000,
        memory_bytes=total,
        free_bytes=free,
        pci=device.pci_bus_id().lower(),
    )


def attributes_of(cuda: PycudaDriver, device: PycudaDevice) -> Callable[[str], int]:
    """Return a function that reads an attribute of `device` by its name."""
    return lambda name: device.get_attribute(getattr(cuda.device_attribute, name))


def axes(read: Callable[[str], int], name: str) -> tuple[int, int, int]:
    """Return three attributes, for x, y and z."""
    return read(f"{name}_X"), read(f"{name}_Y"), read(f"{name}_Z")


def arch_of(device: PycudaDevice) -> str:
    """Return the architecture as nvcc spells it, such as sm_90."""
    major, minor = device.compute_capability()
    return f"sm_{major}{minor}"


def library_versions(cuda: PycudaDriver) -> dict[str, str]:
    """Return the versions of CUDA that pycuda was built with, and that the driver supports."""
    number = cuda.get_driver_version()
    return {
        "pycuda": ".".join(map(str, cuda.get_version()[:2])),
        "driver": f"{number // 1000}.{number % 1000 // 10}",
    }
