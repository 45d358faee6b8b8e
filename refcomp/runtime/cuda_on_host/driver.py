"""A device that runs CUDA kernels on this machine. It is not a GPU, and its times mean nothing.

It is not registered as a kind of device: only what judges the compiler makes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.cuda.driver import USUAL_LIMITS
from refcomp.runtime.cuda_on_host.process import HostArgument, HostProcess
from refcomp.runtime.device import Device, DeviceMemory, HostArray
from refcomp.runtime.launch import Argument, Extents, KernelSignature

LIMIT_S = 120.0  # of one launch


class HostCudaDriver:
    """A DeviceDriver whose kernels are shared objects for this machine."""

    def __init__(self, process: Binary, limit_s: float = LIMIT_S) -> None:
        """Run kernels by `process`, which a launch may use for `limit_s` seconds."""
        self._process = process
        self._limit_s = limit_s
        self._addresses = 0

    def count(self) -> int:
        """Return 1."""
        return 1

    def absence(self) -> tuple[str, str]:
        """Raise AssertionError: the device always exists."""
        raise AssertionError("this machine always exists")

    def name(self, index: int) -> str:
        """Return a name that nobody takes for a GPU's."""
        return "this machine, by g++, instead of a GPU"

    def limits(self, index: int) -> DeviceLimits:
        """Return the limits of GPUs."""
        return USUAL_LIMITS

    def sync(self, index: int) -> None:
        """Return at once: each launch is complete when it returns."""

    def allocate(self, index: int, size: int) -> DeviceMemory:
        """Return memory of this process. Its address is only a name."""
        self._addresses += 1
        # What nothing wrote is not zero.
        return DeviceMemory(self._addresses << 32, np.full(size, 0xFB, np.uint8))

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None:
        """Copy an array to the device's memory."""
        bytes_of(target)[:] = source.reshape(-1).view(np.uint8)

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None:
        """Copy the device's memory to an array."""
        target.reshape(-1).view(np.uint8)[:] = bytes_of(source)

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> HostLauncher:
        """Return the kernels of a shared object."""
        assert isinstance(code, Binary)
        symbols = {kernel.name: kernel.symbol for kernel in kernels}
        return HostLauncher(HostProcess(self._process, code, self._limit_s), symbols)


class HostLauncher:
    """The kernels of one shared object."""

    def __init__(self, process: HostProcess, symbols: Mapping[str, str]) -> None:
        self._process = process
        self._symbols = symbols

    def launch(
        self,
        kernel: str,
        values: Sequence[Argument],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Run a kernel to its end. Raises ToolchainError if it has a fault."""
        arguments = []
        targets = []
        for value in values:
            if isinstance(value, DeviceMemory):
                targets.append(bytes_of(value))
                arguments.append(HostArgument(targets[-1].tobytes(), is_array=True))
            else:
                arguments.append(HostArgument(value.tobytes(), is_array=False))
        symbol = self._symbols[kernel]
        results = self._process.launch(symbol, arguments, grid, block, shared_bytes)
        for target, result in zip(targets, results, strict=True):
            target[:] = np.frombuffer(result, np.uint8)


def bytes_of(memory: DeviceMemory) -> HostArray:
    """Return the bytes of this device's memory."""
    assert isinstance(memory.owner, np.ndarray)
    return memory.owner


def host_device(process: Binary, limit_s: float = LIMIT_S) -> Device:
    """Return this machine as a device for CUDA kernels."""
    return Device("cuda_on_host", 0, HostCudaDriver(process, limit_s))
