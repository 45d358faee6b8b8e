"""AMD GPUs, by way of the HIP runtime library: the kind `rocm`.

The library is loaded when somebody asks whether a device exists, never at import. Without it, or
without a GPU, `device("rocm").exist` is False, and every use is a UserError that says why and what
to do. All work goes to the default stream, in order, whichever thread gives it.
Refuses the use in a process that was forked after HIP had started, which HIP does not survive.
"""

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any
from weakref import finalize

from refcomp import hip_api
from refcomp.artifacts import Binary, Source
from refcomp.errors import ToolchainError, UserError
from refcomp.runtime.device import HostArray, Memory, address_of, register_device_kind
from refcomp.runtime.hip_kernels import HipKernels
from refcomp.runtime.hip_library import GPU_REMEDY, INSTALL, HipLibrary, load_hip, sought_places
from refcomp.runtime.launch import KernelSignature
from refcomp.target import DeviceLimits

_NAME_BYTES = 256
_ARCH = re.compile(rb"gfx[0-9a-f]+")
_FEATURES = frozenset({"fp16", "fp64", "int64_atomics", "subgroups"})


@dataclass(frozen=True, slots=True)
class _Found:
    """The library and how many devices it has; if none, why and what to do. `process` asked."""

    library: HipLibrary | None
    count: int
    why: str
    remedy: str
    process: int


class _Allocation:
    """Memory on a GPU, given back when this object is let go; the library waits for its users."""

    __slots__ = ("__weakref__",)

    def __init__(self, library: HipLibrary, address: int) -> None:
        # At the process's end the driver takes back what is left, and calls are not safe any more.
        finalize(self, library.status, "hipFree", address).atexit = False


class HipDriver:
    """The DeviceDriver of kind `rocm`; may be used by several threads. `load` finds the library."""

    def __init__(self, load: Callable[[], HipLibrary | None] = load_hip) -> None:
        self._load, self._lock = load, Lock()
        self._found: _Found | None = None

    def count(self) -> int:
        return self._look().count

    def absence(self) -> tuple[str, str]:
        found = self._look()
        return found.why, found.remedy

    def name(self, index: int) -> str:
        text = ctypes.create_string_buffer(_NAME_BYTES)
        self._use(index).call("hipDeviceGetName", text, _NAME_BYTES, index)
        name = text.value.decode(errors="replace").strip()
        return f"{name or 'AMD GPU'} ({self.arch(index)})"

    def arch(self, index: int) -> str:
        """The name of the GPU's instruction set, as LLVM calls it: gfx90a."""
        library = self._use(index)
        call = next(c for c in hip_api.PROPERTIES if library.has(c.function))
        answer = ctypes.create_string_buffer(call.size)
        library.call(call.function, answer, index)
        match = _ARCH.match(answer.raw, call.arch_offset)
        if match is None:
            raise ToolchainError(
                f"{call.function} does not tell the GPU's name where it is expected",
                where=library.path,
                remedy="this version of HIP is unknown: name the GPU yourself, rocm -mcpu=gfx...",
            )
        return match[0].decode()

    def limits(self, index: int) -> DeviceLimits:
        """What a kernel may ask of the device."""
        x, y, z = (self._attribute(index, f"MaxBlockDim{axis}") for axis in "XYZ")
        return DeviceLimits(
            threads_per_axis=(x, y, z),
            threads=self._attribute(index, "MaxThreadsPerBlock"),
            shared_bytes=self._attribute(index, "MaxSharedMemoryPerBlock"),
            features=_FEATURES,
        )

    def sync(self, index: int) -> None:
        self._use(index).call("hipDeviceSynchronize")

    def allocate(self, index: int, size: int) -> Memory:
        library, address = self._use(index), ctypes.c_void_p()
        # Of no bytes there would be no address, and arguments at one address overlap.
        library.call("hipMalloc", ctypes.byref(address), max(size, 1))
        return Memory(address.value or 0, _Allocation(library, address.value or 0))

    def upload(self, index: int, source: HostArray, target: Memory) -> None:
        ends = target.address, address_of(source)
        self._copy(index, *ends, source.nbytes, "hipMemcpyHostToDevice")

    def download(self, index: int, source: Memory, target: HostArray) -> None:
        ends = address_of(target), source.address
        self._copy(index, *ends, target.nbytes, "hipMemcpyDeviceToHost")

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> HipKernels:
        """The kernels of a code object. ToolchainError when it is for another GPU."""
        if not isinstance(code, Binary) or code.format != "hsaco":
            raise UserError("an AMD GPU takes a code object", remedy="build for 'rocm'")
        return HipKernels(lambda: self._use(index), code.data, kernels)

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        """How long the device takes for what `work` queues, by its own clock."""
        library = self._use(index)
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            library.call("hipEventCreate", ctypes.byref(event))
        try:
            library.call("hipEventRecord", events[0], None)
            work()
            library.call("hipEventRecord", events[1], None)
            library.call("hipEventSynchronize", events[1])
            milliseconds = ctypes.c_float()
            library.call("hipEventElapsedTime", ctypes.byref(milliseconds), *events)
        finally:
            for event in events:
                library.status("hipEventDestroy", event)
        return milliseconds.value / 1e3

    def _attribute(self, index: int, name: str) -> int:
        library, value = self._use(index), ctypes.c_int32()
        number = library.number(f"hipDeviceAttribute{name}")
        library.call("hipDeviceGetAttribute", ctypes.byref(value), number, index)
        return value.value

    def _copy(self, index: int, target: int, source: int, size: int, kind: str) -> None:
        library = self._use(index)
        if size:
            library.call("hipMemcpy", target, source, size, library.number(kind))

    def _look(self) -> _Found:
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = _find_devices(self._load())
        return self._found

    def _use(self, index: int) -> HipLibrary:
        """The library, with the calling thread's next calls going to the device `index`."""
        found = self._look()
        if found.library is None or not found.count:
            raise UserError(f"there is no device rocm:{index}", why=found.why, remedy=found.remedy)
        if found.process != os.getpid():
            raise UserError(
                "HIP was started before this process was forked",
                why="what it keeps of the GPU is the parent's",
                remedy="start the process by spawn: multiprocessing.get_context('spawn')",
            )
        found.library.call("hipSetDevice", index)
        return found.library


def _find_devices(library: HipLibrary | None) -> _Found:
    if library is None:
        why = f"the HIP runtime library was not found; sought {sought_places()}"
        return _Found(None, 0, why, INSTALL, os.getpid())
    count: Any = ctypes.c_int32()
    number = library.status("hipGetDeviceCount", ctypes.byref(count))
    if number:
        why = f"hipGetDeviceCount of {library.path} says: {library.text(number)}"
        return _Found(library, 0, why, GPU_REMEDY, os.getpid())
    why = f"hipGetDeviceCount of {library.path} counts none"
    return _Found(library, count.value, why, GPU_REMEDY, os.getpid())


register_device_kind("rocm", HipDriver())
