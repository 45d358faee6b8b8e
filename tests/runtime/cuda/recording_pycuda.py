"""A stand-in for `pycuda.driver` without a GPU: memory is the host's, kernels are Python functions.

It has the names of `refcomp.runtime.cuda.interface` and no others, and those rules of pycuda that
matter: calls need a pushed context, and an object whose destructor runs without its context is
counted as leaked. After a trap, every call fails.
"""

import struct
import threading
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import Binary
from refcomp.runtime.cuda import interface
from refcomp.runtime.cuda.driver import CudaDriver

ATTRIBUTES = {
    **{"MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64},
    **{"MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535},
    **{"MAX_THREADS_PER_BLOCK": 1024, "MAX_THREADS_PER_MULTIPROCESSOR": 2048, "WARP_SIZE": 32},
    **{"MAX_SHARED_MEMORY_PER_BLOCK": 49152, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448},
    **{"MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472, "MAX_REGISTERS_PER_BLOCK": 65536},
    **{"MAX_REGISTERS_PER_MULTIPROCESSOR": 65536, "MULTIPROCESSOR_COUNT": 132},
    **{"CLOCK_RATE": 1_980_000, "MEMORY_CLOCK_RATE": 2_619_000},
    **{"GLOBAL_MEMORY_BUS_WIDTH": 5120, "L2_CACHE_SIZE": 50 << 20},
}
FUNCTION_ATTRIBUTES = {
    **{"MAX_THREADS_PER_BLOCK": 1024, "SHARED_SIZE_BYTES": 0, "LOCAL_SIZE_BYTES": 0},
    **{"NUM_REGS": 32, "MAX_DYNAMIC_SHARED_SIZE_BYTES": 0},
}


class Error(Exception):
    """pycuda's base class."""


class LackOfMemory(Error):
    """pycuda's MemoryError."""


class Launch(SimpleNamespace):
    """symbol, arguments as bytes, grid, block, shared, stream (a handle or None), device."""


class RecordingPycuda:
    """`devices` GPUs of `capability`; `errors` maps a name to the words with which it fails.

    `calls` are the names called in order; `launches` have a Launch each, which `on_launch` takes.
    `alive` has each thing that was made and not released. `leaked` are those whose destructor ran
    without their context. `memory_bytes` is the size of a device.
    """

    def __init__(self, devices: int = 1, capability: tuple[int, int] = (9, 0)) -> None:
        self.devices, self.capability = devices, capability
        self.errors: dict[str, str] = {}
        self.calls: list[str] = []
        self.launches: list[Launch] = []
        self.on_launch: Callable[[Launch], None] = lambda launch: None
        self.alive: list[str] = []
        self.leaked: list[str] = []
        self.memory: dict[int, Any] = {}
        self.memory_bytes, self.used_bytes = 80 << 30, 0
        self.trap = ""
        self.code: list[bytes] = []
        self.kernel_attributes = dict(FUNCTION_ATTRIBUTES)
        self.allowed: list[tuple[str, int]] = []
        self.has_started = False
        self.stacks = threading.local()
        self.driver = _module(self)

    def call(self, name: str, device: int | None = None) -> None:
        """Record a call; fail if it shall, or if it needs a context and none is pushed."""
        self.calls.append(name)
        if words := self.errors.get(name, ""):
            kind = LackOfMemory if words == "out of memory" else Error
            raise kind(f"{name} failed: {words}")
        if not self.has_started and name != "cuInit":
            raise Error(f"{name} failed: initialization error")
        if device is not None:
            return
        if not self.stack:
            raise Error(f"{name} failed: invalid device context")
        if self.trap:
            raise Error(f"{name} failed: {self.trap}")

    @property
    def stack(self) -> list[int]:
        """The devices whose contexts this thread has pushed."""
        return self.stacks.__dict__.setdefault("pushed", [])

    def piece(self, address: int, size: int) -> np.ndarray:
        """The bytes at an address of device memory, which must be inside one allocation."""
        for start, (owner, memory) in self.memory.items():
            if start <= address and address + size <= start + len(memory):
                assert owner == self.stack[-1], "memory of another device"
                offset = address - start
                return memory[offset : offset + size]
        raise Error("a copy failed: invalid argument")


def driver_of(recording: RecordingPycuda) -> CudaDriver:
    return CudaDriver(lambda: recording.driver)


def fake_cubin(arch: int = 90) -> Binary:
    """A header of a cubin as CUDA 13 writes it, without code."""
    ident = b"\x7fELF" + bytes([2, 1, 1, 41, 8]) + bytes(7)
    flags = 0x06000004 | arch << 8
    rest = struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 0, flags, 64, 0, 0, 0, 0, 0)
    return Binary(ident + rest, "cubin")


def _module(recording: RecordingPycuda) -> Any:
    """Make the classes and functions of `pycuda.driver` that act on a recording."""
    return _Module(recording).namespace()


class _Owned:
    """An object that pycuda makes and releases; `_what` is its name."""

    _what = ""

    def __init__(self) -> None:
        self._device = self._recording.stack[-1]
        self._recording.alive.append(self._what)

    def __del__(self) -> None:
        if getattr(self, "_device", None) is None:
            return
        recording = self._recording
        recording.alive.remove(self._what)
        if recording.stack[-1:] != [self._device]:
            recording.leaked.append(self._what)
        self._device = None


class _Module:
    def __init__(self, recording: RecordingPycuda) -> None:
        self.recording = recording
        self.handles = count(77)

    def namespace(self) -> Any:
        members = {
            name: getattr(self, name)
            for name in interface.names()
            if "." not in name and hasattr(self, name)
        }
        classes = {
            name: getattr(self, f"make_{name}")()
            for name in (
                *("Device", "Context", "Stream", "Event", "DeviceAllocation", "Module"),
                *("Function", "device_attribute", "function_attribute"),
            )
        }
        self.classes = SimpleNamespace(**classes)
        return SimpleNamespace(**members, **classes, Error=Error, MemoryError=LackOfMemory)

    # Functions of the module.

    def init(self) -> None:
        self.recording.has_started = True
        self.recording.call("cuInit", 0)

    def get_version(self) -> tuple[int, int, int]:
        return (13, 0, 0)

    def get_driver_version(self) -> int:
        return 12080

    def mem_get_info(self) -> tuple[int, int]:
        self.recording.call("cuMemGetInfo")
        total = self.recording.memory_bytes
        return total - self.recording.used_bytes, total

    def mem_alloc(self, size: int) -> Any:
        assert size > 0
        self.recording.call("cuMemAlloc")
        if size > self.recording.memory_bytes - self.recording.used_bytes:
            raise LackOfMemory("cuMemAlloc failed: out of memory")
        return self.classes.DeviceAllocation(size)

    def pagelocked_empty(self, shape: int, dtype: Any) -> np.ndarray:
        self.recording.call("cuMemHostAlloc")

        class Pinned(_Owned, np.ndarray):
            _recording = self.recording
            _what = "pinned"

            def __new__(cls, size: int) -> Any:
                return np.ndarray.__new__(cls, size, dtype)

            def __init__(self, size: int) -> None:
                super().__init__()

            def __array_finalize__(self, source: Any) -> None:
                self._device = None

        return Pinned(shape)

    def memcpy_htod(self, dest: int, src: np.ndarray) -> None:
        self.recording.call("cuMemcpyHtoD")
        memoryview(src)  # pycuda needs the buffer protocol
        self.recording.piece(dest, src.nbytes)[:] = src

    def memcpy_dtoh(self, dest: np.ndarray, src: int) -> None:
        self.recording.call("cuMemcpyDtoH")
        memoryview(dest)
        dest[:] = self.recording.piece(src, dest.nbytes)

    def memcpy_dtod(self, dest: int, src: int, size: int) -> None:
        self.recording.call("cuMemcpyDtoD")
        self.recording.piece(dest, size)[:] = self.recording.piece(src, size)

    def memset_d8(self, dest: int, data: int, size: int) -> None:
        self.recording.call("cuMemsetD8")
        self.recording.piece(dest, size)[:] = data

    def memcpy_htod_async(self, dest: int, src: np.ndarray, stream: Any) -> None:
        self.recording.calls.append(f"stream {stream.handle}")
        self.memcpy_htod(dest, src)

    def memcpy_dtoh_async(self, dest: np.ndarray, src: int, stream: Any) -> None:
        self.recording.calls.append(f"stream {stream.handle}")
        self.memcpy_dtoh(dest, src)

    def memcpy_dtod_async(self, dest: int, src: int, size: int, stream: Any) -> None:
        self.recording.calls.append(f"stream {stream.handle}")
        self.memcpy_dtod(dest, src, size)

    def memset_d8_async(self, dest: int, data: int, size: int, stream: Any) -> None:
        self.recording.calls.append(f"stream {stream.handle}")
        self.memset_d8(dest, data, size)

    def module_from_buffer(self, buffer: bytes) -> Any:
        self.recording.call("cuModuleLoadDataEx")
        self.recording.code.append(bytes(buffer))
        return self.classes.Module()

    # Classes.

    def make_device_attribute(self) -> Any:
        return type("device_attribute", (), dict(ATTRIBUTES))

    def make_function_attribute(self) -> Any:
        return type("function_attribute", (), {name: name for name in FUNCTION_ATTRIBUTES})

    def make_Device(self) -> Any:
        recording, classes = self.recording, self

        class Device:
            def __init__(self, number: int) -> None:
                recording.call("cuDeviceGet", number)
                assert 0 <= number < recording.devices
                self._number = number

            @staticmethod
            def count() -> int:
                recording.call("cuDeviceGetCount", 0)
                return recording.devices

            def name(self) -> str:
                return "NVIDIA H100 80GB HBM3"

            def compute_capability(self) -> tuple[int, int]:
                return recording.capability

            def pci_bus_id(self) -> str:
                return "0000:C1:00.0"

            def get_attribute(self, attr: int) -> int:
                recording.call("cuDeviceGetAttribute", self._number)
                return attr  # the attributes are their own values

            def retain_primary_context(self) -> Any:
                recording.call("cuDevicePrimaryCtxRetain", self._number)
                return classes.classes.Context(self._number)

        return Device

    def make_Context(self) -> Any:
        recording = self.recording

        class Context:
            def __init__(self, number: int) -> None:
                self._number = number

            def push(self) -> None:
                recording.call("cuCtxPushCurrent", self._number)
                recording.stack.append(self._number)

            @staticmethod
            def pop() -> None:
                recording.calls.append("cuCtxPopCurrent")
                recording.stack.pop()

            @staticmethod
            def synchronize() -> None:
                recording.call("cuCtxSynchronize")

        return Context

    def make_Stream(self) -> Any:
        outer = self

        class Stream(_Owned):
            _recording, _what = outer.recording, "stream"
            handle = 0

            def __init__(self) -> None:
                self._recording.call("cuStreamCreate")
                super().__init__()
                self.handle = next(outer.handles)

            def synchronize(self) -> None:
                self._recording.call("cuStreamSynchronize")

            def wait_for_event(self, evt: Any) -> None:
                assert isinstance(evt, outer.classes.Event)
                self._recording.call("cuStreamWaitEvent")

        return Stream

    def make_Event(self) -> Any:
        outer = self

        class Event(_Owned):
            _recording, _what = outer.recording, "event"

            def __init__(self) -> None:
                self._recording.call("cuEventCreate")
                super().__init__()
                self._launches = -1

            def record(self, stream: Any = None) -> None:
                self._recording.call("cuEventRecord")
                self._recording.calls.append(f"stream {stream and stream.handle}")
                self._launches = len(self._recording.launches)

            def synchronize(self) -> None:
                self._recording.call("cuEventSynchronize")

            def time_since(self, start: Any) -> float:
                """2.5 ms for each launch between, or for none."""
                self._recording.call("cuEventElapsedTime")
                assert self._launches >= start._launches >= 0
                return 2.5 * max(1, self._launches - start._launches)

        return Event

    def make_DeviceAllocation(self) -> Any:
        outer = self

        class DeviceAllocation(_Owned):
            _recording, _what = outer.recording, "memory"

            def __init__(self, size: int) -> None:
                super().__init__()
                raw = np.zeros(size + 256, np.uint8)
                start = -raw.ctypes.data % 256  # as cuMemAlloc aligns memory
                memory = raw[start : start + size]
                self._address, self._size = memory.ctypes.data, size
                self._recording.memory[self._address] = self._device, memory
                self._recording.used_bytes += size

            def __int__(self) -> int:
                return self._address

            def free(self) -> None:
                self.__del__()

            def __del__(self) -> None:
                if self._device is not None:
                    del self._recording.memory[self._address]
                    self._recording.used_bytes -= self._size
                super().__del__()

        return DeviceAllocation

    def make_Module(self) -> Any:
        outer = self

        class Module(_Owned):
            _recording, _what = outer.recording, "module"

            def get_function(self, name: str) -> Any:
                self._recording.call("cuModuleGetFunction")
                return outer.classes.Function(self, name)

        return Module

    def make_Function(self) -> Any:
        recording = self.recording

        class Function:
            def __init__(self, module: Any, symbol: str) -> None:
                self._module, self._symbol = module, symbol
                self._attributes = dict(recording.kernel_attributes)
                static = self._attributes["SHARED_SIZE_BYTES"]
                self._attributes["MAX_DYNAMIC_SHARED_SIZE_BYTES"] = 49152 - static

            def get_attribute(self, attr: str) -> int:
                recording.call("cuFuncGetAttribute")
                return self._attributes[attr]

            def set_attribute(self, attr: str, value: int) -> None:
                recording.call("cuFuncSetAttribute")
                self._attributes[attr] = value
                recording.allowed.append((attr, value))

            def __call__(self, *args: Any, grid: Any, block: Any, shared: int, stream: Any) -> None:
                recording.call("cuLaunchKernel")
                assert len(args) <= 1 and all(type(arg) is np.void for arg in args)
                assert len(grid) == len(block) == 3
                allowed = self._attributes["MAX_DYNAMIC_SHARED_SIZE_BYTES"]
                if shared > allowed:
                    raise Error("cuLaunchKernel failed: invalid argument")
                launch = Launch(
                    symbol=self._symbol,
                    arguments=b"".join(bytes(memoryview(arg)) for arg in args),
                    grid=grid,
                    block=block,
                    shared=shared,
                    stream=stream and stream.handle,
                    device=recording.stack[-1],
                )
                recording.launches.append(launch)
                recording.on_launch(launch)

        return Function
