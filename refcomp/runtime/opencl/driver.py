"""The driver of OpenCL devices, through pyopencl: the kind `opencl`, which counts all platforms.

Each device has a context and an in-order queue, made at its first use. pyopencl and the platforms
are looked up at the first question whether a device exists, never at import. Without them
`opencl(0).exist` is False, and every use is a UserError that names what to install.

Refuses the use in a process that was forked after OpenCL had started, because its threads do not
survive a fork. PoCL, OpenCL on the CPU, caches compiled code in $POCL_CACHE_DIR (default: pocl in
the XDG cache directory). It has no device if that folder cannot be written.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import DeviceLimits
from refcomp.runtime.device import DeviceMemory, HostArray, register_device_kind
from refcomp.runtime.launch import KernelSignature
from refcomp.runtime.opencl.kernels import OpenCLKernels, OpenCLPrograms

_INSTALL = (
    "pip install pyopencl; apt-get install pocl-opencl-icd for OpenCL on the processor"
)
# Distance between the addresses of pieces of memory, beyond their sizes.
_GAP = 256


@dataclass(frozen=True, slots=True)
class _OpenclDevices:
    """The devices that exist; if none, the reason and the remedy, found by `process`."""

    devices: tuple[Any, ...]
    why: str
    remedy: str
    process: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A device in use: pyopencl, and its device, context and queue."""

    cl: ModuleType
    device: Any
    context: Any
    queue: Any
    programs: OpenCLPrograms


class OpenCLDriver:
    """The DeviceDriver of kind `opencl`. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: _OpenclDevices | None = None
        self._opened: dict[int, Opened] = {}
        self._next_address = _GAP

    def count(self) -> int:
        return len(self._look().devices)

    def absence(self) -> tuple[str, str]:
        found = self._look()
        return found.why, found.remedy

    def name(self, index: int) -> str:
        device = self._look().devices[index]
        return f"{device.name.strip()} ({device.platform.name.strip()})"

    def limits(self, index: int) -> DeviceLimits:
        """Return the maxima of a kernel. The features are the names of the extensions."""
        device = self._look().devices[index]
        x, y, z = device.max_work_item_sizes[:3]
        return DeviceLimits(
            threads_per_axis=(x, y, z),
            threads=device.max_work_group_size,
            shared_bytes=device.local_mem_size,
            features=frozenset(device.extensions.split()),
        )

    def sync(self, index: int) -> None:
        self._open(index).queue.finish()

    def allocate(self, index: int, size: int) -> DeviceMemory:
        opened = self._open(index)
        with out_of_memory_told(opened.cl, f"{size} bytes"):
            # OpenCL has no buffers of 0 bytes.
            flags = opened.cl.mem_flags.READ_WRITE
            buffer = opened.cl.Buffer(opened.context, flags, size=max(size, 1))
        return DeviceMemory(self._address_for(size), buffer)

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None:
        self._copy(index, target.owner, source)

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None:
        self._copy(index, target, source.owner)

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> OpenCLKernels:
        """Return the kernels of an OpenCL C text, compiled by the device's own compiler."""
        if not isinstance(code, Source) or code.language != "opencl":
            raise UserError(
                "an OpenCL device takes an OpenCL C text", remedy="build for 'opencl'"
            )
        opened = self._open(index)
        return OpenCLKernels(
            opened.cl, opened.queue, opened.programs.build(code), kernels
        )

    def _copy(self, index: int, target: Any, source: Any) -> None:
        """Copy between a buffer and an array, and wait for the copy."""
        opened = self._open(index)
        ends = [
            e.reshape(-1).view(np.uint8) if _is_array(e) else e
            for e in (target, source)
        ]
        if all(end.size for end in ends):
            with out_of_memory_told(opened.cl, "a copy"):
                opened.cl.enqueue_copy(opened.queue, *ends, is_blocking=True)

    def _address_for(self, size: int) -> int:
        """Return a number as the address of `size` bytes, such that different pieces do not
        overlap.

        OpenCL has no addresses on the host. Entry checks need them to detect overlapping arguments.
        """
        with self._lock:
            address = self._next_address
            self._next_address += size + _GAP
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


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _find_devices() -> _OpenclDevices:
    try:
        import pyopencl  # noqa: PLC0415  (optional, and slow to import)
    except ImportError as error:
        return _OpenclDevices(
            (), f"pyopencl cannot be imported: {error}", _INSTALL, os.getpid()
        )
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.Error as error:
        return _OpenclDevices(
            (), f"no OpenCL platform is installed: {error}", _INSTALL, os.getpid()
        )
    devices = tuple(
        device for platform in platforms for device in _devices_of(pyopencl, platform)
    )
    names = ", ".join(platform.name for platform in platforms)
    return _OpenclDevices(
        devices,
        f"no platform of OpenCL has a device; the platforms are: {names or 'none'}",
        f"{_INSTALL}; PoCL needs a folder that it can write: set POCL_CACHE_DIR",
        os.getpid(),
    )


def _devices_of(cl: ModuleType, platform: Any) -> list[Any]:
    try:
        return list(platform.get_devices())
    except cl.Error:  # a platform whose hardware is missing says so by an error
        return []


def _open(device: Any) -> Opened:
    import pyopencl  # noqa: PLC0415  (optional; found before)

    context = pyopencl.Context([device])
    queue = pyopencl.CommandQueue(context, device)
    return Opened(
        pyopencl, device, context, queue, OpenCLPrograms(pyopencl, context, device)
    )


@contextmanager
def out_of_memory_told(cl: ModuleType, wanted: str) -> Iterator[None]:
    """Raise MemoryError if the device has too little memory for the work inside."""
    try:
        yield
    except cl.Error as error:
        too_large = getattr(error, "code", None) == cl.status_code.INVALID_BUFFER_SIZE
        if not too_large and not isinstance(error, cl.MemoryError):
            raise
        raise MemoryError(
            f"the OpenCL device has no room for {wanted} ({error}). "
            "Free arrays on it, or work on smaller ones"
        ) from error


register_device_kind("opencl", OpenCLDriver())
