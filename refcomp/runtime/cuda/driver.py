"""The driver of NVIDIA GPUs, through pycuda: the kind of device `cuda`.

pycuda is imported at the first question whether a device exists, never at import. Without pycuda,
NVIDIA's driver or a GPU, `device("cuda").exist` is False, and every use is a UserError with the
reason and the remedy. All work goes to the default stream, in order, from whichever thread. Inside
`with driver.stream(index):` a thread's work goes to that stream.

Refuses the use in a process that was forked after CUDA had started, because CUDA does not survive a
fork.
"""

from __future__ import annotations

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
from refcomp.foundation.own_targets import CUDA_LIMITS
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.cuda.context import CudaContext
from refcomp.runtime.cuda.handle import CudaHandle
from refcomp.runtime.cuda.info import (
    CudaInfo,
    arch_of,
    attributes_of,
    axes,
    describe_gpu,
    library_versions,
)
from refcomp.runtime.cuda.interface import PycudaDriver
from refcomp.runtime.cuda.kernels import CudaKernels
from refcomp.runtime.cuda.library import (
    Absence,
    ImportPycuda,
    count_devices,
    find_pycuda,
    import_pycuda,
)
from refcomp.runtime.cuda.stream import CudaEvent, CudaStream, EnteredStreams, bytes_of
from refcomp.runtime.device import (
    DeviceAttributes,
    DeviceMemory,
    HostArray,
    address_of,
    part_of,
    register_device_kind,
)
from refcomp.runtime.launch import KernelSignature, attributes_of_gpu

# Of a GPU about which CUDA reports nothing.
USUAL_LIMITS = CUDA_LIMITS
# Bytes that a copy between two GPUs moves at once.
_PIECE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _CudaDevices:
    """pycuda and the devices that exist."""

    cuda: PycudaDriver | None  # None if it cannot be used
    count: int  # of devices
    absence: Absence  # why there are none
    process: int  # the id of the process that counted them


class CudaDriver:
    """The driver of NVIDIA GPUs, the kind `cuda`. Several threads may use it.

    Args:
        load: returns pycuda's module `pycuda.driver`, or raises ImportError.

    Source: NVIDIA, CUDA Driver API; pycuda.

    Example::

        >>> driver = rc.cuda().driver
        >>> isinstance(driver, rc.runtime.CudaDriver), driver.count() >= 0
        (True, True)
        >>> why, remedy = driver.absence()  # for messages, if count() is 0
        >>> details = driver.library_details()  # versions; empty without pycuda
        >>> def work(index):
        ...     with driver.open(index).use("work"):
        ...         print(driver.name(index), driver.arch(index), driver.info(index))
        ...     memory = driver.allocate(index, 4)  # bytes
        ...     driver.upload(index, np.array([1, 2, 3, 4], "uint8"), memory)
        ...     driver.fill(index, driver.part(memory, 1, 2), 9, 2)
        ...     result = driver.pinned(index, (4,), "uint8")
        ...     with driver.stream(index):
        ...         start = driver.event(index)
        ...     driver.copy(index, memory, index, driver.allocate(index, 4), 4)
        ...     driver.download(index, memory, result)
        ...     driver.sync(index)
        ...     print(result, driver.seconds(index, lambda: None), driver.limits(index).threads)
        ...     print(driver.attributes(index).warp_size)
        ...     print(driver.counted(index, lambda: None))  # of an emulated GPU; else None
        ...     return driver.load(index, rc.runtime.Module, [])  # raises: not machine code
        >>> work(driver.count())  # counted from 0, so this device does not exist
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: this machine has no device cuda:...
    """

    part = staticmethod(part_of)
    # Source: dlpack.h, kDLCUDA; Python Specification for DLPack: 1 is the legacy default stream.
    dlpack_type = 2
    dlpack_stream = 1

    def __init__(self, load: ImportPycuda = import_pycuda) -> None:
        self._load = load
        self._lock = Lock()
        self.streams = EnteredStreams()
        self._found: _CudaDevices | None = None
        self._opened: dict[int, CudaContext] = {}  # by index of the device

    def count(self) -> int:
        """Return the number of devices."""
        return self._look().count

    def absence(self) -> tuple[str, str]:
        """Return why `count()` is 0, and what to do; meaningful only if it is 0."""
        absence = self._look().absence
        return absence.why, absence.remedy

    def library_details(self) -> dict[str, str]:
        """Return the versions of pycuda's CUDA and of the driver; empty without pycuda."""
        cuda = self._look().cuda
        return {} if cuda is None else library_versions(cuda)

    def name(self, index: int) -> str:
        """Return the vendor's name of a device.

        Args:
            index: the number of the device, counted from 0.
        """
        device = self.open(index).device
        return f"{device.name().strip()} ({arch_of(device)})"

    def counted(self, index: int, work: Callable[[], None]) -> object | None:
        """Run `work` on an emulated GPU, and return the counts of its instructions.

        For a real GPU, return None without running it.

        Args:
            index: the number of the device, counted from 0.
            work: queues kernels and copies.
        """
        self.open(index)
        counted = getattr(self._look().cuda, "counted", None)
        return None if counted is None else counted(work)

    def arch(self, index: int) -> str:
        """Return the architecture as nvcc spells it, such as sm_90.

        Args:
            index: the number of the device, counted from 0.
        """
        return arch_of(self.open(index).device)

    def info(self, index: int) -> CudaInfo:
        """Return the properties of the GPU and its free memory.

        Args:
            index: the number of the device, counted from 0.
        """
        context = self.open(index)
        with context.use("reading the properties") as cuda:
            return describe_gpu(cuda, context.device)

    def limits(self, index: int) -> DeviceLimits:
        """Return the maxima of a kernel.

        Limits that CUDA does not report are those of usual GPUs (`USUAL_LIMITS`).

        Args:
            index: the number of the device, counted from 0.
        """
        context = self.open(index)
        with context.use("reading the limits") as cuda:
            read = attributes_of(cuda, context.device)
            return replace(
                USUAL_LIMITS,
                threads_per_axis=axes(read, "MAX_BLOCK_DIM"),
                threads=read("MAX_THREADS_PER_BLOCK"),
                shared_bytes=read("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
                groups_per_axis=axes(read, "MAX_GRID_DIM"),
            )

    def attributes(self, index: int) -> DeviceAttributes:
        """Return the properties of a device, by their classic names.

        The shared memory is what a kernel may ask for, also beyond 48 KiB.

        Args:
            index: the number of the device, counted from 0.
        """
        info = self.info(index)
        return attributes_of_gpu(self.limits(index), info, info.warp_lanes)

    def sync(self, index: int) -> None:
        """Wait until a device has done all work.

        Args:
            index: the number of the device, counted from 0.
        """
        context = self.open(index)
        with context.use("waiting for the GPU") as cuda:
            cuda.Context.synchronize()
        context.waited()

    def allocate(self, index: int, size: int) -> DeviceMemory:
        """Return memory of a device, whose elements are arbitrary.

        Args:
            index: the number of the device, counted from 0.
            size: bytes; may be 0.

        Raises:
            MemoryError: the device has too little free memory. Nothing else changes.
        """
        context = self.open(index)
        with context.use(f"allocating {size} bytes") as cuda:
            # Memory of 0 bytes has no address, and arguments at one address overlap.
            made = CudaHandle(context, cuda.mem_alloc(max(size, 1)))
        return DeviceMemory(int(made.value), made)

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
        context = self.open(index)
        with context.use(f"allocating {size} bytes of pinned memory") as cuda:
            made = CudaHandle(
                context, cuda.pagelocked_empty(max(size, 1), np.uint8), is_busy=True
            )
        # The array refers to `piece`, and `piece` to the memory. So the memory lives as long as
        # the array. ctypes' arrays accept new attributes, but their type does not say so.
        piece: Any = (ctypes.c_char * size).from_address(address_of(made.value))
        piece.made = made
        return np.frombuffer(piece, element).reshape(shape)

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None:
        """Copy an array to a device, and wait for the copy.

        Args:
            index: the number of the device, counted from 0.
            source: an array in C's order.
            target: memory of at least as many bytes.
        """
        self._upload(self.open(index), bytes_of(source), target.address)

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None:
        """Copy memory of a device to an array, and wait for the copy.

        Args:
            index: the number of the device, counted from 0.
            source: memory of at least as many bytes as the array.
            target: an array in C's order, which is written.
        """
        self._download(self.open(index), source.address, bytes_of(target))

    def copy(
        self,
        source_index: int,
        source: DeviceMemory,
        index: int,
        target: DeviceMemory,
        size: int,
    ) -> None:
        """Copy memory on a device, or between devices by way of the host.

        Args:
            source_index: the number of the device to copy from, counted from 0.
            source: the memory to read.
            index: the number of the device to copy to, counted from 0.
            target: the memory to write.
            size: bytes.
        """
        reader = self.open(source_index)
        writer = self.open(index)
        if reader is writer:
            with writer.use(f"copying {size} bytes on the GPU") as cuda:
                if size:
                    cuda.memcpy_dtod(target.address, source.address, size)
            return
        # pycuda's memcpy_peer ignores the contexts that it is given, and fails without them.
        piece = np.empty(min(size, _PIECE_BYTES), np.uint8)
        for start in range(0, size, _PIECE_BYTES):
            part = piece[: size - start]
            self._download(reader, source.address + start, part)
            self._upload(writer, part, target.address + start)

    def fill(self, index: int, target: DeviceMemory, byte: int, size: int) -> None:
        """Set each byte of a piece of memory.

        Args:
            index: the number of the device, counted from 0.
            target: the memory to write.
            byte: the value, from 0 to 255.
            size: bytes.
        """
        with self.open(index).use(f"filling {size} bytes") as cuda:
            if size:
                cuda.memset_d8(target.address, byte, size)

    def stream(self, index: int) -> CudaStream:
        """Return a new stream; see `refcomp.runtime.cuda.stream`.

        Args:
            index: the number of the device, counted from 0.
        """
        return CudaStream(self.open(index), self.streams)

    def event(self, index: int) -> CudaEvent:
        """Return a mark in the thread's current stream; see `refcomp.runtime.cuda.stream`.

        Args:
            index: the number of the device, counted from 0.
        """
        return CudaEvent(self.open(index), self.streams)

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> CudaKernels:
        """Return the kernels of a cubin, a fatbin or PTX.

        Args:
            index: the number of the device, counted from 0.
            code: a Binary of format `cubin`, `fatbin` or `ptx`.
            kernels: the name and the parameters of each kernel.

        Raises:
            UserError: the code has another format.
            ToolchainError: the code is damaged, or for another GPU.
        """
        return CudaKernels(
            self.open(index),
            self.streams,
            code,
            kernels,
            arch=self.arch(index),
            shared_bytes=self.limits(index).shared_bytes,
        )

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        """Return the seconds of the device, by its clock, for what `work` queues.

        Args:
            index: the number of the device, counted from 0.
            work: queues kernels and copies.
        """
        start = self.event(index)
        work()
        return self.event(index).seconds_since(start)

    def _upload(
        self, context: CudaContext, source: npt.NDArray[np.uint8], target: int
    ) -> None:
        with context.use(f"copying {source.size} bytes to the GPU") as cuda:
            if source.size:
                cuda.memcpy_htod(target, source)

    def _download(
        self, context: CudaContext, source: int, target: npt.NDArray[np.uint8]
    ) -> None:
        with context.use(f"copying {target.size} bytes from the GPU") as cuda:
            if target.size:
                cuda.memcpy_dtoh(target, source)
        context.waited()

    def _look(self) -> _CudaDevices:
        # Without the lock, most calls need only this test.
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = _find_devices(self._load)
        return self._found

    def open(self, index: int) -> CudaContext:
        """Return a device in use.

        Args:
            index: the number of the device, counted from 0.

        Raises:
            UserError: the device does not exist, or CUDA was started before a fork.
        """
        found = self._look()
        if found.cuda is None or index >= found.count:
            absence = found.absence
            if found.count:
                why = f"it has {found.count}, counted from 0"
                absence = Absence(why, f"use cuda:{found.count - 1} or a lower index")
            raise UserError(
                f"this machine has no device cuda:{index}",
                why=absence.why,
                remedy=absence.remedy,
            )
        if found.process != os.getpid():
            raise UserError(
                "CUDA was started before this process was forked",
                why="its state of the GPU belongs to the parent",
                remedy="start the process by spawn: multiprocessing.get_context('spawn')",
            )
        opened = self._opened.get(index)
        if opened is None:
            with self._lock:
                opened = self._opened.get(index) or CudaContext(found.cuda, index)
                self._opened[index] = opened
        return opened


def _find_devices(load: ImportPycuda) -> _CudaDevices:
    cuda = find_pycuda(load)
    if isinstance(cuda, Absence):
        return _CudaDevices(None, 0, cuda, os.getpid())
    count, absence = count_devices(cuda)
    return _CudaDevices(cuda, count, absence, os.getpid())


register_device_kind("cuda", CudaDriver())
