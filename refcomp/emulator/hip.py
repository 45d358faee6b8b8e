"""The functions of AMD's HIP runtime on an emulated GPU, for `refcomp.hip.interface.offered_by`.

Everything is done at once and in order, so streams and events have nothing to wait for. An event is
a time of the host's clock. Errors that a driver returns as numbers are returned as numbers. Two
things raise exceptions instead: findings in a kernel, as a UserError with their full text, and a
missing tool, which no driver has. Several threads may call; a lock makes them work in turn.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from math import prod
from threading import RLock
from typing import Protocol

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.code_object import MAX_BYTES, DamagedCode
from refcomp.emulator.code.failure import KernelFailure
from refcomp.emulator.execution.launch import (
    SHARED_LIMIT,
    THREADS_LIMIT,
    ForeignCode,
    LaunchRequest,
    LoadedCode,
    launch,
    load_code,
)
from refcomp.emulator.generations.generation import ARCHITECTURES, GENERATIONS
from refcomp.emulator.limits import USUAL_LIMITS, Limits
from refcomp.emulator.machine.memory import Allocation, Arena
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.observers.counting import Profile, WaveCounting
from refcomp.emulator.observers.hazards import hazard_observers
from refcomp.emulator.run import explicit_arguments
from refcomp.emulator.translation.compilation import HostTools
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.hip import api as hip_api
from refcomp.hip.numbers import NUMBERS

_ARENA_BYTES = 4 << 30
_NAME = b"emulated AMD GPU\0"
_HEADER_BYTES = 64
_ATTRIBUTES = {
    "MaxBlockDimX": 1024,
    "MaxBlockDimY": 1024,
    "MaxBlockDimZ": 1024,
    "MaxGridDimX": 2**31 - 1,
    "MaxGridDimY": 65536,
    "MaxGridDimZ": 65536,
    "MaxThreadsPerBlock": THREADS_LIMIT,
    "MaxSharedMemoryPerBlock": SHARED_LIMIT,
    "MultiprocessorCount": 1,
    "ClockRate": 1000,
    "MemoryClockRate": 1000,
    "MemoryBusWidth": 64,
    "L2CacheSize": 1 << 20,
    "MaxRegistersPerBlock": 65536,
    "MaxThreadsPerMultiProcessor": 2048,
    "MaxSharedMemoryPerMultiprocessor": SHARED_LIMIT,
    "PciDomainID": 0,
    "PciBusId": 0,
    "PciDeviceId": 0,
}
# Bits of hipMemcpyKind.
_TO_DEVICE = 1
_FROM_DEVICE = 2


def _number(name: str) -> int:
    return hip_api.number(f"hipError{name}")


_INVALID_VALUE = _number("InvalidValue")
_INVALID_HANDLE = _number("InvalidHandle")
_NAMES = {
    number[-1]: name for name, number in NUMBERS.items() if name[:8] == "hipError"
}


class _Out(Protocol):
    """A pointer of C to a number, which a function writes."""

    def __setitem__(self, index: int, value: float, /) -> None: ...


@dataclass(frozen=True, slots=True)
class _FunctionOf:
    """The function that a handle stands for."""

    module: int  # handle of the module
    name: str  # of the kernel


class EmulatedHip:
    """The functions of HIP on one emulated GPU.

    Args:
        arch: name of the GPU, one of `ARCHITECTURES`.
        disassemble: returns the assembly text of a code object.
        size: bytes of its memory.
        is_watched: report uses of bits that nothing wrote.
        observers: observe all launches.
        hazards: names of `HAZARDS` to check for, or True for all.
        limits: when a launch is given up.
        tools: translate hot code to code of the host; None to interpret all of it.

    Raises:
        UserError: the GPU is not emulated.
    """

    def __init__(
        self,
        arch: str,
        disassemble: Callable[[bytes], str],
        *,
        size: int = _ARENA_BYTES,
        is_watched: bool = True,
        observers: Sequence[Observer] = (),
        hazards: bool | Iterable[str] = False,
        limits: Limits = USUAL_LIMITS,
        tools: HostTools | None = None,
    ) -> None:
        if arch not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            raise UserError(
                f"the emulator does not support {arch}",
                remedy=advise(arch, ARCHITECTURES, f"use {known}"),
            )
        self._arch = arch
        self._disassemble = disassemble
        self._limits = limits
        self._tools = tools
        attributes = _ATTRIBUTES | {"WarpSize": GENERATIONS[arch].usual_lanes}
        # Number of an attribute -> its value.
        self._values = {
            hip_api.number(f"hipDeviceAttribute{name}"): value
            for name, value in attributes.items()
        }
        self.observers = (*hazard_observers(hazards), *observers)
        self._arena = Arena(size, is_watched=is_watched)
        self._lock = RLock()
        self._handles = count(1)
        # By handle; pinned memory by address.
        self._kinds: dict[int, str] = {}
        self._modules: dict[int, LoadedCode] = {}
        self._functions: dict[int, _FunctionOf] = {}
        self._events: dict[int, float] = {}
        self._pinned: dict[int, ctypes.Array[ctypes.c_char]] = {}

    def counted(self, work: Callable[[], None]) -> Profile:
        """Call `work`, and return counts of all kernels that it launches."""
        profile = Profile()
        with self._lock:
            before = self.observers
            self.observers = (*before, WaveCounting(profile))
            try:
                work()
            finally:
                self.observers = before
        return profile

    # Devices and errors.

    def hipRuntimeGetVersion(self, version: _Out) -> int:
        version[0] = 7 * hip_api.MAJOR_UNIT
        return 0

    hipDriverGetVersion = hipRuntimeGetVersion

    def hipGetDeviceCount(self, devices: _Out) -> int:
        devices[0] = 1
        return 0

    def hipSetDevice(self, index: int) -> int:
        return _number("InvalidDevice") if index else 0

    def hipDeviceGetName(self, text: int, size: int, index: int) -> int:
        ctypes.memmove(text, _NAME, min(len(_NAME), size))
        return 0

    def hipGetDevicePropertiesR0600(self, answer: int, index: int) -> int:
        name = self._arch.encode() + b"\0"
        ctypes.memmove(answer + hip_api.PROPERTIES[0].arch_offset, name, len(name))
        return 0

    def hipDeviceGetAttribute(self, value: _Out, number: int, index: int) -> int:
        value[0] = self._values.get(number, 0)
        return 0 if number in self._values else _INVALID_VALUE

    def hipDeviceSynchronize(self) -> int:
        return 0

    def hipGetErrorName(self, number: int) -> bytes:
        unknown = "hipErrorUnknown" if number else "hipSuccess"
        return _NAMES.get(number, unknown).encode()

    def hipGetErrorString(self, number: int) -> bytes:
        name = self.hipGetErrorName(number).decode().removeprefix("hipError")
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
        return words.strip().encode()

    # Memory.

    def hipMemGetInfo(self, free: _Out, total: _Out) -> int:
        free[0] = self._arena.free_bytes()
        total[0] = self._arena.size
        return 0

    def hipMalloc(self, memory: _Out, size: int) -> int:
        with self._lock:
            place = self._arena.allocate(size, "memory") if size else None
        memory[0] = place.address if place else 0
        return _number("OutOfMemory") if size and place is None else 0

    def hipFree(self, address: int | None) -> int:
        with self._lock:
            return 0 if not address or self._arena.free(address) else _INVALID_VALUE

    def hipHostMalloc(self, memory: _Out, size: int, flags: int) -> int:
        piece = ctypes.create_string_buffer(max(size, 1))
        memory[0] = ctypes.addressof(piece)
        self._pinned[ctypes.addressof(piece)] = piece
        return 0

    def hipHostFree(self, address: int) -> int:
        return _INVALID_VALUE if self._pinned.pop(address, None) is None else 0

    def hipMemcpy(self, target: int, source: int, size: int, kind: int) -> int:
        to_device = bool(kind & _TO_DEVICE)
        from_device = bool(kind & _FROM_DEVICE)
        ends = [target] * to_device + [source] * from_device
        with self._lock:
            if not all(self._arena.holds(address or 0, size) for address in ends):
                return _INVALID_VALUE
            if to_device and from_device:
                self._arena.copy(target, source, size)
            elif to_device:
                self._arena.write(target, _host_bytes(source, size))
            elif from_device:
                _host_bytes(target, size)[:] = self._arena.read(source, size)
            else:
                ctypes.memmove(target, source, size)
        return 0

    def hipMemcpyAsync(
        self, target: int, source: int, size: int, kind: int, stream: int | None
    ) -> int:
        return self._check(stream, "stream") or self.hipMemcpy(
            target, source, size, kind
        )

    def hipMemcpyPeer(
        self, target: int, to: int, source: int, of: int, size: int
    ) -> int:
        return self.hipMemcpy(target, source, size, _TO_DEVICE | _FROM_DEVICE)

    def hipMemset(self, target: int, value: int, size: int) -> int:
        with self._lock:
            if not self._arena.holds(target, size):
                return _INVALID_VALUE
            self._arena.write(target, np.full(size, value & 0xFF, np.uint8))
        return 0

    def hipMemsetAsync(
        self, target: int, value: int, size: int, stream: int | None
    ) -> int:
        return self._check(stream, "stream") or self.hipMemset(target, value, size)

    # Streams and events.

    def hipStreamCreate(self, stream: _Out) -> int:
        stream[0] = self._create("stream")
        return 0

    def hipStreamDestroy(self, stream: int) -> int:
        return self._destroy(stream, "stream")

    def hipStreamSynchronize(self, stream: int | None) -> int:
        return self._check(stream, "stream")

    def hipStreamWaitEvent(self, stream: int | None, event: int, flags: int) -> int:
        return self._check(stream, "stream") or self._check(event, "event")

    def hipEventCreate(self, event: _Out) -> int:
        event[0] = self._create("event")
        return 0

    def hipEventDestroy(self, event: int) -> int:
        self._events.pop(event, None)
        return self._destroy(event, "event")

    def hipEventRecord(self, event: int, stream: int | None) -> int:
        self._events[event] = time.perf_counter()
        return self._check(event, "event") or self._check(stream, "stream")

    def hipEventSynchronize(self, event: int) -> int:
        return self._check(event, "event")

    def hipEventElapsedTime(self, milliseconds: _Out, start: int, stop: int) -> int:
        if start not in self._events or stop not in self._events:
            return _INVALID_HANDLE
        milliseconds[0] = 1e3 * (self._events[stop] - self._events[start])
        return 0

    # Code.

    def hipModuleLoadData(self, module: _Out, image: int) -> int:
        data = _elf_file(image)
        if data is None:
            return _number("InvalidImage")
        with self._lock:
            try:
                loaded = load_code(
                    self._arena, data, self._disassemble, (self._arch,), self._tools
                )
            except ForeignCode:
                return _number("NoBinaryForGpu")
            except DamagedCode:
                return _number("InvalidImage")
            except MemoryError:
                return _number("OutOfMemory")
            module[0] = handle = self._create("module")
            self._modules[handle] = loaded
        return 0

    def hipModuleUnload(self, module: int) -> int:
        with self._lock:
            loaded = self._modules.pop(module, None)
            if loaded is not None:
                self._arena.free(loaded.base)
            return self._destroy(module, "module")

    def hipModuleGetFunction(self, function: _Out, module: int, name: bytes) -> int:
        if module not in self._modules:
            return _INVALID_HANDLE
        if name.decode(errors="replace") not in self._modules[module].code.kernels:
            return _number("NotFound")
        function[0] = handle = next(self._handles)
        self._functions[handle] = _FunctionOf(module, name.decode())
        return 0

    def hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        self, groups: _Out, function: int, threads: int, shared_bytes: int
    ) -> int:
        groups[0] = max(1, 2048 // max(threads, 1))
        return 0 if function in self._functions else _INVALID_HANDLE

    def hipModuleLaunchKernel(
        self,
        function: int,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        block_x: int,
        block_y: int,
        block_z: int,
        shared_bytes: int,
        stream: int | None,
        params: object,
        extra: Sequence[int] | None,
    ) -> int:
        kernel = self._functions.get(function)
        if kernel is None or kernel.module not in self._modules:
            return _INVALID_HANDLE
        if self._check(stream, "stream"):
            return _INVALID_HANDLE
        arguments = None if params else _arguments(extra)
        grid = (grid_x, grid_y, grid_z)
        block = (block_x, block_y, block_z)
        if arguments is None or 0 in grid or 0 in block:
            return _INVALID_VALUE
        if prod(block) > THREADS_LIMIT:
            return _number("InvalidConfiguration")
        request = LaunchRequest(
            kernel=kernel.name,
            grid=grid,
            block=block,
            arguments=arguments,
            shared_bytes=shared_bytes,
            limits=self._limits,
            observers=self.observers,
        )
        loaded = self._modules[kernel.module]
        with self._lock, _named_arguments(loaded, request):
            report = launch(loaded, request)
        if report.findings:
            raise KernelFailure(kernel.name, report.findings)
        return 0

    # Handles.

    def _create(self, kind: str) -> int:
        handle = next(self._handles)
        self._kinds[handle] = kind
        return handle

    def _destroy(self, handle: int, kind: str) -> int:
        return 0 if self._kinds.pop(handle, None) == kind else _INVALID_HANDLE

    def _check(self, handle: int | None, kind: str) -> int:
        return 0 if not handle or self._kinds.get(handle) == kind else _INVALID_HANDLE


@contextmanager
def _named_arguments(loaded: LoadedCode, request: LaunchRequest) -> Iterator[None]:
    """Label the memory of a kernel's arguments by their names during a launch, for findings."""
    renamed: list[tuple[Allocation, str]] = []
    for argument in explicit_arguments(loaded.kernel(request.kernel)):
        content = request.arguments[argument.offset : argument.offset + argument.size]
        address = int.from_bytes(content, "little")
        if argument.kind != "global_buffer":
            continue
        found = loaded.arena.allocation_at(address)
        # An address within an array belongs to another argument.
        if found is not None and found.address == address:
            renamed.append((found, found.label))
            found.label = f"the memory of {argument.name}"
    try:
        yield
    finally:
        for found, label in reversed(renamed):
            found.label = label


def _host_bytes(address: int, size: int) -> npt.NDArray[np.uint8]:
    """Return memory of the host as an array, u8 [size]."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _arguments(extra: Sequence[int] | None) -> bytes | None:
    """Return the packed arguments of a launch; None if `extra` has another form."""
    wanted = (
        hip_api.LAUNCH_BUFFER_POINTER,
        hip_api.LAUNCH_BUFFER_SIZE,
        hip_api.LAUNCH_END,
    )
    if not extra or tuple(extra[n] for n in (0, 2, 4)) != wanted:
        return None
    size = ctypes.c_size_t.from_address(extra[3]).value
    return ctypes.string_at(extra[1], size) if size else b""


def _elf_file(address: int) -> bytes | None:
    """Return the ELF file at an address of the host; None if it is not one.

    The section table, which the header points to, is the end of the file.
    """
    header = ctypes.string_at(address, _HEADER_BYTES)
    if header[:6] != b"\x7fELF\x02\x01":
        return None
    (start,) = struct.unpack_from("<Q", header, 40)
    size, number = struct.unpack_from("<HH", header, 58)
    end = start + size * number
    return ctypes.string_at(address, end) if end <= MAX_BYTES else None
