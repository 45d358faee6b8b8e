"""A HIP driver without a GPU for the tests of what stands above it: memory is the host's.

It stands behind the real C signatures (`refcomp.hip.interface.offered_by`), so a call with wrong
types fails here as it does with AMD's library; it checks handles and counts what is alive. It runs
no kernel: `on_launch` may. What fails without a GPU is tested with the real library instead.
"""

import ctypes
from collections.abc import Callable
from itertools import count
from typing import Any

from refcomp.hip import api as hip_api
from refcomp.hip.interface import offered_by
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.hip.library import HipLibrary

ATTRIBUTES = {
    **{"MaxBlockDimX": 1024, "MaxBlockDimY": 512, "MaxBlockDimZ": 64},
    **{"MaxGridDimX": 2**31 - 1, "MaxGridDimY": 65536, "MaxGridDimZ": 65535},
    **{"MaxThreadsPerBlock": 1024, "MaxSharedMemoryPerBlock": 65536, "WarpSize": 64},
    **{"MultiprocessorCount": 110, "ClockRate": 1_700_000, "MemoryClockRate": 1_600_000},
    **{"MemoryBusWidth": 4096, "L2CacheSize": 8 << 20, "MaxRegistersPerBlock": 65536},
    **{"MaxThreadsPerMultiProcessor": 2048, "MaxSharedMemoryPerMultiprocessor": 65536},
    **{"PciDomainID": 0, "PciBusId": 0xC1, "PciDeviceId": 2},
}
_NUMBERS = {hip_api.number(f"hipDeviceAttribute{name}"): v for name, v in ATTRIBUTES.items()}
WORDS = {100: b"no ROCm-capable device is detected", 101: b"invalid device ordinal"}
NAMES = {100: b"hipErrorNoDevice", 101: b"hipErrorInvalidDevice"}
_ALIGNMENT = 256  # bytes, at least, of memory that HIP allocates
INVALID_HANDLE = hip_api.number("hipErrorInvalidHandle")
INVALID_VALUE = hip_api.number("hipErrorInvalidValue")


class RecordingHip:
    """`devices` GPUs called `arch`; `errors` maps a function to the number that it returns.

    `calls` are the names of all functions called, `launches` what hipModuleLaunchKernel was given,
    its arguments as bytes; `on_launch` takes the same. `alive` has each thing that was made and
    not given back: what it is, by address or handle; `copies` the kinds of copies in order.
    """

    def __init__(self, devices: int = 1, arch: bytes = b"gfx90a:sramecc+:xnack-") -> None:
        self.devices, self.arch, self.version = devices, arch, 6 * hip_api.MAJOR_UNIT
        self.errors: dict[str, int] = {}
        self.calls: list[str] = []
        self.memory: dict[int, Any] = {}
        self.alive: dict[int, str] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.on_launch: Callable[..., None] = lambda *launch: None
        self.current = -1
        self.symbols: dict[int, str] = {}
        self.streams: list[int | None] = []
        self.copies: list[tuple[Any, ...]] = []
        self.code = b""
        self._handles, self._recorded = count(77), dict[int, int]()

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        is_call = name in hip_api.FUNCTIONS or name.startswith("hipGetDeviceProperties")
        if value is None or not is_call:
            return value

        def recorded(*args: Any) -> int:
            self.calls.append(name)
            return self.errors.get(name, 0) or value(*args) or 0

        return recorded

    def hipGetErrorName(self, number: int) -> bytes:
        return NAMES.get(number, b"hipError%d" % number)

    def hipGetErrorString(self, number: int) -> bytes:
        return WORDS.get(number, b"error number %d" % number)

    def hipRuntimeGetVersion(self, version: Any) -> None:
        version[0] = self.version

    hipDriverGetVersion = hipRuntimeGetVersion

    def hipGetDeviceCount(self, number: Any) -> int:
        number[0] = self.devices
        return 0 if self.devices else hip_api.number("hipErrorNoDevice")

    def hipSetDevice(self, index: int) -> int:
        self.current = index
        return 0 if index < self.devices else hip_api.number("hipErrorInvalidDevice")

    def hipDeviceGetName(self, text: int, size: int, index: int) -> None:
        ctypes.memmove(text, b"AMD Instinct\0", 13)

    def hipGetDevicePropertiesR0600(self, answer: int, index: int) -> None:
        ctypes.memmove(answer + 1160, self.arch, len(self.arch))

    def hipDeviceGetAttribute(self, value: Any, number: int, index: int) -> None:
        value[0] = _NUMBERS[number]

    def hipDeviceSynchronize(self) -> None:
        return None

    # Memory.

    def hipMemGetInfo(self, free: Any, total: Any) -> None:
        free[0], total[0] = 3 << 30, 64 << 30

    def hipMalloc(self, address: Any, size: int) -> None:
        if size:  # as HIP does: no memory has no address
            address[0] = self._make_memory(size, "memory")

    def hipFree(self, address: int) -> int:
        return self._give_back(address, "memory")

    def hipHostMalloc(self, address: Any, size: int, flags: int) -> None:
        address[0] = self._make_memory(size, "pinned")

    def hipHostFree(self, address: int) -> int:
        return self._give_back(address, "pinned")

    def hipMemcpy(self, target: int, source: int, size: int, kind: int) -> int:
        self.copies.append((kind, size))
        # 1: to the device, 2: from it, 3: both; an address in the middle of memory is one, too.
        if not all(map(self._holds, [target] * (kind & 1) + [source] * (kind & 2))):
            return INVALID_VALUE
        ctypes.memmove(target, source, size)
        return 0

    def hipMemcpyAsync(
        self, target: int, source: int, size: int, kind: int, stream: int | None
    ) -> int:
        self.streams.append(stream)
        return self._check(stream, "stream") or self.hipMemcpy(target, source, size, kind)

    def hipMemcpyPeer(
        self, target: int, target_device: int, source: int, source_device: int, size: int
    ) -> None:
        self.copies.append(("peer", target_device, source_device, size))
        ctypes.memmove(target, source, size)

    def hipMemset(self, target: int, value: int, size: int) -> int:
        if not self._holds(target):
            return INVALID_VALUE
        ctypes.memset(target, value, size)
        return 0

    def hipMemsetAsync(self, target: int, value: int, size: int, stream: int | None) -> int:
        self.streams.append(stream)
        return self._check(stream, "stream") or self.hipMemset(target, value, size)

    # Streams and events.

    def hipStreamCreate(self, stream: Any) -> None:
        stream[0] = self._make("stream")

    def hipStreamDestroy(self, stream: int) -> int:
        return self._give_back(stream, "stream")

    def hipStreamSynchronize(self, stream: int | None) -> int:
        return self._check(stream, "stream")

    def hipStreamWaitEvent(self, stream: int | None, event: int, flags: int) -> int:
        return self._check(stream, "stream") or self._check(event, "event")

    def hipEventCreate(self, event: Any) -> None:
        event[0] = self._make("event")

    def hipEventDestroy(self, event: int) -> int:
        return self._give_back(event, "event")

    def hipEventSynchronize(self, event: int) -> int:
        return self._check(event, "event")

    def hipEventRecord(self, event: int, stream: int | None) -> int:
        self._recorded[event] = len(self.launches)
        self.streams.append(stream)
        return self._check(event, "event") or self._check(stream, "stream")

    def hipEventElapsedTime(self, milliseconds: Any, start: int, stop: int) -> int:
        """2.5 ms for each launch between, or for none."""
        milliseconds[0] = 2.5 * max(1, self._recorded[stop] - self._recorded[start])
        return self._check(start, "event") or self._check(stop, "event")

    # Code.

    def hipModuleLoadData(self, module: Any, image: int) -> None:
        self.code, module[0] = ctypes.string_at(image), self._make("module")

    def hipModuleUnload(self, module: int) -> int:
        return self._give_back(module, "module")

    def hipModuleGetFunction(self, function: Any, module: int, symbol: bytes) -> int:
        function[0] = handle = next(self._handles)
        self.symbols[handle] = symbol.decode()
        return self._check(module, "module")

    def hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        self, groups: Any, function: int, threads: int, shared_bytes: int
    ) -> int:
        groups[0] = 2048 // threads
        return 0 if function in self.symbols else INVALID_HANDLE

    def hipModuleLaunchKernel(self, function: int, *rest: Any) -> int:
        *numbers, stream, params, extra = rest
        assert not params
        assert [extra[i] for i in (0, 2, 4)] == [1, 2, 3]
        if function not in self.symbols or self._check(stream, "stream"):
            return INVALID_HANDLE
        size = ctypes.c_size_t.from_address(extra[3]).value
        self.streams.append(stream)
        self.launches.append((self.symbols[function], *numbers, ctypes.string_at(extra[1], size)))
        self.on_launch(*self.launches[-1])
        return 0

    def _make_memory(self, size: int, what: str) -> int:
        whole = (ctypes.c_ubyte * (size + _ALIGNMENT))()
        begin = -ctypes.addressof(whole) % _ALIGNMENT
        piece = (ctypes.c_ubyte * size).from_buffer(whole, begin)
        address = ctypes.addressof(piece)
        self.memory[address], self.alive[address] = piece, what
        return address

    def _make(self, what: str) -> int:
        handle = next(self._handles)
        self.alive[handle] = what
        return handle

    def _give_back(self, handle: int, what: str) -> int:
        self.memory.pop(handle, None)
        return 0 if self.alive.pop(handle, None) == what else INVALID_HANDLE

    def _check(self, handle: int | None, what: str) -> int:
        return 0 if handle is None or self.alive.get(handle) == what else INVALID_HANDLE

    def _holds(self, address: int) -> bool:
        return any(0 <= address - start < len(piece) for start, piece in self.memory.items())


def library_of(recording: RecordingHip) -> HipLibrary:
    return HipLibrary(offered_by(recording), "recording")


def driver_of(recording: RecordingHip) -> HipDriver:
    return HipDriver(lambda: library_of(recording))
