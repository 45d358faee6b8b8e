"""What stands between a Program and a device: how kernels are loaded, launched and limited.

A DeviceDriver loads the code of a module's kernels and gives a Launcher; a program function
(`refcomp.runtime.programs.program`) calls it. Refuses launches that the device's limits do not
allow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.target import DeviceLimits
from refcomp.ir.buffer import Buffer
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.stmt import BLOCK_TAGS, THREADS_IN_BLOCK_TAGS, For
from refcomp.runtime.device import Device, Driver

# In x, y and z.
Extents = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """How a kernel is launched.

    `symbol` is its name in the device's code. `params` are what it takes: None for a buffer, else
    the dtype of a number. `loops` are pairs of a thread tag and what is told of the loop bound to
    it: where it comes from, else its name.
    """

    name: str
    symbol: str
    params: tuple[DType | None, ...]
    loops: tuple[tuple[str, str], ...] = ()


def kernel_signature(kernel: PrimFunc, symbol: str | None = None) -> KernelSignature:
    """How `kernel`, a kernel of a Program, is launched; `symbol` is its own name by default."""
    params = tuple(None if isinstance(p, Buffer) else p.dtype for p in kernel.params)
    loops = [
        loop for start in kernels_in(kernel.body) for loop in kernel_nest(start).loops
    ]
    told = tuple((loop.kind, _tell(loop)) for loop in loops)
    return KernelSignature(kernel.name, symbol or kernel.name, params, told)


def _tell(loop: For) -> str:
    return f"loop {loop.var.name}" if loop.origin is None else str(loop.origin)


class Launcher(Protocol):
    """The loaded kernels of one module on one device; may be used by several threads at once."""

    def launch(
        self,
        kernel: str,
        values: Sequence[Any],
        grid: Extents,
        block: Extents,
        shared_bytes: tuple[int, ...],
    ) -> None:
        """Queue a run of `kernel` (KernelSignature.name) behind what was queued before.

        `values` are a Memory for each buffer, and for each number a numpy scalar of its dtype.
        `grid` counts groups, `block` the threads of a group; none is empty. `shared_bytes` has
        the size of each shared buffer whose size is no constant, in order of allocation.
        """


class DeviceDriver(Driver, Protocol):
    """A kind of device that runs kernels."""

    def limits(self, index: int) -> DeviceLimits:
        """What a kernel may ask of device `index`."""

    def load(
        self, index: int, code: Source | Binary, kernels: Sequence[KernelSignature]
    ) -> Launcher:
        """Make `kernels` of `code` ready. ToolchainError when the device refuses the code."""


def check_launch(
    kernel: KernelSignature,
    grid: Extents,
    block: Extents,
    shared_bytes: tuple[int, ...],
    limits: DeviceLimits,
    device: Device,
) -> None:
    """UserError when `device` has not as many groups, threads or bytes of shared memory."""
    asked_for = (
        (grid, limits.groups_per_axis, BLOCK_TAGS, "groups"),
        (block, limits.threads_per_axis, THREADS_IN_BLOCK_TAGS, "threads"),
    )
    for extents, allowed, tags, what in asked_for:
        for extent, most, tag in zip(extents, allowed, tags, strict=True):
            if extent > most:
                raise _beyond(kernel, f"{extent} {what} in {tag}", most, device, (tag,))
    if (threads := block[0] * block[1] * block[2]) > limits.threads:
        asked = f"{threads} threads in a group ({' x '.join(map(str, block))})"
        raise _beyond(kernel, asked, limits.threads, device, THREADS_IN_BLOCK_TAGS)
    if (size := sum(shared_bytes)) > limits.shared_bytes:
        raise _beyond(
            kernel, f"{size} bytes of shared memory", limits.shared_bytes, device, ()
        )


def _beyond(
    kernel: KernelSignature,
    asked: str,
    most: int,
    device: Device,
    tags: tuple[str, ...],
) -> UserError:
    guilty = [f"{tag}: {told}" for tag, told in kernel.loops if tag in tags]
    if not tags:
        remedy = "split by a smaller factor, so that less is kept for a group"
    elif tags[0] in BLOCK_TAGS:
        remedy = "split by a larger factor, or let the host run a part of the loop"
    else:
        remedy = "split by a smaller factor, or bind fewer loops to threadIdx"
    return UserError(
        f"the kernel {kernel.name} asks for {asked}, {device} has {most}",
        where="; ".join(guilty),
        remedy=remedy,
    )
