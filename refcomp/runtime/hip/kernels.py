"""Kernels of a code object on an AMD GPU: loaded, and launched with their arguments in one buffer.

A kernel takes its parameters packed naturally, each at a multiple of its size, and nothing else.
Shared buffers without a constant size lie one after the other, each at a multiple of 16 bytes: as
`refcomp.codegen.amdgpu.module` prints it. Launches may come from several threads.
"""

import ctypes
from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.hip import api as hip_api
from refcomp.runtime.hip.handle import HipHandle
from refcomp.runtime.hip.stream import Owner
from refcomp.runtime.launch import Argument, Extents, KernelSignature
from refcomp.runtime.packed_arguments import pack_arguments

SHARED_ALIGNMENT = 16  # bytes
_THREADS_IN_ALL = 2**32  # along an axis: HIP counts them in 32 bits


class HipKernels:
    """The Launcher of one code object on device `index`. A kernel is looked up at its first use."""

    def __init__(
        self, owner: Owner, index: int, code: bytes, kernels: Sequence[KernelSignature]
    ) -> None:
        self._owner = owner
        self._index = index
        library = owner.use(index)
        module = ctypes.c_void_p()
        library.call("hipModuleLoadData", module, code)
        # A kernel may still run when the handle is deleted.
        self._module = HipHandle(
            library, module.value or 0, "hipModuleUnload", busy_device=index
        )
        self._kernels = {kernel.name: kernel for kernel in kernels}
        self._functions: dict[str, int] = {}  # name of a kernel -> its handle

    def launch(
        self,
        kernel: str,
        values: Sequence[Argument],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a run in the thread's current stream; see `refcomp.runtime.launch.Launcher`."""
        arguments = pack_arguments(self._kernels[kernel], values)
        self.launch_packed(
            kernel, arguments, grid, block, dynamic_shared_bytes(shared_bytes)
        )

    def launch_packed(
        self,
        kernel: str,
        arguments: bytes,
        grid: Extents,
        block: Extents,
        shared_bytes: int,
    ) -> None:
        """Queue a run in the thread's current stream with packed `arguments`."""
        _check_size(kernel, grid, block)
        buffer = ctypes.create_string_buffer(arguments, max(1, len(arguments)))
        size = ctypes.c_size_t(len(arguments))
        self._owner.use(self._index).call(
            "hipModuleLaunchKernel",
            self._function(kernel),
            *grid,
            *block,
            shared_bytes,
            self._owner.streams.of(self._index),
            None,
            _launch_parameters(buffer, size),
        )

    def occupancy(
        self, kernel: str, threads: int, shared_bytes: tuple[int, ...] = ()
    ) -> int:
        """Return how many groups of `threads` threads a multiprocessor runs at once.

        Raises:
            UserError: the code object has no such kernel.
        """
        if kernel not in self._kernels:
            known = ", ".join(self._kernels)
            raise UserError(
                f"the code object has no kernel {kernel}",
                remedy=advise(kernel, self._kernels, f"use one of: {known}"),
            )
        groups = ctypes.c_int32()
        self._owner.use(self._index).call(
            "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
            groups,
            self._function(kernel),
            threads,
            dynamic_shared_bytes(shared_bytes),
        )
        return groups.value

    def _function(self, kernel: str) -> int:
        found = self._functions.get(kernel)
        if found is None:
            library = self._owner.use(self._index)
            function = ctypes.c_void_p()
            symbol = self._kernels[kernel].symbol.encode()
            library.call("hipModuleGetFunction", function, self._module.value, symbol)
            found = self._functions[kernel] = function.value or 0
        return found


def _check_size(kernel: str, grid: Extents, block: Extents) -> None:
    """Raise UserError if the threads of all groups along an axis exceed 32 bits, as HIP counts."""
    for groups, threads, axis in zip(grid, block, "xyz", strict=True):
        if groups * threads >= _THREADS_IN_ALL:
            raise UserError(
                f"the kernel {kernel} asks for {groups} groups of {threads} threads in {axis}",
                why=f"HIP starts fewer than {_THREADS_IN_ALL} threads along an axis",
                remedy="let a thread do more, or bind a part of the loop to another axis",
            )


def dynamic_shared_bytes(sizes: Sequence[int]) -> int:
    """Return the bytes of all shared buffers without a constant size, each padded."""
    total = 0
    for size in sizes:
        if size > 0:
            total += size + -size % SHARED_ALIGNMENT
    return total


def _launch_parameters(
    buffer: ctypes.Array[ctypes.c_char], size: ctypes.c_size_t
) -> ctypes.Array[ctypes.c_void_p]:
    """Return the list of keys and values by which a launch takes packed arguments."""
    entries = (
        hip_api.LAUNCH_BUFFER_POINTER,
        ctypes.addressof(buffer),
        hip_api.LAUNCH_BUFFER_SIZE,
        ctypes.addressof(size),
        hip_api.LAUNCH_END,
    )
    return (ctypes.c_void_p * len(entries))(*entries)
