"""The names of pycuda on an emulated NVIDIA GPU, for `refcomp.runtime.cuda.interface`.

- Each call completes its work before it returns. So streams and events have nothing to wait for. An
  event is a time of the host's clock.
- Errors have the names and messages of NVIDIA's driver. Only an error in a kernel has a message of
  the emulator, which lists the findings.
- Code is PTX. Machine code (cubin) is refused.
- Several threads may make calls. A lock serializes the calls.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from threading import RLock, local
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from refcomp.emulator.machine.memory import Arena
from refcomp.foundation.errors import UserError

# The remedy where machine code is given.
HOW_TO_GET_PTX = (
    "give PTX: `nvcc -ptx` writes it, so do the targets `cuda -code=ptx` and `nvptx -code=ptx`. "
    "`cuobjdump -xptx all FILE` extracts it from programs, libraries and fatbins that hold it; a "
    "cubin holds none"
)
_ARENA_BYTES = 4 << 30
_ARCH = re.compile(r"sm_(\d{1,2})(\d)")
_NAME = "emulated NVIDIA GPU"
_THREADS = 1024
_ADDRESS_BYTES = 8
_SHARED_BYTES = 227 << 10  # of a block of sm_90, which emulated GPUs of all kinds have
_CUDA = (13, 0, 0)
_DEVICE_ATTRIBUTES = {
    **{
        f"MAX_BLOCK_DIM_{axis}": size
        for axis, size in zip("XYZ", (1024, 1024, 64), strict=True)
    },
    "MAX_GRID_DIM_X": 2**31 - 1,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "MAX_THREADS_PER_BLOCK": _THREADS,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": _SHARED_BYTES,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "MULTIPROCESSOR_COUNT": 1,
    "WARP_SIZE": 32,
    "CLOCK_RATE": 1_000_000,
    "MEMORY_CLOCK_RATE": 1_000_000,
    "GLOBAL_MEMORY_BUS_WIDTH": 64,
    "L2_CACHE_SIZE": 1 << 20,
}
_FUNCTION_ATTRIBUTES = (
    "MAX_THREADS_PER_BLOCK",
    "SHARED_SIZE_BYTES",
    "LOCAL_SIZE_BYTES",
    "NUM_REGS",
    "MAX_DYNAMIC_SHARED_SIZE_BYTES",
)


@dataclass(frozen=True, slots=True)
class KernelRun:
    """The arguments of one launch.

    Attributes:
        grid, block: numbers of blocks, and of threads of a block, along x, y and z.
        arguments: the bytes of all parameters, aligned as in a C struct.
        shared_bytes: dynamic shared memory of a block.
        read_only: addresses of allocations that the kernel must not write.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: bytes
    shared_bytes: int
    read_only: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EmulatedKernel:
    """A kernel that was loaded."""

    run: Callable[[KernelRun], None]
    shared_bytes: int  # static shared memory of a block
    threads: int = _THREADS  # maximum of a block


@dataclass(frozen=True, slots=True)
class LoadedKernels:
    """A PTX file that was loaded.

    Attributes:
        kernels: the kernels by name.
        release: frees the memory of the file's variables.
    """

    kernels: Mapping[str, EmulatedKernel]
    release: Callable[[], None] = lambda: None


class LoadPtx(Protocol):
    """Loads PTX into the memory of a GPU."""

    def __call__(self, arena: Arena, text: str, /) -> LoadedKernels: ...


class CudaFailure(Exception):
    """An error of the driver, as pycuda raises it."""


class CudaLackOfMemory(CudaFailure):
    """Too little memory of the device."""


def emulated_pycuda(
    arch: str, load: LoadPtx, *, size: int = _ARENA_BYTES, is_watched: bool = True
) -> Any:
    """Return an object with the names of `pycuda.driver`, for one emulated GPU.

    Args:
        arch: the GPU, as nvcc spells it: sm_90.
        load: loads PTX.
        size: bytes of its memory.
        is_watched: report uses of bits that nothing wrote.

    Raises:
        UserError: `arch` is not the name of a GPU.
    """
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise UserError(
            f"{arch!r} is not an NVIDIA GPU",
            remedy="give sm_ and the compute capability, such as sm_90",
        )
    capability = (int(match[1]), int(match[2]))
    gpu = _Gpu(Arena(size, is_watched=is_watched), load)
    return SimpleNamespace(
        lock=gpu.lock,  # each launch holds it
        Error=CudaFailure,
        MemoryError=CudaLackOfMemory,
        Device=_device_class(capability),
        Context=_Context,
        Stream=_Stream,
        Event=_Event,
        DeviceAllocation=_Allocation,
        Module=_Module,
        Function=_Function,
        device_attribute=type(
            "device_attribute", (), {n: n for n in _DEVICE_ATTRIBUTES}
        ),
        function_attribute=type(
            "function_attribute", (), {n: n for n in _FUNCTION_ATTRIBUTES}
        ),
        init=lambda: None,
        get_version=lambda: _CUDA,
        get_driver_version=lambda: 1000 * _CUDA[0] + 10 * _CUDA[1],
        mem_get_info=lambda: (gpu.arena.free_bytes(), gpu.arena.size),
        mem_alloc=lambda size: _Allocation(gpu, size),
        pagelocked_empty=np.empty,
        memcpy_htod=gpu.upload,
        memcpy_dtoh=gpu.download,
        memcpy_dtod=gpu.copy,
        memset_d8=gpu.fill,
        memcpy_htod_async=lambda dest, src, stream: gpu.upload(dest, src),
        memcpy_dtoh_async=lambda dest, src, stream: gpu.download(dest, src),
        memcpy_dtod_async=lambda dest, src, size, stream: gpu.copy(dest, src, size),
        memset_d8_async=lambda dest, data, size, stream: gpu.fill(dest, data, size),
        module_from_buffer=lambda buffer: _Module(gpu, buffer),
    )


class _Gpu:
    """The memory of the GPU, and the copies to and from it."""

    def __init__(self, arena: Arena, load: LoadPtx) -> None:
        self.arena = arena
        self.load = load
        self.lock = RLock()

    def upload(self, dest: int, src: npt.NDArray[np.uint8]) -> None:
        with self.lock:
            self._check("cuMemcpyHtoD", dest, src.size)
            self.arena.write(dest, src)

    def download(self, dest: npt.NDArray[np.uint8], src: int) -> None:
        with self.lock:
            self._check("cuMemcpyDtoH", src, dest.size)
            dest[:] = self.arena.read(src, dest.size)

    def copy(self, dest: int, src: int, size: int) -> None:
        with self.lock:
            self._check("cuMemcpyDtoD", dest, size)
            self._check("cuMemcpyDtoD", src, size)
            self.arena.copy(dest, src, size)

    def fill(self, dest: int, data: int, size: int) -> None:
        with self.lock:
            self._check("cuMemsetD8", dest, size)
            self.arena.write(dest, np.full(size, data & 0xFF, np.uint8))

    def _check(self, call: str, address: int, size: int) -> None:
        if not self.arena.holds(address, size):
            raise CudaFailure(f"{call} failed: invalid argument")


class _Allocation:
    """Memory of the GPU. It is released at the latest when it is deleted."""

    def __init__(self, gpu: _Gpu, size: int) -> None:
        self._gpu = gpu
        self._address = 0
        with gpu.lock:
            place = gpu.arena.allocate(size, "memory")
        if place is None:
            raise CudaLackOfMemory("cuMemAlloc failed: out of memory")
        self._address = place.address

    def free(self) -> None:
        with self._gpu.lock:
            if self._address:
                self._gpu.arena.free(self._address)
                self._address = 0

    def __int__(self) -> int:
        return self._address

    def __del__(self) -> None:
        self.free()


class _Module:
    """Loaded PTX. Its variables are released when it is deleted."""

    _loaded: LoadedKernels | None = None

    def __init__(self, gpu: _Gpu, buffer: bytes) -> None:
        if buffer[:1] == b"\x7f" or not buffer.endswith(b"\0"):
            raise UserError(
                "the emulated NVIDIA GPU does not run machine code",
                why="the form of cubins is not published; the emulator runs PTX",
                remedy=HOW_TO_GET_PTX,
            )
        self.gpu = gpu
        with gpu.lock:
            self._loaded = gpu.load(gpu.arena, buffer[:-1].decode("utf-8", "replace"))
        self.kernels = self._loaded.kernels

    def __del__(self) -> None:
        if self._loaded is not None:
            with self.gpu.lock:
                self._loaded.release()

    def get_function(self, name: str) -> _Function:
        if name not in self.kernels:
            raise CudaFailure("cuModuleGetFunction failed: named symbol not found")
        return _Function(self, self.kernels[name])


class _Function:
    """A kernel, which keeps its module."""

    def __init__(self, module: _Module, kernel: EmulatedKernel) -> None:
        self._module = module
        self._kernel = kernel
        # Bytes of the arguments at which addresses begin, of memory that is only read, and of
        # other memory.
        self._read_only: tuple[int, ...] = ()
        self._written: tuple[int, ...] = ()
        self._values = dict.fromkeys(_FUNCTION_ATTRIBUTES, 0) | {
            "MAX_THREADS_PER_BLOCK": kernel.threads,
            "SHARED_SIZE_BYTES": kernel.shared_bytes,
            "MAX_DYNAMIC_SHARED_SIZE_BYTES": (48 << 10) - kernel.shared_bytes,
        }

    def get_attribute(self, attr: str) -> int:
        return self._values[attr]

    def set_attribute(self, attr: str, value: int) -> None:
        limit = _SHARED_BYTES - self._kernel.shared_bytes
        if attr != "MAX_DYNAMIC_SHARED_SIZE_BYTES" or not 0 <= value <= limit:
            raise CudaFailure("cuFuncSetAttribute failed: invalid argument")
        self._values[attr] = value

    def protect(self, read_only: Sequence[int], written: Sequence[int]) -> None:
        """Report writes to memory that only arguments at the bytes `read_only` point to.

        Arguments at the bytes `written` point to memory that the kernel may write. This method
        is not pycuda's.
        """
        self._read_only = tuple(read_only)
        self._written = tuple(written)

    def __call__(
        self,
        *args: np.void,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        stream: object,
    ) -> None:
        if shared > self._values["MAX_DYNAMIC_SHARED_SIZE_BYTES"]:
            raise CudaFailure("cuLaunchKernel failed: invalid argument")
        arguments = b"".join(one.tobytes() for one in args)
        with self._module.gpu.lock:
            read_only = self._protected(arguments)
            self._kernel.run(KernelRun(grid, block, arguments, shared, read_only))

    def _protected(self, arguments: bytes) -> tuple[int, ...]:
        """Return the allocations that no argument lets the kernel write, by their addresses."""
        read_only = self._allocations(arguments, self._read_only)
        return tuple(sorted(read_only - self._allocations(arguments, self._written)))

    def _allocations(self, arguments: bytes, places: Sequence[int]) -> set[int]:
        arena = self._module.gpu.arena
        pointers = [arguments[begin : begin + _ADDRESS_BYTES] for begin in places]
        found = [arena.allocation_at(int.from_bytes(one, "little")) for one in pointers]
        return {one.address for one in found if one is not None}


# Contexts, streams and events.


class _Contexts(local):
    """The number of contexts that a thread has pushed."""

    pushed = 0


_CONTEXTS = _Contexts()
_HANDLES = count(1)


class _Context:
    """The context of the GPU."""

    @staticmethod
    def pop() -> None:
        if not _CONTEXTS.pushed:
            raise CudaFailure("cuCtxPopCurrent failed: invalid device context")
        _CONTEXTS.pushed -= 1

    @staticmethod
    def synchronize() -> None:
        pass

    def push(self) -> None:
        _CONTEXTS.pushed += 1


class _Stream:
    """A queue of work, which is done at once."""

    handle = 0

    def __init__(self) -> None:
        self.handle = next(_HANDLES)

    def synchronize(self) -> None:
        pass

    def wait_for_event(self, evt: _Event) -> None:
        pass


class _Event:
    """A time of the host's clock."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def record(self, stream: _Stream | None = None) -> _Event:
        self._seconds = time.perf_counter()
        return self

    def synchronize(self) -> _Event:
        return self

    def time_since(self, start: _Event) -> float:
        return 1e3 * (self._seconds - start._seconds)


def _device_class(capability: tuple[int, int]) -> type:
    """Return the class `Device` for one GPU."""

    class OnlyDevice:
        def __init__(self, number: int) -> None:
            if number:
                raise CudaFailure("cuDeviceGet failed: invalid device ordinal")

        @staticmethod
        def count() -> int:
            return 1

        def name(self) -> str:
            return _NAME

        def compute_capability(self) -> tuple[int, int]:
            return capability

        def pci_bus_id(self) -> str:
            return "0000:00:00.0"

        def get_attribute(self, attr: str) -> int:
            return _DEVICE_ATTRIBUTES[attr]

        def retain_primary_context(self) -> _Context:
            return _Context()

    return OnlyDevice
