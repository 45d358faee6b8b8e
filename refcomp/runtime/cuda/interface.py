"""The names of pycuda that refcomp calls: the only list, with the meaning of each.

`PycudaDriver` is the module `pycuda.driver`. Code of this folder knows pycuda by these protocols
only, so mypy refuses any other name. `missing_names` compares them with a module at run time. The
stand-in of the tests has exactly these names.

Each function acts on the context that the thread has pushed last. Addresses of device memory are
integers. A function without `_async` waits for the default stream. All functions raise `Error`,
whose text ends in the words of NVIDIA's driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class PycudaDriver(Protocol):
    """The module `pycuda.driver`."""

    # The base class of pycuda's exceptions, and the one for lack of memory on the device.
    Error: type[Exception]
    MemoryError: type[Exception]
    Device: PycudaDevices
    Context: PycudaContexts
    Stream: type[PycudaStream]
    Event: type[PycudaEvent]
    device_attribute: PycudaDeviceAttributes
    function_attribute: PycudaFunctionAttributes

    def init(self) -> None:
        """Start NVIDIA's driver."""

    def get_version(self) -> tuple[int, int, int]:
        """Return the version of CUDA that pycuda was built with."""

    def get_driver_version(self) -> int:
        """Return the version of CUDA that the driver supports: 1000 * major + 10 * minor."""

    def mem_get_info(self) -> tuple[int, int]:
        """Return the free and all bytes of the device's memory."""

    def mem_alloc(self, size: int, /) -> PycudaAllocation:
        """Return memory of the device. `size` is at least 1."""

    def pagelocked_empty(self, shape: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return memory of the host that the device can access (pinned)."""

    def memcpy_htod(self, dest: int, src: npt.NDArray[np.uint8]) -> None:
        """Copy an array to the device."""

    def memcpy_dtoh(self, dest: npt.NDArray[np.uint8], src: int) -> None:
        """Copy memory of the device to an array."""

    def memcpy_dtod(self, dest: int, src: int, size: int) -> None:
        """Copy `size` bytes on a device."""

    def memset_d8(self, dest: int, data: int, size: int) -> None:
        """Set `size` bytes to `data`."""

    def memcpy_htod_async(
        self, dest: int, src: npt.NDArray[np.uint8], stream: PycudaStream
    ) -> None:
        """Queue a copy of an array to the device."""

    def memcpy_dtoh_async(
        self, dest: npt.NDArray[np.uint8], src: int, stream: PycudaStream
    ) -> None:
        """Queue a copy of memory of the device to an array."""

    def memcpy_dtod_async(
        self, dest: int, src: int, size: int, stream: PycudaStream
    ) -> None:
        """Queue a copy of `size` bytes on a device."""

    def memset_d8_async(
        self, dest: int, data: int, size: int, stream: PycudaStream
    ) -> None:
        """Queue setting `size` bytes to `data`."""

    def module_from_buffer(self, buffer: bytes) -> PycudaModule:
        """Load a cubin, a fatbin, or PTX that ends in a zero byte."""


class PycudaDevices(Protocol):
    """The class `Device`."""

    def __call__(self, number: int, /) -> PycudaDevice:
        """Return device `number`."""

    def count(self) -> int:
        """Return the number of devices."""


class PycudaDevice(Protocol):
    """An instance of `Device`."""

    def name(self) -> str:
        """Return the vendor's name."""

    def compute_capability(self) -> tuple[int, int]:
        """Return the numbers of the architecture: (9, 0) for sm_90."""

    def pci_bus_id(self) -> str:
        """Return domain, bus and device: 0000:C1:00.0."""

    def get_attribute(self, attr: object, /) -> int:
        """Return the value of a `device_attribute`."""

    def retain_primary_context(self) -> PycudaContext:
        """Return the context that all libraries of the process share. It is not pushed."""


class PycudaContexts(Protocol):
    """The class `Context`."""

    def pop(self) -> None:
        """Remove the context that the thread has pushed last.

        A thread that ends with a pushed context aborts the process.
        """

    def synchronize(self) -> None:
        """Wait until the device has done all work of the pushed context."""


class PycudaContext(Protocol):
    """An instance of `Context`."""

    def push(self) -> None:
        """Make the context the one that the thread's calls act on."""


class PycudaStream(Protocol):
    """A queue of work. The default stream waits for all others, and they for it."""

    handle: int  # the driver's own

    def synchronize(self) -> None:
        """Wait until all queued work is done."""

    def wait_for_event(self, evt: PycudaEvent, /) -> None:
        """Run later work only after the event."""


class PycudaEvent(Protocol):
    """A mark in the work of a stream."""

    def record(self, stream: PycudaStream | None = None) -> object:
        """Set the mark after all work that is queued now; None is the default stream."""

    def synchronize(self) -> object:
        """Wait until the mark is reached."""

    def time_since(self, start: PycudaEvent, /) -> float:
        """Return the milliseconds since an earlier mark."""


class PycudaAllocation(Protocol):
    """Memory of a device, an instance of `DeviceAllocation`; `int` returns its address."""

    def free(self) -> None:
        """Release the memory. This waits for all work of the device.

        Source: CUDA C++ Programming Guide, "Stream Ordered Memory Allocator", introduction.
        """

    def __int__(self) -> int: ...


class PycudaModule(Protocol):
    """Loaded code, an instance of `Module`. It is unloaded when it is deleted."""

    def get_function(self, name: str, /) -> PycudaFunction:
        """Return a kernel, which keeps the module."""


class PycudaFunction(Protocol):
    """A kernel, an instance of `Function`."""

    def get_attribute(self, attr: object, /) -> int:
        """Return the value of a `function_attribute`."""

    def set_attribute(self, attr: object, value: int, /) -> None:
        """Set a `function_attribute`."""

    def __call__(
        self,
        *args: np.void,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        stream: PycudaStream | None,
    ) -> None:
        """Queue a run, with `shared` bytes of dynamic shared memory.

        The arguments are at most one `numpy.void`, whose bytes are all parameters as C aligns them.
        """


class PycudaDeviceAttributes(Protocol):
    """The numbers of `Device.get_attribute`. Frequencies are in kHz."""

    MAX_BLOCK_DIM_X: object  # threads of a group
    MAX_BLOCK_DIM_Y: object
    MAX_BLOCK_DIM_Z: object
    MAX_GRID_DIM_X: object  # groups of a launch
    MAX_GRID_DIM_Y: object
    MAX_GRID_DIM_Z: object
    MAX_THREADS_PER_BLOCK: object
    MAX_THREADS_PER_MULTIPROCESSOR: object
    MAX_SHARED_MEMORY_PER_BLOCK: object  # bytes, unless a kernel requests more
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: object  # bytes, if a kernel requests them
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: object  # bytes
    MAX_REGISTERS_PER_BLOCK: object
    MAX_REGISTERS_PER_MULTIPROCESSOR: object
    MULTIPROCESSOR_COUNT: object
    WARP_SIZE: object
    CLOCK_RATE: object
    MEMORY_CLOCK_RATE: object
    GLOBAL_MEMORY_BUS_WIDTH: object  # bits
    L2_CACHE_SIZE: object  # bytes


class PycudaFunctionAttributes(Protocol):
    """The numbers of `Function.get_attribute`."""

    MAX_THREADS_PER_BLOCK: object  # given the registers that the kernel needs
    SHARED_SIZE_BYTES: object  # static shared memory
    LOCAL_SIZE_BYTES: object  # a thread's memory for values that found no register
    NUM_REGS: object  # a thread's registers of 32 bits
    MAX_DYNAMIC_SHARED_SIZE_BYTES: object  # maximum of `shared` in a launch; can be set


# Name in pycuda.driver -> the protocols that it or its instances have.
_MEMBERS: dict[str, tuple[type, ...]] = {
    "Device": (PycudaDevices, PycudaDevice),
    "Context": (PycudaContexts, PycudaContext),
    "Stream": (PycudaStream,),
    "Event": (PycudaEvent,),
    "DeviceAllocation": (PycudaAllocation,),
    "Module": (PycudaModule,),
    "Function": (PycudaFunction,),
    "device_attribute": (PycudaDeviceAttributes,),
    "function_attribute": (PycudaFunctionAttributes,),
}


def names() -> tuple[str, ...]:
    """Return all names that refcomp uses: `init`, `Device.count`, ..."""
    own = (name for name in _names_of(PycudaDriver) if name not in _MEMBERS)
    inside = (
        f"{owner}.{name}"
        for owner, protocols in _MEMBERS.items()
        for protocol in protocols
        for name in _names_of(protocol)
    )
    return (*own, *inside, "Function.__call__")


def missing_names(driver: object) -> list[str]:
    """Return those of `names()` that a module lacks, such as an old version of pycuda."""
    return [name for name in names() if not _has(driver, name)]


def _names_of(protocol: type) -> Iterator[str]:
    """Yield the names of a protocol's own members, without those of Python itself."""
    for name in (*protocol.__annotations__, *vars(protocol)):
        if not name.startswith("_"):
            yield name


def _has(driver: object, name: str) -> bool:
    owner, _, member = name.rpartition(".")
    if not owner:
        return hasattr(driver, member)
    # Every class can be called, so `hasattr(Function, "__call__")` would say nothing of instances.
    bases = getattr(getattr(driver, owner, None), "__mro__", ())
    return any(member in vars(base) for base in bases)
