"""Refuses kernels that ask for more than a device has: threads, groups, memory, long vectors.

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
as `split_host_device` makes them. Ensures: no constant is beyond the limits. A shared buffer counts
at each place where its statement stands, as it is printed there. Level: device, kept. It refuses
(UserError) the rest, with the loop to change and to what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import prod

from refcomp.foundation.errors import UserError
from refcomp.foundation.target import DeviceLimits
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_int, element_count
from refcomp.ir.expr import Expr
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import KernelNest, kernel_nest, kernels_in
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, memoised, walk
from refcomp.ir.stmt import (
    BLOCK_TAGS,
    THREADS_IN_BLOCK_TAGS,
    Allocate,
    For,
    Stmt,
    Store,
)

_POINTER_BYTES = 8


def check_device_limits(kernel: PrimFunc, limits: DeviceLimits) -> PrimFunc:
    """`kernel` itself, when a device of such `limits` can run it."""
    for start in kernels_in(kernel.body):
        nest = kernel_nest(start)
        _check_axes(
            kernel, nest, THREADS_IN_BLOCK_TAGS, limits.threads_per_axis, "threads"
        )
        _check_axes(kernel, nest, BLOCK_TAGS, limits.groups_per_axis, "groups")
        _check_group(kernel, nest, limits.threads)
    _check_shared(kernel, limits.shared_bytes)
    _check_arguments(kernel, limits.argument_bytes)
    _check_vectors(kernel, limits.vector_bytes)
    return kernel


def _check_axes(
    kernel: PrimFunc,
    nest: KernelNest,
    tags: Sequence[str],
    most: Sequence[int],
    what: str,
) -> None:
    for tag, limit in zip(tags, most, strict=True):
        loop = nest.loop(tag)
        extent = None if loop is None else as_int(loop.extent)
        if loop is not None and extent is not None and extent > limit:
            raise UserError(
                f"the kernel {kernel.name} has {extent} {what} in {tag}, of which the device "
                f"has at most {limit}",
                where=_place(loop),
                remedy=_smaller(loop, limit, what),
            )


def _check_group(kernel: PrimFunc, nest: KernelNest, most: int) -> None:
    loops = [loop for loop in nest.loops if loop.kind in THREADS_IN_BLOCK_TAGS]
    extents = {
        loop: extent for loop in loops if (extent := as_int(loop.extent)) is not None
    }
    threads = prod(extents.values())
    if threads <= most:
        return
    longest = max(extents, key=lambda loop: extents[loop])
    fitting = max(most // (threads // extents[longest]), 1)
    sizes = " x ".join(
        str(extents[loop]) for loop in reversed(loops) if loop in extents
    )
    raise UserError(
        f"the kernel {kernel.name} has {threads} threads in a group ({sizes}), of which the "
        f"device has at most {most}",
        where="; ".join(map(_place, loops)),
        remedy=_smaller(longest, fitting, "threads"),
    )


def _check_shared(kernel: PrimFunc, most: int) -> None:
    places = memoised(_shared_places)(kernel.body)
    sizes = {
        allocate: size
        for allocate in places
        if (size := _bytes(allocate.buffer)) is not None
    }
    total = sum(places[allocate] * size for allocate, size in sizes.items())
    if total <= most:
        return
    listed = ", ".join(
        " ".join([f"{allocate.buffer.name} {size}", *_times(places[allocate])])
        for allocate, size in sizes.items()
    )
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
    writes = (
        n
        for n in walk(kernel.body)
        if isinstance(n, Store) and n.buffer is allocate.buffer
    )
    origins = [stmt.origin for stmt in (allocate, *writes) if stmt.origin]
    return str(origins[0]) if origins else f"alloc {allocate.buffer.name}"


def _shared_places(
    recurse: Callable[[Stmt], Counter[Allocate]], node: Stmt
) -> Counter[Allocate]:
    """The allocations of shared buffers below a statement, and at how many places each stands."""
    places: Counter[Allocate] = Counter()
    if isinstance(node, Allocate) and node.buffer.scope == "shared":
        places[node] = 1
    for child in children(node):
        if isinstance(child, Stmt):
            places.update(recurse(child))
    return places


def _times(count: int) -> list[str]:
    return [f"at {count} places"] if count > 1 else []


def _check_vectors(kernel: PrimFunc, most: int) -> None:
    """What is read or written at once; that of indices and conditions is never longer."""
    for stmt in walk(kernel.body):
        for buffer, lanes in _accesses(stmt):
            size = lanes * buffer.dtype.bytes
            if isinstance(stmt, Stmt) and lanes > 1 and size > most:
                raise UserError(
                    f"the kernel {kernel.name} has vectors of {lanes} {buffer.dtype}, {size} bytes",
                    where=str(stmt.origin)
                    if stmt.origin
                    else f"an access of {buffer.name}",
                    why=f"registers of the device hold at most {most} bytes together",
                    remedy=_shorter(stmt, most // buffer.dtype.bytes),
                )


def _accesses(stmt: Node) -> Iterator[tuple[Buffer, int]]:
    """The buffers that a statement itself reads or writes, and how many lanes of each at once."""
    if isinstance(stmt, Store):
        yield stmt.buffer, stmt.index.dtype.lanes
    for child in children(stmt) if isinstance(stmt, Stmt) else ():
        for node in walk(child) if isinstance(child, Expr) else ():
            if isinstance(node, Load):
                yield node.buffer, node.index.dtype.lanes


def _shorter(stmt: Stmt, lanes: int) -> str:
    stage = f" of stage {stmt.origin.stage}" if stmt.origin else ""
    return f"split the vectorized axis{stage} so that at most {lanes} iterations are one vector"


def _bytes(buffer: Buffer) -> int | None:
    count = element_count(buffer.shape)
    return None if count is None else count * buffer.dtype.bytes


def _place(loop: For) -> str:
    return str(loop.origin) if loop.origin else f"loop {loop.var.name}"


def _smaller(loop: For, most: int, what: str) -> str:
    origin = loop.origin
    name = (
        f"axis {origin.axis} of stage {origin.stage}"
        if origin
        else f"loop {loop.var.name}"
    )
    if what == "groups":
        return f"split {name} and bind the outer part to another blockIdx, at most {most} groups"
    return f"split {name} so that at most {most} iterations are bound to {loop.kind}"
