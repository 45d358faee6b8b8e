"""Devices: Driver, what a kind of device can do, and Device, one device of a kind.

The kind `cpu` is always there; others are added by `register_device_kind`. Refuses unknown kinds,
and the use of a device that this machine does not have.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from refcomp.foundation import machine
from refcomp.foundation.errors import UserError

HostArray = np.ndarray[Any, np.dtype[Any]]

_KIND = re.compile(r"[a-z][a-z0-9_]*\Z")
# Of memory made here: a cache line, so that no vector straddles two.
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True, eq=False)
class DeviceMemory:
    """A piece of a device's memory, given back when `owner` is no longer referenced.

    `host` is the same bytes as a uint8 array where the host can reach them, else None.
    """

    address: int
    owner: object
    host: HostArray | None = None


class Driver(Protocol):
    """One kind of device; `index` counts the devices of the kind from 0.

    `upload` and `download` copy whole, contiguous arrays and return when the copy is done, after
    all work given to the device before. Memory that is let go while the device is at work with it
    stays until that work is done.
    """

    def count(self) -> int: ...

    def absence(self) -> tuple[str, str]:
        """Why `count` is 0, and what to do about it; asked only then."""

    def name(self, index: int) -> str: ...

    def sync(self, index: int) -> None: ...

    def allocate(self, index: int, size: int) -> DeviceMemory: ...

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None: ...

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None: ...


@runtime_checkable
class CopyingDriver(Protocol):
    """A Driver that copies between its devices, and on one, without the host between."""

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
    """A Driver whose memory may be used in parts, from `offset` bytes on."""

    def part(self, memory: DeviceMemory, offset: int, size: int) -> DeviceMemory: ...


def part_of(memory: DeviceMemory, offset: int, size: int) -> DeviceMemory:
    """Some of the bytes, where addresses are those that code sees."""
    host = None if memory.host is None else memory.host[offset : offset + size]
    return DeviceMemory(memory.address + offset, memory, host)


class HostDriver:
    """The processor this process runs on: one device, whose work is done when a call returns."""

    part = staticmethod(part_of)

    def count(self) -> int:
        return 1

    def absence(self) -> tuple[str, str]:
        raise AssertionError("the host is always there")

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
    """The address of the first element."""
    return int(array.__array_interface__["data"][0])


@dataclass(frozen=True, slots=True)
class Device:
    """One device, which may or may not exist on this machine; equal by kind and index."""

    kind: str
    index: int
    driver: Driver = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"

    @property
    def exist(self) -> bool:
        """Whether this machine has the device."""
        return self.index < self.driver.count()

    @property
    def name(self) -> str:
        """What the maker calls it. UserError when it does not exist."""
        self.require()
        return self.driver.name(self.index)

    def sync(self) -> None:
        """Wait until all work given to the device is done. UserError when it does not exist."""
        self.require()
        self.driver.sync(self.index)

    def require(self) -> None:
        """Raises UserError when this machine does not have the device."""
        if self.exist:
            return
        if count := self.driver.count():
            why = f"this machine has {count} of kind {self.kind}, counted from 0"
            remedy = f"use {self.kind}:{count - 1} or a lower index"
        else:
            why, remedy = self.driver.absence()
        raise UserError(f"there is no device {self}", why=why, remedy=remedy)


_DRIVERS: dict[str, Driver] = {"cpu": HostDriver()}


def register_device_kind(kind: str, driver: Driver) -> None:
    """Make `device(kind, index)` known. UserError for a taken or ill-formed name."""
    if not _KIND.match(kind):
        raise UserError(
            f"{kind!r} cannot name a kind of device", remedy="use a-z, 0-9 and _"
        )
    if _DRIVERS.setdefault(kind, driver) is not driver:
        raise UserError(
            f"the kind of device {kind!r} is registered already",
            remedy="choose another name",
        )


def device_kinds() -> tuple[str, ...]:
    """The kinds of devices that are known, whether this machine has one or not."""
    return tuple(sorted(_DRIVERS))


def device(kind: str, index: int = 0) -> Device:
    """The device number `index` of `kind`, existing or not (`.exist`).

    UserError for an unknown kind or an index that is no natural number.
    """
    driver = _DRIVERS.get(kind) if isinstance(kind, str) else None
    if driver is None:
        raise UserError(
            f"unknown kind of device {kind!r}",
            remedy=f"use one of: {', '.join(device_kinds())}",
        )
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise UserError(
            f"{index!r} is no index of a device", remedy="count from 0: cpu(0)"
        )
    return Device(kind, index, driver)


def checked_device(value: Any) -> Device:
    """Return `value`; UserError for anything but a Device, such as its name."""
    if isinstance(value, Device):
        return value
    raise UserError(
        f"{value!r} is not a device",
        why="a device is an object of its own, since a name says nothing of which one is meant",
        remedy='pass refcomp.cpu(), refcomp.device("opencl", 0), or refcomp.context(target)',
    )


def cpu(index: int = 0) -> Device:
    """The host; only index 0 exists."""
    return device("cpu", index)
