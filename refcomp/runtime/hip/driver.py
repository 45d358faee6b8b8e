"""The driver of AMD GPUs, through the HIP runtime library: the kind of device `rocm`.

The library is loaded at the first question whether a device exists, never at import. Without the
library or without a GPU, `device("rocm").exist` is False, and every use is a UserError with the
reason and the remedy. All work goes to the default stream, in order, from whichever thread. Inside
`with driver.stream(index):` a thread's work goes to that stream.

Refuses the use in a process that was forked after HIP had started, because HIP does not survive a
fork.
"""

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.own_targets import AMD_LIMITS
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.device import (
    DeviceAttributes,
    DeviceMemory,
    HostArray,
    address_of,
    part_of,
    register_device_kind,
)
from refcomp.runtime.hip.handle import make
from refcomp.runtime.hip.info import (
    HipInfo,
    arch_features,
    attribute,
    axes,
    describe_gpu,
    gpu_name,
    library_versions,
)
from refcomp.runtime.hip.kernels import HipKernels
from refcomp.runtime.hip.library import (
    GPU_REMEDY,
    INSTALL,
    CopyKind,
    HipLibrary,
    load_hip,
    sought_places,
)
from refcomp.runtime.hip.stream import CurrentStreams, HipEvent, HipStream
from refcomp.runtime.launch import KernelSignature, attributes_of_gpu


@dataclass(frozen=True, slots=True)
class _HipDevices:
    """The library and the devices that exist."""

    library: HipLibrary | None  # None if it was not found
    count: int  # of devices
    why: str  # why there are none
    remedy: str  # what to do then
    process: int  # the id of the process that counted them


# Of a GPU about which HIP reports nothing.
USUAL_LIMITS = AMD_LIMITS


class HipDriver:
    """The driver of AMD GPUs, the kind `rocm`. Several threads may use it.

    Args:
        load: returns the HIP runtime library, or None if it is not found.

    Source: AMD, HIP runtime API reference.

    Example::

        >>> driver = rc.rocm_emulator("gfx942").driver
        >>> driver.count(), driver.name(0), driver.arch(0), driver.library_details()["library"]
        (1, 'emulated AMD GPU (gfx942)', 'gfx942', 'the emulator of gfx942')
        >>> driver.info(0).wave_lanes, driver.limits(0).threads
        (64, 1024)
        >>> driver.attributes(0).compute_version
        '9.4'
        >>> why, remedy = driver.absence()  # for messages, if count() is 0
        >>> memory = driver.allocate(0, 4)  # bytes
        >>> driver.upload(0, np.array([1, 2, 3, 4], "uint8"), memory)
        >>> result = np.zeros(4, "uint8")
        >>> driver.download(0, memory, result)
        >>> driver.sync(0)
        >>> print(result)
        [1 2 3 4]
        >>> driver.fill(0, driver.part(memory, 1, 2), 9, 2)
        >>> other = driver.allocate(0, 4)
        >>> driver.copy(0, memory, 0, other, 4)
        >>> driver.download(0, other, result)
        >>> print(result)
        [1 9 9 4]
        >>> driver.pinned(0, (2, 3), "float32").shape
        (2, 3)
        >>> with driver.stream(0):
        ...     driver.fill(0, memory, 0, 4)
        >>> driver.seconds(0, lambda: None) >= 0
        True
        >>> print(driver.counted(0, lambda: None))  # of an emulated GPU
        no kernel ran
        >>> library = driver.use(0)
        >>> driver.load(0, rc.runtime.Module, [])
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: an AMD GPU takes a code object...
    """

    part = staticmethod(part_of)

    def __init__(self, load: Callable[[], HipLibrary | None] = load_hip) -> None:
        self._load = load
        self._lock = Lock()
        self.streams = CurrentStreams()
        self._found: _HipDevices | None = None

    def count(self) -> int:
        """Return the number of devices."""
        return self._look().count

    def absence(self) -> tuple[str, str]:
        """Return why `count()` is 0, and what to do; meaningful only if it is 0."""
        found = self._look()
        return found.why, found.remedy

    def library_details(self) -> dict[str, str]:
        """Return the place and the versions of library and driver; empty without a library."""
        library = self._look().library
        return {} if library is None else library_versions(library)

    def name(self, index: int) -> str:
        """Return the vendor's name of a device.

        Args:
            index: the number of the device, counted from 0.
        """
        return f"{gpu_name(self.use(index), index)} ({self.arch(index)})"

    def arch(self, index: int) -> str:
        """Return the name of the GPU's instruction set as LLVM spells it, such as gfx90a.

        Args:
            index: the number of the device, counted from 0.
        """
        return arch_features(self.use(index), index).partition(":")[0]

    def info(self, index: int) -> HipInfo:
        """Return the properties of the GPU and its free memory.

        Args:
            index: the number of the device, counted from 0.
        """
        return describe_gpu(self.use(index), index)

    def limits(self, index: int) -> DeviceLimits:
        """Return the maxima of a kernel.

        Limits that HIP does not report are those of usual GPUs (`USUAL_LIMITS`).

        Args:
            index: the number of the device, counted from 0.
        """
        library = self.use(index)
        return replace(
            USUAL_LIMITS,
            threads_per_axis=axes(library, index, "MaxBlockDim"),
            threads=attribute(library, index, "MaxThreadsPerBlock"),
            shared_bytes=attribute(library, index, "MaxSharedMemoryPerBlock"),
            groups_per_axis=axes(library, index, "MaxGridDim"),
        )

    def attributes(self, index: int) -> DeviceAttributes:
        """Return the properties of a device, by their classic names.

        Args:
            index: the number of the device, counted from 0.
        """
        info = self.info(index)
        return attributes_of_gpu(self.limits(index), info, info.wave_lanes)

    def sync(self, index: int) -> None:
        """Wait until a device has done all work.

        Args:
            index: the number of the device, counted from 0.
        """
        self.use(index).call("hipDeviceSynchronize")

    def allocate(self, index: int, size: int) -> DeviceMemory:
        """Return memory of a device, whose elements are arbitrary.

        Args:
            index: the number of the device, counted from 0.
            size: bytes; may be 0.
        """
        # Memory of 0 bytes has no address, and arguments at one address overlap.
        made = make(self.use(index), "hipMalloc", max(size, 1), give_back="hipFree")
        return DeviceMemory(made.value, made)

    def pinned(
        self, index: int, shape: tuple[int, ...], dtype: npt.DTypeLike
    ) -> HostArray:
        """Return a numpy array that the device can access, so that copies are asynchronous.

        Args:
            index: the number of the device, counted from 0.
            shape: the extents of the array.
            dtype: the dtype of its elements.
        """
        element = np.dtype(dtype)
        size = math.prod(shape) * element.itemsize
        made = make(
            self.use(index), "hipHostMalloc", max(size, 1), 0, give_back="hipHostFree"
        )
        # The array refers to `piece`, and `piece` to the memory. So the memory lives as long as
        # the array. ctypes' arrays accept new attributes, but their type does not say so.
        piece: Any = (ctypes.c_char * size).from_address(made.value)
        piece.made = made
        return np.frombuffer(piece, element).reshape(shape)

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None:
        """Copy an array to a device, and wait for the copy.

        Args:
            index: the number of the device, counted from 0.
            source: an array in C's order.
            target: memory of at least as many bytes.
        """
        start = address_of(source)
        self._copy(index, target.address, start, source.nbytes, CopyKind.HOST_TO_DEVICE)

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None:
        """Copy memory of a device to an array, and wait for the copy.

        Args:
            index: the number of the device, counted from 0.
            source: memory of at least as many bytes as the array.
            target: an array in C's order, which is written.
        """
        start = address_of(target)
        self._copy(index, start, source.address, target.nbytes, CopyKind.DEVICE_TO_HOST)

    def copy(
        self,
        source_index: int,
        source: DeviceMemory,
        index: int,
        target: DeviceMemory,
        size: int,
    ) -> None:
        """Copy memory on a device, or directly between devices.

        Args:
            source_index: the number of the device to copy from, counted from 0.
            source: the memory to read.
            index: the number of the device to copy to, counted from 0.
            target: the memory to write.
            size: bytes.
        """
        library = self.use(index)
        ends = (target.address, source.address)
        if source_index == index:
            self._copy(index, *ends, size, CopyKind.DEVICE_TO_DEVICE)
        elif size:
            library.call("hipMemcpyPeer", ends[0], index, ends[1], source_index, size)
            # HIP's call may return before the copy is complete, but `copy` must not.
            library.call("hipDeviceSynchronize")

    def fill(self, index: int, target: DeviceMemory, byte: int, size: int) -> None:
        """Set each byte of a piece of memory.

        Args:
            index: the number of the device, counted from 0.
            target: the memory to write.
            byte: the value, from 0 to 255.
            size: bytes.
        """
        library = self.use(index)
        if size:
            library.call("hipMemset", target.address, byte, size)

    def stream(self, index: int) -> HipStream:
        """Return a new stream; see `refcomp.runtime.hip.stream`.

        Args:
            index: the number of the device, counted from 0.
        """
        return HipStream(self, index)

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> HipKernels:
        """Return the kernels of a code object.

        Args:
            index: the number of the device, counted from 0.
            code: a Binary of format `hsaco`.
            kernels: the name and the parameters of each kernel.

        Raises:
            UserError: the code is not a code object.
            ToolchainError: the code is for another GPU.
        """
        if not isinstance(code, Binary) or code.format != "hsaco":
            raise UserError("an AMD GPU takes a code object", remedy="build for 'rocm'")
        return HipKernels(self, index, code.data, kernels)

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        """Return the seconds of the device, by its clock, for what `work` queues.

        Args:
            index: the number of the device, counted from 0.
            work: queues kernels and copies.
        """
        start = HipEvent(self, index)
        work()
        return HipEvent(self, index).seconds_since(start)

    def counted(self, index: int, work: Callable[[], None]) -> object | None:
        """Run `work` on an emulated GPU, and return the counts of its instructions.

        For a real GPU, return None without running it.

        Args:
            index: the number of the device, counted from 0.
            work: queues kernels and copies.
        """
        library = self.use(index)
        return None if library.counted is None else library.counted(work)

    def _copy(
        self, index: int, target: int, source: int, size: int, kind: CopyKind
    ) -> None:
        """Copy `size` bytes between addresses, and wait for the copy."""
        library = self.use(index)
        if size:
            library.call("hipMemcpy", target, source, size, library.number(kind))

    def _look(self) -> _HipDevices:
        # Without the lock, most calls need only this test.
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = _find_devices(self._load())
        return self._found

    def use(self, index: int) -> HipLibrary:
        """Return the library after making a device current for the calling thread.

        Args:
            index: the number of the device, counted from 0.

        Raises:
            UserError: the device does not exist, or HIP was started before a fork.
        """
        found = self._look()
        if found.library is None or not found.count:
            what = f"this machine has no device rocm:{index}"
            raise UserError(what, why=found.why, remedy=found.remedy)
        if found.process != os.getpid():
            raise UserError(
                "HIP was started before this process was forked",
                why="its state of the GPU belongs to the parent",
                remedy="start the process by spawn: multiprocessing.get_context('spawn')",
            )
        found.library.call("hipSetDevice", index)
        return found.library


def _find_devices(library: HipLibrary | None) -> _HipDevices:
    if library is None:
        why = f"the HIP runtime library was not found; sought {sought_places()}"
        return _HipDevices(None, 0, why, INSTALL, os.getpid())
    count = ctypes.c_int32()
    number = library.status("hipGetDeviceCount", ctypes.byref(count))
    if number:
        why = f"hipGetDeviceCount of {library.path} says: {library.text(number)}"
        return _HipDevices(library, 0, why, GPU_REMEDY, os.getpid())
    why = f"hipGetDeviceCount of {library.path} counts none"
    return _HipDevices(library, count.value, why, GPU_REMEDY, os.getpid())


register_device_kind("rocm", HipDriver())
