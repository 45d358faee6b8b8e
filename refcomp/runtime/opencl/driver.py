"""The driver of OpenCL devices, through pyopencl: the kind `opencl`, which counts all platforms.

Each device has a context and an in-order queue, made at its first use. pyopencl and the platforms
are looked up when the existence of a device is first checked, never at import. Without them
`opencl(0).exist` is False, and every use is a UserError that names what to install.

Refuses the use in a process that was forked after OpenCL had started, because its threads do not
survive a fork. PoCL, OpenCL on the CPU, caches compiled code in $POCL_CACHE_DIR (default: pocl in
the XDG cache directory). It has no device if that folder cannot be written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.device import (
    DeviceAttributes,
    DeviceMemory,
    HostArray,
    register_device_kind,
)
from refcomp.runtime.launch import KernelSignature
from refcomp.runtime.opencl.kernels import OpenCLKernels, OpenCLPrograms

if TYPE_CHECKING:
    import pyopencl

_INSTALL = (
    "pip install pyopencl; apt-get install pocl-opencl-icd for OpenCL on the processor"
)
# Each piece of memory begins at a multiple of so many bytes. A buffer of OpenCL begins at one of at
# least 128, the size of the largest vector (CL_DEVICE_MEM_BASE_ADDR_ALIGN).
_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class _OpenclDevices:
    """The devices that exist."""

    devices: tuple[pyopencl.Device, ...]  # of all platforms
    why: str  # why there are none
    remedy: str  # what to do then
    process: int  # the id of the process that looked for them


@dataclass(frozen=True, slots=True)
class Opened:
    """A device in use."""

    cl: ModuleType  # pyopencl
    device: pyopencl.Device
    context: pyopencl.Context  # of this device only
    queue: pyopencl.CommandQueue  # in order
    programs: OpenCLPrograms


class OpenCLDriver:
    """The driver of OpenCL devices, the kind `opencl`. Several threads may use it.

    It counts the devices of all platforms.

    Source: Khronos, The OpenCL Specification 3.0.

    Example::

        >>> driver = rc.device("opencl").driver
        >>> isinstance(driver, rc.runtime.OpenCLDriver), driver.count() >= 1
        (True, True)
        >>> len(driver.name(0)) > 0, driver.limits(0).threads >= 1
        (True, True)
        >>> driver.attributes(0).multi_processor_count >= 1
        True
        >>> why, remedy = driver.absence()  # for messages, if count() is 0
        >>> memory = driver.allocate(0, 4)  # bytes
        >>> driver.upload(0, np.array([1, 2, 3, 4], "uint8"), memory)
        >>> result = np.zeros(4, "uint8")
        >>> driver.download(0, memory, result)
        >>> driver.sync(0)
        >>> print(result)
        [1 2 3 4]
        >>> from refcomp.foundation.artifacts import Source
        >>> text = "kernel void zero(global float* a) { a[get_global_id(0)] = 0; }"
        >>> kernels = driver.load(0, Source(text, "opencl"), [])
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: _OpenclDevices | None = None
        self._opened: dict[int, Opened] = {}  # by index of the device
        self._next_address = _ALIGNMENT  # see _address_for

    def count(self) -> int:
        """Return the number of devices."""
        return len(self._look().devices)

    def absence(self) -> tuple[str, str]:
        """Return why `count()` is 0, and what to do; meaningful only if it is 0."""
        found = self._look()
        return found.why, found.remedy

    def name(self, index: int) -> str:
        """Return the vendor's name of a device.

        Args:
            index: the number of the device, counted from 0.
        """
        device = self._look().devices[index]
        return f"{device.name.strip()} ({device.platform.name.strip()})"

    def limits(self, index: int) -> DeviceLimits:
        """Return the maxima of a kernel. The features are the names of the extensions.

        Args:
            index: the number of the device, counted from 0.
        """
        device = self._look().devices[index]
        x, y, z = device.max_work_item_sizes[:3]
        return DeviceLimits(
            threads_per_axis=(x, y, z),
            threads=device.max_work_group_size,
            shared_bytes=device.local_mem_size,
            features=frozenset(device.extensions.split()),
        )

    def attributes(self, index: int) -> DeviceAttributes:
        """Return the properties of a device. `warp_size` needs an extension of its vendor.

        Args:
            index: the number of the device, counted from 0.
        """
        device = self._look().devices[index]
        limits = self.limits(index)
        return DeviceAttributes(
            max_threads_per_block=limits.threads,
            max_thread_dimensions=limits.threads_per_axis,
            max_shared_memory_per_block=limits.shared_bytes,
            warp_size=_warp_size(device),
            multi_processor_count=device.max_compute_units,
            max_clock_rate=device.max_clock_frequency * 1000,
            compute_version=device.version.split()[1],  # of "OpenCL 3.0 PoCL ..."
        )

    def sync(self, index: int) -> None:
        """Wait until a device has done all work.

        Args:
            index: the number of the device, counted from 0.
        """
        self._open(index).queue.finish()

    def allocate(self, index: int, size: int) -> DeviceMemory:
        """Return memory of a device, whose elements are arbitrary.

        Args:
            index: the number of the device, counted from 0.
            size: bytes; may be 0.
        """
        opened = self._open(index)
        with memory_errors(opened.cl, f"{size} bytes"):
            flags = opened.cl.mem_flags.READ_WRITE
            # OpenCL has no buffers of 0 bytes.
            buffer = opened.cl.Buffer(opened.context, flags, size=max(size, 1))
        return DeviceMemory(self._address_for(size), buffer)

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None:
        """Copy an array to a device, and wait for the copy.

        Args:
            index: the number of the device, counted from 0.
            source: an array in C's order.
            target: memory of at least as many bytes.
        """
        self._copy(index, target.owner, source)

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None:
        """Copy memory of a device to an array, and wait for the copy.

        Args:
            index: the number of the device, counted from 0.
            source: memory of at least as many bytes as the array.
            target: an array in C's order, which is written.
        """
        self._copy(index, target, source.owner)

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> OpenCLKernels:
        """Return the kernels of an OpenCL C text, compiled by the device's own compiler.

        Args:
            index: the number of the device, counted from 0.
            code: a Source in the language `opencl`.
            kernels: the name and the parameters of each kernel.

        Raises:
            UserError: the code is not an OpenCL C text.
            ToolchainError: the device's compiler refuses the text.
        """
        if not isinstance(code, Source) or code.language != "opencl":
            raise UserError(
                "an OpenCL device takes an OpenCL C text", remedy="build for 'opencl'"
            )
        opened = self._open(index)
        program = opened.programs.build(code)
        return OpenCLKernels(opened.cl, opened.queue, program, kernels)

    def _copy(
        self,
        index: int,
        target: HostArray | pyopencl.Buffer,
        source: HostArray | pyopencl.Buffer,
    ) -> None:
        """Copy between a buffer and an array, and wait for the copy."""
        opened = self._open(index)
        ends: list[HostArray | pyopencl.Buffer] = []
        for end in (target, source):
            # pyopencl cannot copy arrays of every dtype, but it can copy bytes.
            if isinstance(end, np.ndarray):
                ends.append(end.reshape(-1).view(np.uint8))
            else:
                ends.append(end)
        if all(end.size for end in ends):
            with memory_errors(opened.cl, "a copy"):
                opened.cl.enqueue_copy(opened.queue, *ends, is_blocking=True)

    def _address_for(self, size: int) -> int:
        """Return an invented address for `size` bytes, which overlap no other piece.

        OpenCL has no addresses on the host. Entry checks need them to detect overlapping arguments.
        """
        with self._lock:
            address = self._next_address
            # Pieces of 0 bytes have different addresses, too.
            self._next_address += (size // _ALIGNMENT + 1) * _ALIGNMENT
        return address

    def _look(self) -> _OpenclDevices:
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = _find_devices()
        return self._found

    def _open(self, index: int) -> Opened:
        found = self._look()
        if found.process != os.getpid():
            raise UserError(
                "OpenCL was started before this process was forked",
                why="its threads do not run in the child, where every call would hang",
                remedy="start the process by spawn: multiprocessing.get_context('spawn')",
            )
        opened = self._opened.get(index)
        if opened is None:
            with self._lock:
                opened = self._opened.get(index) or _open(found.devices[index])
                self._opened[index] = opened
        return opened


def _warp_size(device: pyopencl.Device) -> int | None:
    """Return the number of threads that run in step, if the vendor has an extension to say so."""
    import pyopencl  # noqa: PLC0415 (it is installed, since there is a device)

    for name in ("warp_size_nv", "wavefront_width_amd"):
        with suppress(pyopencl.Error):
            return int(getattr(device, name))
    return None


def _find_devices() -> _OpenclDevices:
    process = os.getpid()
    try:
        import pyopencl  # noqa: PLC0415  (optional, and slow to import)
    except ImportError as error:
        why = f"pyopencl cannot be imported: {error}"
        return _OpenclDevices((), why, _INSTALL, process)
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.Error as error:
        why = f"no OpenCL platform is installed: {error}"
        return _OpenclDevices((), why, _INSTALL, process)
    devices = []
    for platform in platforms:
        # A platform whose hardware is missing raises an error.
        with suppress(pyopencl.Error):
            devices += platform.get_devices()
    names = ", ".join(platform.name for platform in platforms)
    why = f"no platform of OpenCL has a device; the platforms are: {names or 'none'}"
    remedy = f"{_INSTALL}; PoCL needs a folder that it can write: set POCL_CACHE_DIR"
    return _OpenclDevices(tuple(devices), why, remedy, process)


def _open(device: pyopencl.Device) -> Opened:
    import pyopencl  # noqa: PLC0415  (optional; found before)

    context = pyopencl.Context([device])
    queue = pyopencl.CommandQueue(context, device)
    programs = OpenCLPrograms(pyopencl, context, device)
    return Opened(pyopencl, device, context, queue, programs)


@contextmanager
def memory_errors(cl: ModuleType, wanted: str) -> Iterator[None]:
    """Raise MemoryError if the device has too little memory for the work inside."""
    try:
        yield
    except cl.Error as error:
        # A size beyond CL_DEVICE_MAX_MEM_ALLOC_SIZE has an error of its own.
        too_large = getattr(error, "code", None) == cl.status_code.INVALID_BUFFER_SIZE
        if not too_large and not isinstance(error, cl.MemoryError):
            raise
        raise MemoryError(
            f"the OpenCL device has no room for {wanted} ({error}). "
            "Free arrays on it, or work on smaller ones"
        ) from error


register_device_kind("opencl", OpenCLDriver())
