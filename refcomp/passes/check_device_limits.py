"""Refuses kernels that need more than a device has: threads, groups, memory, registers.

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

The pass only checks, so both texts are the same. Extents and sizes that are not constants are
checked at the launch. An allocation of shared memory that stands at several places of the
statement tree counts once for each place, as the printed text shows it.

Requires: kernels as `split_host_device` makes them. Ensures: no constant exceeds a limit.
Level: device, kept. It refuses (UserError) all other kernels, and names the loop to change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from refcomp.foundation.errors import UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_int, element_count
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import KernelNest, kernel_nest, kernels_in
from refcomp.ir.rewrite import children, walk
from refcomp.ir.stmt import (
    BLOCK_TAGS,
    THREADS_IN_BLOCK_TAGS,
    Allocate,
    For,
    LoopKind,
    Stmt,
    Store,
    line_of,
    place_of,
)
from refcomp.passes.analysis.shared_places import shared_places

_POINTER_BYTES = 8


def check_device_limits(kernel: PrimFunc, limits: DeviceLimits) -> PrimFunc:
    """Return `kernel` itself, or raise UserError if a device with `limits` cannot run it."""
    for start in kernels_in(kernel.body):
        nest = kernel_nest(start)
        _check_axes(
            kernel,
            nest,
            tags=THREADS_IN_BLOCK_TAGS,
            limits=limits.threads_per_axis,
            what="threads",
        )
        _check_axes(
            kernel,
            nest,
            tags=BLOCK_TAGS,
            limits=limits.groups_per_axis,
            what="groups",
        )
        _check_group(kernel, nest, limits.threads)
    _check_shared(kernel, limits.shared_bytes)
    _check_arguments(kernel, limits.argument_bytes)
    _check_vectors(kernel, limits.vector_bytes)
    return kernel


def _check_axes(
    kernel: PrimFunc,
    nest: KernelNest,
    tags: Sequence[LoopKind],
    limits: Sequence[int],
    what: str,
) -> None:
    for tag, limit in zip(tags, limits, strict=True):
        loop = nest.loop(tag)
        if loop is None:
            continue
        # An extent that is not a constant is checked by the driver at each launch.
        extent = as_int(loop.extent)
        if extent is not None and extent > limit:
            raise UserError(
                f"the kernel {kernel.name} has {extent} {what} in {tag}, "
                f"but the device allows at most {limit}",
                where=_place(loop),
                remedy=_smaller(loop, limit, what),
                at=line_of(loop.origin),
            )


def _check_group(kernel: PrimFunc, nest: KernelNest, max_threads: int) -> None:
    loops = [loop for loop in nest.loops if loop.kind in THREADS_IN_BLOCK_TAGS]
    extents: dict[For, int] = {}
    for loop in loops:
        extent = as_int(loop.extent)
        if extent is not None:
            extents[loop] = extent
    threads = prod(extents.values())
    if threads <= max_threads:
        return
    longest = max(extents, key=lambda loop: extents[loop])
    other_threads = threads // extents[longest]
    fitting = max(max_threads // other_threads, 1)
    sizes = " x ".join(map(str, reversed(extents.values())))
    raise UserError(
        f"the kernel {kernel.name} has {threads} threads in a group ({sizes}), "
        f"but the device allows at most {max_threads}",
        where="; ".join(map(_place, loops)),
        remedy=_smaller(longest, fitting, "threads"),
        at=line_of(longest.origin),
        earlier=[
            loop.origin.snippet()
            for loop in loops
            if loop.origin is not None and loop is not longest
        ],
    )


def _check_shared(kernel: PrimFunc, max_bytes: int) -> None:
    places = shared_places(kernel)
    total = 0
    sizes: dict[Allocate, int] = {}  # bytes
    texts: list[str] = []
    for allocate, count in places.items():
        buffer = allocate.buffer
        elements = element_count(buffer.shape)
        if elements is None:
            continue
        size = elements * buffer.dtype.bytes
        sizes[allocate] = size
        total += size * count
        times = f" at {count} places" if count > 1 else ""
        texts.append(f"{buffer.name} {size}{times}")
    if total <= max_bytes:
        return
    largest = max(sizes, key=lambda allocate: sizes[allocate])
    # Report the line of the allocation, or of a store to the buffer if that is unknown.
    origins = [largest.origin]
    for node in walk(kernel.body):
        if isinstance(node, Store) and node.buffer is largest.buffer:
            origins.append(node.origin)
    origin = next((origin for origin in origins if origin), None)
    raise UserError(
        f"the kernel {kernel.name} keeps {total} bytes of shared memory for a group "
        f"({', '.join(texts)}), but the device has {max_bytes}",
        where=place_of(origin) or f"alloc {largest.buffer.name}",
        remedy=f"make the tiles of {largest.buffer.name} smaller: split by smaller "
        "factors the loops that it is computed inside, or attach it deeper",
        at=line_of(origin),
    )


def _check_arguments(kernel: PrimFunc, max_bytes: int) -> None:
    """Check the size of the arguments, each aligned to its own size."""
    total = 0
    for param in kernel.params:
        size = _POINTER_BYTES if isinstance(param, Buffer) else param.dtype.bytes
        padding = -total % size
        total += padding + size
    if total > max_bytes:
        raise UserError(
            f"the kernel {kernel.name} takes {len(kernel.params)} arguments of {total} "
            f"bytes, but the device passes at most {max_bytes} bytes",
            remedy="let fewer stages share a kernel, or join tensors",
        )


def _check_vectors(kernel: PrimFunc, max_bytes: int) -> None:
    """Check the vectors that are read or written: no other vector is longer than these."""
    for stmt in walk(kernel.body):
        if not isinstance(stmt, Stmt):
            continue
        for buffer, lanes in _accesses(stmt):
            size = lanes * buffer.dtype.bytes
            if lanes > 1 and size > max_bytes:
                origin = stmt.origin
                stage = f" of stage {origin.stage}" if origin else ""
                fitting = max_bytes // buffer.dtype.bytes
                raise UserError(
                    f"the kernel {kernel.name} has vectors of {lanes} {buffer.dtype}, "
                    f"{size} bytes",
                    where=place_of(origin) or f"an access of {buffer.name}",
                    why=f"an operand of an instruction has at most {max_bytes} bytes on the device",
                    remedy=f"split the vectorized axis{stage} so that "
                    f"at most {fitting} iterations are one vector",
                    at=line_of(origin),
                )


def _accesses(stmt: Stmt) -> Iterator[tuple[Buffer, int]]:
    """Yield each buffer that a statement itself reads or writes, with the lanes."""
    if isinstance(stmt, Store):
        yield stmt.buffer, stmt.index.dtype.lanes
    for child in children(stmt):
        if isinstance(child, Stmt):
            continue
        for node in walk(child):
            if isinstance(node, Load):
                yield node.buffer, node.index.dtype.lanes


def _place(loop: For) -> str:
    return place_of(loop.origin) or f"loop {loop.var.name}"


def _smaller(loop: For, limit: int, what: str) -> str:
    origin = loop.origin
    name = f"loop {loop.var.name}"
    if origin:
        name = f"axis {origin.axis} of stage {origin.stage}"
    if what == "groups":
        return (
            f"split {name} and bind the outer part to another blockIdx, "
            f"at most {limit} groups"
        )
    return f"split {name} so that at most {limit} iterations are bound to {loop.kind}"
