"""The interface between a Program and a device: loading, launching and limiting kernels.

A DeviceDriver loads the code of a module's kernels and returns a Launcher, which a program function
(`refcomp.runtime.programs.program`) calls. Refuses launches beyond the device's limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.buffer import Buffer
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.stmt import BLOCK_TAGS, THREADS_IN_BLOCK_TAGS
from refcomp.runtime.device import Device, DeviceAttributes, DeviceMemory, Driver

Extents = tuple[int, int, int]  # in x, y and z
Argument = DeviceMemory | np.generic  # of a kernel


@dataclass(frozen=True, slots=True)
class AlignedBuffer:
    """A buffer that a kernel accesses several elements at a time."""

    position: int  # among the parameters
    name: str
    alignment: int  # bytes, a divisor of the address at which it must begin


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """The interface of a kernel for its launches."""

    name: str
    symbol: str  # its name in the device's code
    params: tuple[DType | None, ...]  # None for a buffer, else the dtype of a number
    # (thread tag, text about the loop that is bound to it: its origin, or else its name)
    loops: tuple[tuple[str, str], ...] = ()
    # Buffers whose addresses must be multiples of more than an element's size.
    aligned: tuple[AlignedBuffer, ...] = ()
    # Positions of the buffers that the kernel does not write. Emulated GPUs judge this.
    read_only: tuple[int, ...] = ()


def kernel_signature(kernel: PrimFunc, symbol: str | None = None) -> KernelSignature:
    """Return the signature of `kernel`, a kernel of a Program.

    `symbol` is its name in the device's code, by default the name of the kernel.
    """
    loops = [
        loop for start in kernels_in(kernel.body) for loop in kernel_nest(start).loops
    ]
    return KernelSignature(
        name=kernel.name,
        symbol=symbol or kernel.name,
        params=tuple(None if isinstance(p, Buffer) else p.dtype for p in kernel.params),
        loops=tuple(
            (loop.kind, str(loop.origin or f"loop {loop.var.name}")) for loop in loops
        ),
        aligned=tuple(
            AlignedBuffer(position, param.name, param.alignment)
            for position, param in enumerate(kernel.params)
            if isinstance(param, Buffer) and param.alignment > param.dtype.bytes
        ),
        read_only=tuple(
            position
            for position, param in enumerate(kernel.params)
            if isinstance(param, Buffer) and param.name not in kernel.outputs
        ),
    )


class Launcher(Protocol):
    """The loaded kernels of one module on one device. Several threads may use it at once."""

    def launch(
        self,
        kernel: str,
        values: Sequence[Argument],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a run of `kernel`, after everything that was queued before.

        Args:
            kernel: its KernelSignature.name.
            values: DeviceMemory for each buffer, and a numpy scalar of its dtype for each number.
            grid: number of groups, each >= 1.
            block: threads of a group, each >= 1.
            shared_bytes: size of each shared buffer that has no constant size, in the order of
                their allocations.
        """


class DeviceDriver(Driver, Protocol):
    """The driver of a kind of device that runs kernels."""

    def limits(self, index: int) -> DeviceLimits:
        """Return the limits of device `index` for a kernel."""

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> Launcher:
        """Load `kernels` of `code`. ToolchainError if the device refuses the code."""


class GpuFacts(Protocol):
    """Facts about a GPU that the libraries of AMD and NVIDIA report, beside its limits."""

    @property
    def multiprocessors(self) -> int: ...
    @property
    def clock(self) -> int: ...  # Hz, of the multiprocessors, at most
    @property
    def compute_version(self) -> str: ...


def attributes_of_gpu(
    limits: DeviceLimits, facts: GpuFacts, warp_size: int
) -> DeviceAttributes:
    """Return the properties of a GPU, by their classic names."""
    return DeviceAttributes(
        max_threads_per_block=limits.threads,
        max_thread_dimensions=limits.threads_per_axis,
        max_shared_memory_per_block=limits.shared_bytes,
        warp_size=warp_size,
        multi_processor_count=facts.multiprocessors,
        max_clock_rate=facts.clock // 1000,
        compute_version=facts.compute_version,
    )


def check_launch(
    kernel: KernelSignature,
    grid: Extents,
    block: Extents,
    shared_bytes: tuple[int, ...],
    limits: DeviceLimits,
    device: Device,
) -> None:
    """Raise UserError if a launch needs more groups, threads or shared memory than allowed."""
    requests = (
        (grid, limits.groups_per_axis, BLOCK_TAGS, "groups"),
        (block, limits.threads_per_axis, THREADS_IN_BLOCK_TAGS, "threads"),
    )
    for extents, allowed, tags, what in requests:
        for extent, maximum, tag in zip(extents, allowed, tags, strict=True):
            if extent > maximum:
                request = f"{extent} {what} in {tag}"
                raise _beyond(kernel, request, maximum, device, (tag,))
    if (threads := block[0] * block[1] * block[2]) > limits.threads:
        request = f"{threads} threads in a group ({' x '.join(map(str, block))})"
        raise _beyond(kernel, request, limits.threads, device, THREADS_IN_BLOCK_TAGS)
    if (size := sum(shared_bytes)) > limits.shared_bytes:
        request = f"{size} bytes of shared memory"
        raise _beyond(kernel, request, limits.shared_bytes, device, ())


def check_alignment(kernel: KernelSignature, values: Sequence[Argument]) -> None:
    """Raise UserError if a buffer begins at an address that `kernel` cannot access.

    Arrays of their own begin at aligned addresses. Parts of arrays may not, nor memory of others.
    """
    for buffer in kernel.aligned:
        memory = values[buffer.position]
        assert isinstance(memory, DeviceMemory)
        if memory.address % buffer.alignment:
            raise UserError(
                f"the kernel {kernel.name} cannot access {buffer.name}, which begins at the "
                f"address {memory.address:#x}",
                why="its wide accesses need an address that is a multiple of "
                f"{buffer.alignment} bytes",
                remedy="copy the array first, or schedule without vectorize",
            )


def _beyond(
    kernel: KernelSignature,
    request: str,
    maximum: int,
    device: Device,
    tags: tuple[str, ...],
) -> UserError:
    """Return the error for a request above `maximum`, which loops of `tags` caused."""
    guilty = [f"{tag}: {text}" for tag, text in kernel.loops if tag in tags]
    if not tags:
        remedy = "split by a smaller factor, so that a group needs less shared memory"
    elif tags[0] in BLOCK_TAGS:
        remedy = "split by a larger factor, or let the host run a part of the loop"
    else:
        remedy = "split by a smaller factor, or bind fewer loops to threadIdx"
    return UserError(
        f"the kernel {kernel.name} needs {request}, but {device} has {maximum}",
        where="; ".join(guilty),
        remedy=remedy,
    )
