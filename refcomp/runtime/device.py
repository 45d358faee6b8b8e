"""Devices: a Driver is the interface of a kind of device, and a Device is one device of a kind.

The kind `cpu` always exists, and `register_device_kind` adds others. Refuses unknown kinds, and the
use of a device that this machine does not have.
"""

import re
from dataclasses import field
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from refcomp.foundation import machine
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.records import record

# Of any dtype; in C's order unless a docstring says otherwise.
HostArray = np.ndarray[Any, np.dtype[Any]]

_KIND = r"[a-z][a-z0-9_]*"
# Bytes, of memory of the host: a cache line, so that no vector crosses two lines.
_ALIGNMENT = 64


@record(eq=False)
class DeviceMemory:
    """A piece of a device's memory."""

    address: int
    owner: object  # frees the memory when it is no longer referenced
    # The same memory as uint8 [size], if the host can access it.
    host: HostArray | None = None


class Driver(Protocol):
    """A kind of device. `index` counts the devices of the kind from 0.

    `upload` and `download` copy whole, contiguous arrays. They wait for all earlier work of the
    device and for the copy. Memory that is released while the device uses it stays valid until the
    device is done.
    """

    def count(self) -> int: ...

    def absence(self) -> tuple[str, str]:
        """Return why `count` is 0, and what to do. Called only if it is 0."""

    def name(self, index: int) -> str: ...

    def sync(self, index: int) -> None: ...

    def allocate(self, index: int, size: int) -> DeviceMemory: ...

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None: ...

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None: ...


@runtime_checkable
class CopyingDriver(Protocol):
    """A Driver that copies on a device, and between its devices, without the host."""

    def copy(
        self,
        source_index: int,
        source: DeviceMemory,
        index: int,
        target: DeviceMemory,
        size: int,
    ) -> None: ...


@runtime_checkable
class PartingDriver(Protocol):
    """A Driver that can divide a piece of memory. Offsets and sizes are in bytes."""

    def part(self, memory: DeviceMemory, offset: int, size: int) -> DeviceMemory: ...


@runtime_checkable
class SharingDriver(Protocol):
    """A Driver whose memory other libraries can use by its addresses."""

    dlpack_type: int  # DLPack's number of the kind of device
    dlpack_stream: int  # DLPack's number of the stream to which all work goes


@record
class DeviceAttributes:
    """The properties of a device, by their classic names.

    None stands for what a device does not report, or does not have: the host has no warps.
    """

    # Of a group of threads that runs one kernel: in all, and in x, y and z.
    max_threads_per_block: int | None = None
    max_thread_dimensions: tuple[int, int, int] | None = None
    max_shared_memory_per_block: int | None = None  # bytes
    warp_size: int | None = None  # threads that run in step
    multi_processor_count: int | None = None
    max_clock_rate: int | None = None  # kHz, of the multiprocessors
    # "9.0" for sm_90, "9.4" for gfx942, the version of OpenCL for its devices.
    compute_version: str | None = None


@runtime_checkable
class DescribingDriver(Protocol):
    """A Driver that knows properties of its devices."""

    def attributes(self, index: int) -> DeviceAttributes: ...


def part_of(memory: DeviceMemory, offset: int, size: int) -> DeviceMemory:
    """Return a part of a piece of memory, for devices with real addresses.

    Args:
        memory: the piece, which the part keeps alive.
        offset: where the part begins, in bytes.
        size: the size of the part, in bytes.
    """
    host = None if memory.host is None else memory.host[offset : offset + size]
    return DeviceMemory(memory.address + offset, memory, host)


class HostDriver:
    """The driver of this processor, which is one device. Each call completes its work."""

    part = staticmethod(part_of)

    def count(self) -> int:
        return 1

    def absence(self) -> tuple[str, str]:
        raise AssertionError("the host always exists")

    def name(self, index: int) -> str:
        return machine.cpu_name()

    def sync(self, index: int) -> None:
        return None

    def allocate(self, index: int, size: int) -> DeviceMemory:
        raw = np.empty(size + _ALIGNMENT, np.uint8)
        address = address_of(raw)
        start = -address % _ALIGNMENT
        memory = raw[start : start + size]
        return DeviceMemory(address + start, memory, memory)

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None:
        _host_bytes(target)[:] = source.reshape(-1).view(np.uint8)

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None:
        target.reshape(-1).view(np.uint8)[:] = _host_bytes(source)


def _host_bytes(memory: DeviceMemory) -> HostArray:
    assert memory.host is not None, "memory of another kind of device"
    return memory.host


def address_of(array: HostArray) -> int:
    """Return the address of the first element."""
    return int(array.__array_interface__["data"][0])


@record
class Device:
    """One device, which need not exist on this machine. Devices are equal by kind and index.

    `cpu`, `device` and `context` return devices.

    Attributes:
        kind: the kind of device: `cpu`, `opencl`, `rocm` or a registered kind.
        index: the number of the device among those of its kind, counted from 0.
        driver: the driver of the kind.
        max_threads_per_block: threads of a group, at most. This and the next attributes are None if
            the device does not report them, as the host does not.
        max_thread_dimensions: threads of a group in x, y and z, at most.
        max_shared_memory_per_block: bytes of shared memory of a group, at most.
        warp_size: threads that run in step.
        multi_processor_count: the number of multiprocessors, or of OpenCL's compute units.
        max_clock_rate: the highest clock of the multiprocessors, in kHz.
        compute_version: a text: "9.0" for sm_90, "9.4" for gfx942, or the version of OpenCL.

    Raises:
        UserError: an attribute is read, or `sync` or `require` is called, and this machine does not
            have the device. `exist`, `kind`, `index` and `driver` can always be read.

    Source: TVM, tvm.runtime.Device.

    Example::

        >>> host = rc.cpu()
        >>> host.kind, host.index, str(host), host.exist
        ('cpu', 0, 'cpu:0', True)
        >>> len(host.name) > 0, host.device_name == host.name
        (True, True)
        >>> gpu = rc.rocm_emulator("gfx942")
        >>> gpu.max_threads_per_block, gpu.warp_size, gpu.compute_version
        (1024, 64, '9.4')
        >>> gpu.max_thread_dimensions, gpu.max_shared_memory_per_block
        ((1024, 1024, 1024), 65536)
        >>> gpu.multi_processor_count, gpu.max_clock_rate  # of the emulator
        (1, 1000)
        >>> host.warp_size is None
        True
        >>> host.sync()  # wait for all work of the device
        >>> rc.cpu(1).require()
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: this machine has no device cpu:1...
    """

    kind: str
    index: int
    driver: Driver = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    @property
    def exist(self) -> bool:
        """True if this machine has the device."""
        return self.index < self.driver.count()

    @property
    def name(self) -> str:
        """The vendor's name for it. UserError if it does not exist."""
        self.require()
        return self.driver.name(self.index)

    @property
    def device_name(self) -> str:
        """The classic name of `name`."""
        return self.name

    @property
    def max_threads_per_block(self) -> int | None:
        """The largest number of threads in a group."""
        return self._attributes().max_threads_per_block

    @property
    def max_thread_dimensions(self) -> tuple[int, int, int] | None:
        """The largest numbers of threads in a group in x, y and z."""
        return self._attributes().max_thread_dimensions

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """The largest amount of shared memory of a group, in bytes."""
        return self._attributes().max_shared_memory_per_block

    @property
    def warp_size(self) -> int | None:
        """The number of threads that run in step."""
        return self._attributes().warp_size

    @property
    def multi_processor_count(self) -> int | None:
        """The number of multiprocessors, or of OpenCL's compute units."""
        return self._attributes().multi_processor_count

    @property
    def max_clock_rate(self) -> int | None:
        """The highest clock of the multiprocessors, in kHz."""
        return self._attributes().max_clock_rate

    @property
    def compute_version(self) -> str | None:
        """The version of the instruction set or of OpenCL, such as 9.0 for sm_90."""
        return self._attributes().compute_version

    def _attributes(self) -> DeviceAttributes:
        self.require()
        if isinstance(self.driver, DescribingDriver):
            return self.driver.attributes(self.index)
        return DeviceAttributes()

    def sync(self) -> None:
        """Wait until the device has done all work. UserError if it does not exist."""
        self.require()
        self.driver.sync(self.index)

    def require(self) -> None:
        """Raise UserError if this machine does not have the device."""
        if self.exist:
            return
        if count := self.driver.count():
            why = f"it has {count} of kind {self.kind}, counted from 0"
            remedy = f"use {self.kind}:{count - 1} or a lower index"
        else:
            why, remedy = self.driver.absence()
        raise UserError(f"this machine has no device {self}", why=why, remedy=remedy)


# Kind of device -> its driver. Importing a driver's module registers it.
_DRIVERS: dict[str, Driver] = {"cpu": HostDriver()}
# Kind of refcomp's own -> the module of its driver, which is imported when the kind is asked for.
_HOMES = {
    "cuda": "refcomp.runtime.cuda.driver",
    "opencl": "refcomp.runtime.opencl.driver",
    "rocm": "refcomp.runtime.hip.driver",
}


def register_device_kind(kind: str, driver: Driver) -> None:
    """Register a kind of device.

    Args:
        kind: the name of the kind: a-z, 0-9 and _, beginning with a letter.
        driver: the object that counts the devices, allocates memory and copies.

    Raises:
        UserError: the name is malformed, or another driver has it.

    Example::

        >>> rc.runtime.register_device_kind("cpu", rc.cpu().driver)  # the same driver again
        >>> rc.runtime.register_device_kind("my-gpu", rc.cpu().driver)
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: 'my-gpu' cannot be the name of a kind of device...
    """
    if not re.fullmatch(_KIND, kind):
        raise UserError(
            f"{kind!r} cannot be the name of a kind of device",
            remedy="use a-z, 0-9 and _",
        )
    _import_driver(kind)  # so that nobody takes the name before
    if _DRIVERS.setdefault(kind, driver) is not driver:
        raise UserError(
            f"the kind of device {kind!r} is registered already",
            remedy="choose another name",
        )


def device_kinds() -> tuple[str, ...]:
    """Return the names of all kinds, also those that this machine does not have."""
    return tuple(sorted({*_DRIVERS, *_HOMES}))


def _import_driver(kind: str) -> None:
    """Let the driver of a kind of refcomp's own be registered."""
    if kind in _HOMES and kind not in _DRIVERS:
        import_module(_HOMES[kind])


def device(kind: str, index: int = 0) -> Device:
    """Return a device, which need not exist on this machine: `device.exist` is True if it does.

    Args:
        kind: `"cpu"`, `"opencl"`, `"rocm"` or a registered kind.
        index: the number of the device among those of its kind, an int of at least 0.

    Raises:
        UserError: the kind is unknown, or the index is not such an int.

    Source: TVM, tvm.device.

    Example::

        >>> str(rc.device("opencl", 1)), rc.device("cpu") == rc.cpu()
        ('opencl:1', True)
    """
    driver = None
    if isinstance(kind, str):
        _import_driver(kind)
        driver = _DRIVERS.get(kind)
    if driver is None:
        raise UserError(
            f"unknown kind of device {kind!r}",
            remedy=advise(
                kind, device_kinds(), f"use one of: {', '.join(device_kinds())}"
            ),
        )
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise UserError(
            f"{index!r} is not the index of a device",
            remedy="count from 0: cpu(0)",
        )
    return Device(kind, index, driver)


def device_of_dlpack(number: int, index: int) -> Device | None:
    """Return a device by DLPack's number of its kind; None if refcomp does not share that kind."""
    for kind in device_kinds():
        driver = device(kind).driver
        if isinstance(driver, SharingDriver) and driver.dlpack_type == number:
            return Device(kind, index, driver)
    return None


def checked_device(value: object) -> Device:
    """Return `value`. UserError if it is not a Device, for example a device's name."""
    if isinstance(value, Device):
        return value
    raise UserError(
        f"{value!r} is not a device",
        why="a device is an object, because a name alone has no index",
        remedy='pass refcomp.cpu(), refcomp.device("opencl", 0), or refcomp.context(target)',
    )


def cpu(index: int = 0) -> Device:
    """Return the host as a device.

    Args:
        index: 0, since the host is one device.

    Source: TVM, tvm.cpu.

    Example::

        >>> str(rc.cpu()), rc.cpu().exist, rc.cpu(1).exist
        ('cpu:0', True, False)
    """
    return device("cpu", index)
