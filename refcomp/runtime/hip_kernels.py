"""Kernels of a code object on an AMD GPU: loaded, and launched with their arguments in one buffer.

A kernel takes its parameters packed naturally, each at a multiple of its size, and nothing else.
Shared buffers without a constant size lie one after the other, each at a multiple of 16 bytes: as
`refcomp.codegen.amdgpu` prints it. Launches may come from several threads.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any
from weakref import finalize

from refcomp import hip_api
from refcomp.dtype import to_numpy
from refcomp.runtime.device import Memory
from refcomp.runtime.hip_library import HipLibrary
from refcomp.runtime.launch import Extents, KernelSignature

_POINTER_BYTES = 8
SHARED_ALIGNMENT = 16


class HipKernels:
    """The Launcher of one code object. `use` gives the library, and makes the device current."""

    def __init__(
        self, use: Callable[[], HipLibrary], code: bytes, kernels: Sequence[KernelSignature]
    ) -> None:
        self._use, self._code = use, code
        library, module = use(), ctypes.c_void_p()
        library.call("hipModuleLoadData", ctypes.byref(module), code)
        # At the process's end calls are not safe any more.
        finalize(self, _unload, library, module).atexit = False
        self._kernels = {kernel.name: kernel for kernel in kernels}
        self._functions = {k.name: _function(library, module, k.symbol) for k in kernels}

    def launch(
        self,
        kernel: str,
        values: Sequence[Any],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a run; see `refcomp.runtime.launch.Launcher`."""
        arguments = pack_arguments(self._kernels[kernel], values)
        buffer = ctypes.create_string_buffer(arguments, max(1, len(arguments)))
        size = ctypes.c_size_t(len(arguments))
        self._use().call(
            "hipModuleLaunchKernel",
            self._functions[kernel],
            *grid,
            *block,
            dynamic_shared_bytes(shared_bytes),
            None,
            None,
            _launch_parameters(buffer, size),
        )


def pack_arguments(kernel: KernelSignature, values: Sequence[Any]) -> bytes:
    """The buffer that `kernel` reads `values` from: Memory by its address, numbers as they are."""
    buffer = bytearray()
    for param, value in zip(kernel.params, values, strict=True):
        piece = _piece(param, value)
        buffer += bytes(-len(buffer) % len(piece)) + piece
    return bytes(buffer)


def _piece(param: Any, value: Any) -> bytes:
    if isinstance(value, Memory):
        return value.address.to_bytes(_POINTER_BYTES, "little")
    number: bytes = to_numpy(param).type(value).tobytes()
    return number


def dynamic_shared_bytes(sizes: Sequence[int]) -> int:
    """Bytes for all shared buffers without a constant size, each with what fills it up."""
    return sum(-(-max(0, size) // SHARED_ALIGNMENT) * SHARED_ALIGNMENT for size in sizes)


def _unload(library: HipLibrary, module: ctypes.c_void_p) -> None:
    library.status("hipDeviceSynchronize")  # a kernel may still run
    library.status("hipModuleUnload", module)


def _function(library: HipLibrary, module: ctypes.c_void_p, symbol: str) -> ctypes.c_void_p:
    function = ctypes.c_void_p()
    library.call("hipModuleGetFunction", ctypes.byref(function), module, symbol.encode())
    return function


def _launch_parameters(buffer: Any, size: ctypes.c_size_t) -> Any:
    entries = (
        hip_api.LAUNCH_BUFFER_POINTER,
        ctypes.addressof(buffer),
        hip_api.LAUNCH_BUFFER_SIZE,
        ctypes.addressof(size),
        hip_api.LAUNCH_END,
    )
    return (ctypes.c_void_p * len(entries))(*entries)
