"""Devices: the host, other kinds by registration, and the refusals."""

import sys

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.foundation.records import field_names
from refcomp.runtime.device import (
    Device,
    DeviceAttributes,
    DeviceMemory,
    PartingDriver,
    address_of,
    cpu,
    device,
    part_of,
    register_device_kind,
)
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.opencl.driver import OpenCLDriver


class FarMemory:
    """A kind of device whose memory the host cannot reach: bytes in a dictionary."""

    def __init__(self) -> None:
        self.stored: dict[int, bytearray] = {}
        self.syncs: list[int] = []

    def count(self) -> int:
        return 2

    def name(self, index: int) -> str:
        return f"far number {index}"

    def sync(self, index: int) -> None:
        self.syncs.append(index)

    def allocate(self, index: int, size: int) -> DeviceMemory:
        address = 0x1000 * (len(self.stored) + 1)
        self.stored[address] = bytearray(size)
        return DeviceMemory(address, self)

    def upload(self, index: int, source: np.ndarray, target: DeviceMemory) -> None:
        self.stored[target.address][:] = source.tobytes()

    def download(self, index: int, source: DeviceMemory, target: np.ndarray) -> None:
        raw = np.frombuffer(self.stored[source.address], np.uint8)
        target.reshape(-1).view(np.uint8)[:] = raw


def test_the_host() -> None:
    host = cpu()
    assert host == cpu(0) == device("cpu", 0)
    assert (host.kind, host.index, str(host)) == ("cpu", 0, "cpu:0")
    assert host.exist
    assert host.name
    assert host.sync() is None
    assert repr(host) == "Device(kind='cpu', index=0)"


def test_devices_are_equal_by_kind_and_index() -> None:
    other = FarMemory()
    assert Device("cpu", 0, other) == cpu(0)
    assert hash(Device("cpu", 0, other)) == hash(cpu(0))
    assert cpu(1) != cpu(0)
    assert Device("far", 0, other) != cpu(0)


def test_a_device_that_is_not_there() -> None:
    assert not cpu(1).exist
    for action in (lambda: cpu(1).name, cpu(1).sync, cpu(1).require):
        with pytest.raises(UserError) as caught:
            action()
        assert str(caught.value) == (
            "this machine has no device cpu:1\n"
            "  why: it has 1 of kind cpu, counted from 0\n"
            "  what to do: use cpu:0 or a lower index"
        )


def test_unknown_kinds_and_indices() -> None:
    with pytest.raises(UserError, match=r"unknown kind of device 'gpu'\n.*use one of: .*cpu"):
        device("gpu")
    for index in (-1, 1.0, True, "0"):
        with pytest.raises(UserError, match=r"is not the index of a device\n.*count from 0"):
            device("cpu", index)  # type: ignore[arg-type]


def test_registered_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    # In the package, the function of the same name hides the module.
    room = sys.modules["refcomp.runtime.device"]
    monkeypatch.setattr(room, "_DRIVERS", dict(room._DRIVERS))
    driver = FarMemory()
    register_device_kind("far", driver)
    register_device_kind("far", driver)
    assert device("far", 1).name == "far number 1"
    device("far", 1).sync()
    assert driver.syncs == [1]
    assert not device("far", 2).exist
    with pytest.raises(UserError, match=r"'far' is registered already\n.*choose another name"):
        register_device_kind("far", FarMemory())
    with pytest.raises(UserError, match=r"'Far!' cannot be the name of a kind of device"):
        register_device_kind("Far!", driver)


def test_a_device_that_reports_nothing_has_no_attributes() -> None:
    for plain in (cpu(), Device("far", 0, FarMemory())):
        assert plain.device_name == plain.name
        for name in field_names(DeviceAttributes):
            assert getattr(plain, name) is None
        with pytest.raises(AttributeError):
            plain.warp_size = 32  # type: ignore[misc]


@pytest.mark.parametrize("name", [*field_names(DeviceAttributes), "device_name"])
def test_attributes_of_a_device_that_is_not_there(name: str) -> None:
    with pytest.raises(UserError, match=r"this machine has no device cpu:1\n"):
        getattr(cpu(1), name)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 1000])
def test_host_memory_is_aligned_and_as_large_as_asked(size: int) -> None:
    memory = cpu().driver.allocate(0, size)
    assert memory.host is not None
    assert memory.host.nbytes == size
    assert memory.address % 64 == 0
    assert address_of(memory.host) == memory.address or size == 0


def test_memory_of_the_host_and_of_amd_gpus_may_be_used_in_parts() -> None:
    memory = cpu().driver.allocate(0, 64)
    assert memory.host is not None and isinstance(cpu().driver, PartingDriver)
    memory.host[:] = np.arange(64)
    part = part_of(memory, 16, 8)
    assert part.address == memory.address + 16 and part.owner is memory
    assert part.host is not None and part.host.tolist() == list(range(16, 24))
    assert cpu().driver.part(memory, 16, 8).address == part.address
    assert part_of(DeviceMemory(4096, "owner"), 8, 4).host is None
    assert isinstance(HipDriver(), PartingDriver)
    assert not isinstance(OpenCLDriver(), PartingDriver)
