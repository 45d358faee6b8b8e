"""AMD GPUs, by way of the HIP runtime library: the kind `rocm`.

The library is loaded when somebody asks whether a device exists, never at import. Without it, or
without a GPU, `device("rocm").exist` is False, and every use is a UserError that says why and what
to do. All work goes to the default stream, in order, whichever thread gives it, but what a thread
gives inside `with driver.stream(index):`.
Refuses the use in a process that was forked after HIP had started, which HIP does not survive.
"""

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import DeviceLimits
from refcomp.runtime.device import (
    DeviceMemory,
    HostArray,
    address_of,
    part_of,
    register_device_kind,
)
from refcomp.runtime.hip.handle import make
from refcomp.runtime.hip.info import (
    HipInfo,
    arch_features,
    attribute,
    axes,
    describe_gpu,
    gpu_name,
    library_versions,
)
from refcomp.runtime.hip.kernels import HipKernels
from refcomp.runtime.hip.library import (
    GPU_REMEDY,
    INSTALL,
    HipLibrary,
    load_hip,
    sought_places,
)
from refcomp.runtime.hip.stream import CurrentStreams, HipEvent, HipStream
from refcomp.runtime.launch import KernelSignature


@dataclass(frozen=True, slots=True)
class _HipDevices:
    """The library and how many devices it has; if none, why and what to do. `process` asked."""

    library: HipLibrary | None
    count: int
    why: str
    remedy: str
    process: int


# What kernels may ask of an AMD GPU that is not known more closely.
USUAL_LIMITS = DeviceLimits(
    threads_per_axis=(1024, 1024, 1024),
    threads=1024,
    shared_bytes=65536,
    features=frozenset({"fp16", "fp64", "int64_atomics", "subgroups"}),
    groups_per_axis=(2**31 - 1, 65535, 65535),
    argument_bytes=4096,
    vector_bytes=128,  # of 32 registers side by side, the most that instructions take
)


class HipDriver:
    """The DeviceDriver of kind `rocm`; may be used by several threads. `load` finds the library."""

    part = staticmethod(part_of)

    def __init__(self, load: Callable[[], HipLibrary | None] = load_hip) -> None:
        self._load, self._lock = load, Lock()
        self.streams = CurrentStreams()
        self._found: _HipDevices | None = None

    def count(self) -> int:
        return self._look().count

    def absence(self) -> tuple[str, str]:
        found = self._look()
        return found.why, found.remedy

    def library_told(self) -> dict[str, str]:
        """Of the library: where it is, its version and its driver's; empty where there is none."""
        library = self._look().library
        return {} if library is None else library_versions(library)

    def name(self, index: int) -> str:
        return f"{gpu_name(self.use(index), index)} ({self.arch(index)})"

    def arch(self, index: int) -> str:
        """The name of the GPU's instruction set, as LLVM calls it: gfx90a."""
        return arch_features(self.use(index), index).partition(":")[0]

    def info(self, index: int) -> HipInfo:
        """What the GPU is, and how much of its memory is free."""
        return describe_gpu(self.use(index), index)

    def limits(self, index: int) -> DeviceLimits:
        """What a kernel may ask of the device: of what HIP does not tell, as much as of any."""
        library = self.use(index)
        return replace(
            USUAL_LIMITS,
            threads_per_axis=axes(library, index, "MaxBlockDim"),
            threads=attribute(library, index, "MaxThreadsPerBlock"),
            shared_bytes=attribute(library, index, "MaxSharedMemoryPerBlock"),
            groups_per_axis=axes(library, index, "MaxGridDim"),
        )

    def sync(self, index: int) -> None:
        self.use(index).call("hipDeviceSynchronize")

    def allocate(self, index: int, size: int) -> DeviceMemory:
        # Of no bytes there would be no address, and arguments at one address overlap.
        made = make(self.use(index), "hipMalloc", max(size, 1), give_back="hipFree")
        return DeviceMemory(made.value, made)

    def pinned(self, index: int, shape: tuple[int, ...], dtype: Any) -> HostArray:
        """A numpy array that the device reaches, so that streams copy it while others work."""
        element = np.dtype(dtype)
        size = math.prod(shape) * element.itemsize
        made = make(
            self.use(index), "hipHostMalloc", max(size, 1), 0, give_back="hipHostFree"
        )
        piece: Any = (ctypes.c_char * size).from_address(made.value)
        piece.made = made  # numpy holds the piece, and the piece the memory
        return np.frombuffer(piece, element).reshape(shape)

    def upload(self, index: int, source: HostArray, target: DeviceMemory) -> None:
        ends = target.address, address_of(source)
        self._copy(index, *ends, source.nbytes, "hipMemcpyHostToDevice")

    def download(self, index: int, source: DeviceMemory, target: HostArray) -> None:
        ends = address_of(target), source.address
        self._copy(index, *ends, target.nbytes, "hipMemcpyDeviceToHost")

    def copy(
        self,
        source_index: int,
        source: DeviceMemory,
        index: int,
        target: DeviceMemory,
        size: int,
    ) -> None:
        """Copy `size` bytes on a device, or from one to another without the host between."""
        library, ends = self.use(index), (target.address, source.address)
        if source_index == index:
            self._copy(index, *ends, size, "hipMemcpyDeviceToDevice")
        elif size:
            library.call("hipMemcpyPeer", ends[0], index, ends[1], source_index, size)
            # HIP lets the copy go on; as `upload`, this returns when it is done.
            library.call("hipDeviceSynchronize")

    def fill(self, index: int, target: DeviceMemory, byte: int, size: int) -> None:
        """Set `size` bytes to `byte`."""
        library = self.use(index)
        if size:
            library.call("hipMemset", target.address, byte, size)

    def stream(self, index: int) -> HipStream:
        """A stream of its own; see `refcomp.runtime.hip.stream`."""
        return HipStream(self, index)

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> HipKernels:
        """The kernels of a code object. ToolchainError when it is for another GPU."""
        if not isinstance(code, Binary) or code.format != "hsaco":
            raise UserError("an AMD GPU takes a code object", remedy="build for 'rocm'")
        return HipKernels(self, index, code.data, kernels)

    def seconds(self, index: int, work: Callable[[], None]) -> float:
        """How long the device takes for what `work` queues, by its own clock."""
        start = HipEvent(self, index)
        work()
        return HipEvent(self, index).seconds_since(start)

    def counted(self, index: int, work: Callable[[], None]) -> object | None:
        """What `work` has an emulated GPU do, counted; None of a real one, which runs nothing."""
        library = self.use(index)
        return None if library.counted is None else library.counted(work)

    def _copy(self, index: int, target: int, source: int, size: int, kind: str) -> None:
        library = self.use(index)
        if size:
            library.call("hipMemcpy", target, source, size, library.number(kind))

    def _look(self) -> _HipDevices:
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = _find_devices(self._load())
        return self._found

    def use(self, index: int) -> HipLibrary:
        """The library, with the calling thread's next calls going to the device `index`."""
        found = self._look()
        if found.library is None or not found.count:
            what = f"this machine has no device rocm:{index}"
            raise UserError(what, why=found.why, remedy=found.remedy)
        if found.process != os.getpid():
            raise UserError(
                "HIP was started before this process was forked",
                why="what it keeps of the GPU is the parent's",
                remedy="start the process by spawn: multiprocessing.get_context('spawn')",
            )
        found.library.call("hipSetDevice", index)
        return found.library


def _find_devices(library: HipLibrary | None) -> _HipDevices:
    if library is None:
        why = f"the HIP runtime library was not found; sought {sought_places()}"
        return _HipDevices(None, 0, why, INSTALL, os.getpid())
    count: Any = ctypes.c_int32()
    number = library.status("hipGetDeviceCount", ctypes.byref(count))
    if number:
        why = f"hipGetDeviceCount of {library.path} says: {library.text(number)}"
        return _HipDevices(library, 0, why, GPU_REMEDY, os.getpid())
    why = f"hipGetDeviceCount of {library.path} counts none"
    return _HipDevices(library, count.value, why, GPU_REMEDY, os.getpid())


register_device_kind("rocm", HipDriver())
