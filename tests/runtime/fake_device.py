"""A device without hardware: memory in this process, kernels that are Python functions.

`FakeDriver` counts what it hands out, so that a test sees whether workspaces are given back, and
writes down every launch. It can be told to fail.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.device import Device, DeviceMemory
from refcomp.runtime.launch import Extents, KernelSignature

Kernel = Callable[..., None]


class _Piece:
    """The bytes of one Memory; tells its driver when nobody holds it any more."""

    def __init__(self, driver: "FakeDriver", size: int) -> None:
        self.driver, self.bytes = driver, np.zeros(size, np.uint8)
        driver.held += 1

    def __del__(self) -> None:
        self.driver.held -= 1


class FakeDriver:
    """A DeviceDriver of `devices` devices; `kernels` are called with arrays of bytes and numbers,
    then grid and block. `launches` has (name, numbers, grid, block, shared_bytes)."""

    def __init__(self, kernels: dict[str, Kernel] | None = None, devices: int = 1) -> None:
        self.kernels, self.devices = kernels or {}, devices
        self.held = self.loads = self.syncs = 0
        self.sizes: list[int] = []
        self.launches: list[tuple[str, list[Any], Extents, Extents, tuple[int, ...]]] = []

    def count(self) -> int:
        return self.devices

    def absence(self) -> tuple[str, str]:
        return "the fake driver was told so", "make one with devices=1"

    def name(self, index: int) -> str:
        return f"fake number {index}"

    def sync(self, index: int) -> None:
        self.syncs += 1

    def allocate(self, index: int, size: int) -> DeviceMemory:
        self.sizes.append(size)
        return DeviceMemory(0x10000 * len(self.sizes), _Piece(self, size))

    def upload(self, index: int, source: np.ndarray, target: DeviceMemory) -> None:
        bytes_of(target)[:] = source.reshape(-1).view(np.uint8)

    def download(self, index: int, source: DeviceMemory, target: np.ndarray) -> None:
        target.reshape(-1).view(np.uint8)[:] = bytes_of(source)

    def limits(self, index: int) -> DeviceLimits:
        return DeviceLimits((64, 64, 8), 128, 1024)

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> "FakeDriver":
        self.loads += 1
        return self

    def launch(
        self,
        kernel: str,
        values: Sequence[Any],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        numbers = [value for value in values if not isinstance(value, DeviceMemory)]
        self.launches.append((kernel, numbers, grid, block, shared_bytes))
        plain = [bytes_of(v) if isinstance(v, DeviceMemory) else v for v in values]
        self.kernels[kernel](*plain, grid, block)


def bytes_of(memory: DeviceMemory) -> np.ndarray:
    """The bytes of a fake device's memory."""
    assert isinstance(memory.owner, _Piece)
    return memory.owner.bytes


def fake_device(driver: FakeDriver, kind: str = "fake") -> Device:
    """Device number 0 of `driver`."""
    return Device(kind, 0, driver)
