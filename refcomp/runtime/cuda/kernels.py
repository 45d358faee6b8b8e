"""Kernels of a cubin, PTX or fatbin on an NVIDIA GPU: loaded, checked, and launched.

A kernel takes its parameters packed as C aligns them. After them it takes 64 bits for each shared
buffer whose size is not constant. They are the byte offset of the buffer in the dynamic shared
memory of the launch, a multiple of 128. Launches may come from several threads.

A group has 48 KiB of shared memory, unless the kernel requests more by an attribute. A launch sets
the attribute when it needs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from threading import Lock

import numpy as np

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.elf import cubin_arch
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.runtime.cuda.context import CudaContext, words_of
from refcomp.runtime.cuda.handle import CudaHandle
from refcomp.runtime.cuda.interface import (
    PycudaFunction,
    PycudaFunctionAttributes,
    PycudaModule,
)
from refcomp.runtime.cuda.library import is_about_code
from refcomp.runtime.cuda.stream import EnteredStreams
from refcomp.runtime.launch import Argument, Extents, KernelSignature
from refcomp.runtime.packed_arguments import buffer_offsets, pack_arguments

SHARED_ALIGNMENT = 128  # bytes
# Shared memory of a group that a kernel has without a request, in bytes. Source: CUDA C++
# Programming Guide, "Shared Memory" of each compute capability.
USUAL_SHARED_BYTES = 48 << 10
FORMATS = ("cubin", "ptx", "fatbin")
_NO_SUCH_NAME = "named symbol not found"  # words of the driver
FATBIN_MAGIC = 0xBA55ED50.to_bytes(4, "little")
_PTX_TARGET = re.compile(rb"^\.target\s+sm_(\d+)(\w?)", re.MULTILINE)


@dataclass(slots=True)
class _CudaKernel:
    """A kernel that was looked up."""

    function: PycudaFunction
    static_bytes: int  # of shared memory
    threads: int  # maximum of a group, given the registers that the kernel needs
    registers: int  # of a thread
    dynamic_bytes: int  # of shared memory, maximum that is allowed now
    lock: Lock = field(default_factory=Lock)  # for raising `dynamic_bytes`


@dataclass(slots=True)
class _LoadedCode:
    """A module and its kernels that were looked up. A kernel of pycuda keeps its module."""

    module: PycudaModule
    kernels: dict[str, _CudaKernel] = field(default_factory=dict)  # by name


class CudaKernels:
    """The Launcher of one code on one GPU. A kernel is looked up at its first use.

    `shared_bytes` is the maximum of a group. Raises UserError if the code has no format of
    `FORMATS`, and ToolchainError if it is damaged or for another GPU.
    """

    def __init__(
        self,
        context: CudaContext,
        streams: EnteredStreams,
        code: Source | Binary,
        kernels: Sequence[KernelSignature],
        *,
        arch: str,
        shared_bytes: int,
    ) -> None:
        data = checked_code(code, arch)
        self._context = context
        self._streams = streams
        self._shared_bytes = shared_bytes
        self._signatures = {kernel.name: kernel for kernel in kernels}
        self._loaded = _load(context, data, arch)

    def launch(
        self,
        kernel: str,
        values: Sequence[Argument],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a run in the thread's current stream; see `refcomp.runtime.launch.Launcher`.

        Raises UserError if the GPU lacks registers or shared memory for a group.
        """
        begins, size = place_shared(shared_bytes)
        packed = pack_arguments(self._signatures[kernel], values, begins)
        self.launch_packed(kernel, packed, grid, block, size)

    def launch_packed(
        self,
        kernel: str,
        arguments: bytes,
        grid: Extents,
        block: Extents,
        shared_bytes: int,
    ) -> None:
        """Queue a run in the thread's current stream with packed `arguments`."""
        found = self._find(kernel)
        self._check_group(kernel, found, block, shared_bytes)
        with self._context.use(f"launching the kernel {kernel}") as cuda:
            if shared_bytes > found.dynamic_bytes:
                _allow_shared(found, shared_bytes, cuda.function_attribute)
            self._context.launched(kernel)
            found.function(
                # pycuda packs the bytes of a numpy.void as they are.
                *([np.void(arguments)] if arguments else []),
                grid=grid,
                block=block,
                shared=shared_bytes,
                stream=self._streams.of(self._context.index),
            )

    def resources(self, kernel: str) -> dict[str, int]:
        """Return a kernel's registers of a thread and its bytes of static shared memory."""
        found = self._find(kernel)
        return {"registers": found.registers, "shared_bytes": found.static_bytes}

    def _find(self, kernel: str) -> _CudaKernel:
        kernels = self._loaded.value.kernels
        found = kernels.get(kernel)
        if found is None:
            found = kernels[kernel] = self._look_up(self._signatures[kernel])
        return found

    def _look_up(self, kernel: KernelSignature) -> _CudaKernel:
        symbol = kernel.symbol
        with self._context.use(f"looking up the kernel {symbol}") as cuda:
            try:
                function = self._loaded.value.module.get_function(symbol)
            except cuda.Error as error:
                words = words_of(error)
                if _NO_SUCH_NAME not in words:
                    raise
                raise UserError(
                    f"the code has no kernel {symbol!r}",
                    why=words,
                    remedy="build the module again",
                ) from error
            _protect(function, kernel)
            names = cuda.function_attribute
            read = function.get_attribute
            static = read(names.SHARED_SIZE_BYTES)
            return _CudaKernel(
                function,
                static_bytes=static,
                threads=read(names.MAX_THREADS_PER_BLOCK),
                registers=read(names.NUM_REGS),
                dynamic_bytes=USUAL_SHARED_BYTES - static,
            )

    def _check_group(
        self, kernel: str, found: _CudaKernel, block: Extents, dynamic_bytes: int
    ) -> None:
        """Raise UserError if a group needs more registers or shared memory than there are."""
        if (threads := prod(block)) > found.threads:
            raise UserError(
                f"the kernel {kernel} cannot run in groups of {threads} threads "
                f"({' x '.join(map(str, block))})",
                where=f"cuda:{self._context.index}",
                why=f"a thread needs {found.registers} registers, so a group can have at most "
                f"{found.threads} threads; or the kernel was compiled for no more",
                remedy="bind fewer threads to a group, or keep fewer values in a thread: split by "
                "smaller factors, unroll less",
            )
        if (size := found.static_bytes + dynamic_bytes) > self._shared_bytes:
            raise UserError(
                f"the kernel {kernel} needs {size} bytes of shared memory for a group, but the GPU "
                f"has {self._shared_bytes}",
                where=f"cuda:{self._context.index}",
                why=f"{found.static_bytes} bytes are part of its code, and this launch adds "
                f"{dynamic_bytes}",
                remedy="split by a smaller factor, so that a group needs less shared memory",
            )


def place_shared(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return the byte at which each dynamic shared buffer begins, and the bytes of all."""
    begins: list[int] = []
    end = 0
    for size in sizes:
        begin = end + -end % SHARED_ALIGNMENT
        begins.append(begin)
        end = begin + max(size, 0)
    return begins, end


def _protect(function: PycudaFunction, kernel: KernelSignature) -> None:
    """Let an emulated GPU report writes to the buffers that a kernel only reads.

    Other GPUs have no such method.
    """
    protect = getattr(function, "protect", None)
    if protect is not None:
        offsets = buffer_offsets(kernel)
        read_only = [offsets[position] for position in kernel.read_only]
        protect(
            read_only, written=[one for one in offsets.values() if one not in read_only]
        )


def _allow_shared(
    kernel: _CudaKernel, size: int, names: PycudaFunctionAttributes
) -> None:
    """Let launches of `kernel` have `size` bytes of dynamic shared memory."""
    with kernel.lock:
        if size > kernel.dynamic_bytes:
            kernel.function.set_attribute(names.MAX_DYNAMIC_SHARED_SIZE_BYTES, size)
            kernel.dynamic_bytes = size


def checked_code(code: Source | Binary, arch: str) -> bytes:
    """Return the bytes for the driver. Raise UserError or ToolchainError; see CudaKernels."""
    if not isinstance(code, Binary) or code.format not in FORMATS:
        raise UserError(
            f"an NVIDIA GPU takes machine code or PTX: {', '.join(FORMATS)}",
            remedy="build for 'cuda'",
        )
    try:
        needed, is_exact = _READERS[code.format](code.data)
    except ValueError as error:
        raise ToolchainError(
            f"the {code.format} is damaged", why=str(error), remedy="build it again"
        ) from error
    number = int(arch.removeprefix("sm_"))
    is_family = needed // 10 == number // 10
    if needed > number or (is_exact and not is_family):
        rule = "machine code runs on GPUs of the same major number"
        if not is_exact:
            rule = "PTX runs on GPUs of the same or a higher number"
        raise _for_another_gpu(
            f"the code is for sm_{needed}, but the GPU is {arch}", rule, arch
        )
    # The driver reads PTX as a text that ends in a zero.
    return code.data + b"\0" if code.format == "ptx" else code.data


def _read_cubin(data: bytes) -> tuple[int, bool]:
    return cubin_arch(data), True


def _read_ptx(data: bytes) -> tuple[int, bool]:
    target = _PTX_TARGET.search(data)
    if target is None:
        raise ValueError("it does not name an architecture: .target sm_90")
    return int(target[1]), False


def _read_fatbin(data: bytes) -> tuple[int, bool]:
    if not data.startswith(FATBIN_MAGIC):
        raise ValueError("it does not begin as a fatbin does")
    # The driver chooses among the codes inside.
    return 0, False


# Format -> a function that returns the number of the architecture that the code is for, and whether
# it needs the same major number.
_READERS = {"cubin": _read_cubin, "ptx": _read_ptx, "fatbin": _read_fatbin}


def _load(context: CudaContext, data: bytes, arch: str) -> CudaHandle[_LoadedCode]:
    """Return the loaded code. ToolchainError if the driver refuses it."""
    with context.use("loading code") as cuda:
        try:
            module = cuda.module_from_buffer(data)
        except (cuda.Error, UnicodeDecodeError) as error:
            words = words_of(error)
            if not is_about_code(words):
                raise
            raise _for_another_gpu(
                "the code is damaged or for another GPU", words, arch
            ) from error
        # A kernel may still run when the handle is deleted.
        return CudaHandle(context, _LoadedCode(module), is_busy=True)


def _for_another_gpu(what: str, why: str, arch: str) -> ToolchainError:
    remedy = f"build it for this GPU: cuda -arch={arch}; for PTX, a newer driver may be needed"
    return ToolchainError(what, why=why, remedy=remedy)
