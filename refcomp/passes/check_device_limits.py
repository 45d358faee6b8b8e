"""Refuses kernels that ask for more than a device has: threads, groups, shared memory, arguments.

Before::

    func f(A: f32[n] out, n: i64) {
      for i in range(n) blockIdx.x {
        for j in range(64) threadIdx.x {
          A@[i * 64 + j] = 0.0f32
        }
      }
    }

After::

    func f(A: f32[n] out, n: i64) {
      for i in range(n) blockIdx.x {
        for j in range(64) threadIdx.x {
          A@[i * 64 + j] = 0.0f32
        }
      }
    }

Extents and sizes that are no constants are left to the launch, which knows them. Requires: kernels
as `split_host_device` makes them. Ensures: no constant is beyond the limits. Level: device, kept.
It refuses (UserError) the rest, with the loop to change and to what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from refcomp.errors import UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import KernelNest, kernel_nest, kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BLOCK_TAGS, THREADS_IN_BLOCK_TAGS, Allocate, For, Store
from refcomp.target import DeviceLimits

_POINTER_BYTES = 8


def check_device_limits(kernel: PrimFunc, limits: DeviceLimits) -> PrimFunc:
    """`kernel` itself, when a device of such `limits` can run it."""
    for start in kernels_in(kernel.body):
        nest = kernel_nest(start)
        _check_axes(kernel, nest, THREADS_IN_BLOCK_TAGS, limits.threads_per_axis, "threads")
        _check_axes(kernel, nest, BLOCK_TAGS, limits.groups_per_axis, "groups")
        _check_group(kernel, nest, limits.threads)
    _check_shared(kernel, limits.shared_bytes)
    _check_arguments(kernel, limits.argument_bytes)
    return kernel


def _check_axes(
    kernel: PrimFunc, nest: KernelNest, tags: Sequence[str], most: Sequence[int], what: str
) -> None:
    for tag, limit in zip(tags, most, strict=True):
        loop = nest.loop(tag)
        extent = None if loop is None else _constant(loop)
        if loop is not None and extent is not None and extent > limit:
            raise UserError(
                f"the kernel {kernel.name} has {extent} {what} in {tag}, of which the device "
                f"has at most {limit}",
                where=_place(loop),
                remedy=_smaller(loop, limit, what),
            )


def _check_group(kernel: PrimFunc, nest: KernelNest, most: int) -> None:
    loops = [loop for loop in nest.loops if loop.kind in THREADS_IN_BLOCK_TAGS]
    extents = {loop: extent for loop in loops if (extent := _constant(loop)) is not None}
    threads = prod(extents.values())
    if threads <= most:
        return
    longest = max(extents, key=lambda loop: extents[loop])
    fitting = max(most // (threads // extents[longest]), 1)
    sizes = " x ".join(str(extents[loop]) for loop in reversed(loops) if loop in extents)
    raise UserError(
        f"the kernel {kernel.name} has {threads} threads in a group ({sizes}), of which the "
        f"device has at most {most}",
        where="; ".join(map(_place, loops)),
        remedy=_smaller(longest, fitting, "threads"),
    )


def _check_shared(kernel: PrimFunc, most: int) -> None:
    sizes = dict(_shared_buffers(kernel))
    total = sum(sizes.values())
    if total <= most:
        return
    listed = ", ".join(f"{allocate.buffer.name} {size}" for allocate, size in sizes.items())
    largest = max(sizes, key=lambda allocate: sizes[allocate])
    raise UserError(
        f"the kernel {kernel.name} keeps {total} bytes of shared memory for a group ({listed}), "
        f"of which the device has {most}",
        where=_origin_of(kernel, largest),
        remedy=f"make the tiles of {largest.buffer.name} smaller: split by smaller factors the "
        "loops that it is computed inside, or attach it deeper",
    )


def _check_arguments(kernel: PrimFunc, most: int) -> None:
    """A pointer for each buffer, and numbers at multiples of their sizes."""
    total = 0
    for param in kernel.params:
        size = _POINTER_BYTES if isinstance(param, Buffer) else param.dtype.bytes
        total += -total % size + size
    if total > most:
        raise UserError(
            f"the kernel {kernel.name} takes {len(kernel.params)} arguments of {total} bytes, of "
            f"which the device passes at most {most}",
            remedy="let fewer stages share a kernel, or join tensors",
        )


def _origin_of(kernel: PrimFunc, allocate: Allocate) -> str:
    """Where the buffer comes from, or else what is written to it."""
    writes = (n for n in walk(kernel.body) if isinstance(n, Store) and n.buffer is allocate.buffer)
    origins = [stmt.origin for stmt in (allocate, *writes) if stmt.origin]
    return str(origins[0]) if origins else f"alloc {allocate.buffer.name}"


def _shared_buffers(kernel: PrimFunc) -> Iterator[tuple[Allocate, int]]:
    """The shared buffers of a constant size, and their bytes."""
    for node in walk(kernel.body):
        if isinstance(node, Allocate) and node.buffer.scope == "shared":
            size = _bytes(node.buffer)
            if size is not None:
                yield node, size


def _bytes(buffer: Buffer) -> int | None:
    dims = [dim.value for dim in buffer.shape if isinstance(dim, IntImm)]
    return prod(dims) * buffer.dtype.bytes if len(dims) == len(buffer.shape) else None


def _constant(loop: For) -> int | None:
    return loop.extent.value if isinstance(loop.extent, IntImm) else None


def _place(loop: For) -> str:
    return str(loop.origin) if loop.origin else f"loop {loop.var.name}"


def _smaller(loop: For, most: int, what: str) -> str:
    origin = loop.origin
    name = f"axis {origin.axis} of stage {origin.stage}" if origin else f"loop {loop.var.name}"
    if what == "groups":
        return f"split {name} and bind the outer part to another blockIdx, at most {most} groups"
    return f"split {name} so that at most {most} iterations are bound to {loop.kind}"
