"""Resources of GPUs that kernels take, and advice on which loop to change if they take too many.

Requires, for advice, kernels at the device level. Each kind of GPU has a record of its own:
`AmdResources` and `NvidiaResources`. A kernel whose threads keep values in memory instead of
registers causes a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from refcomp.foundation.build_warnings import note_warning
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.provenance import caller_line
from refcomp.ir.buffer import LOCAL, SHARED, Buffer, Load, StorageScope
from refcomp.ir.constants import element_count
from refcomp.ir.expr import Expr, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import THREAD_TAGS, Allocate, For, LetStmt, Origin, Store


class SlowKernelWarning(UserWarning):
    """A kernel will be slower than its schedule looks."""


@dataclass(frozen=True, slots=True)
class KernelResources:
    """The resources of a GPU that one kernel takes."""

    kernel: str


def unknown_resources() -> Unsupported:
    """Return the error for targets whose machine code does not list the resources of kernels."""
    return Unsupported(
        "the resources of kernels are not known",
        why="only machine code for AMD and NVIDIA GPUs comes with them",
        remedy="build for the target rocm, cuda or nvptx",
    )


def warn_of_slow_kernel(kernel: str, faults: Sequence[str], remedy: str) -> None:
    """Warn, at the line of the user's program that is calling, of a kernel.

    Args:
        faults: what makes it slow; each continues a sentence that begins with the kernel.
        remedy: what to do.
    """
    note_warning()
    file, _, line = caller_line().rpartition(":")
    text = f"the kernel {kernel} {' and '.join(faults)}\n  what to do: {remedy}"
    warnings.warn_explicit(text, SlowKernelWarning, file or "refcomp", int(line or 1))


def unrolling_advice(kernel: PrimFunc) -> str:
    """Return which loop to unroll so that local memory becomes registers; '' if none helps.

    Registers have no addresses: an index that a loop changes keeps a buffer in memory.
    """
    loop = next(_loops_indexing_local_memory(kernel), None)
    if loop is None:
        return ""
    place = loop.origin or f"the loop {loop.var.name}"
    return f"unroll {place}, whose variable chooses among local elements"


def _loops_indexing_local_memory(kernel: PrimFunc) -> Iterator[For]:
    lets = {
        node.var: node.value for node in walk(kernel.body) if isinstance(node, LetStmt)
    }
    for loop in walk(kernel.body):
        if not isinstance(loop, For) or loop.kind in THREAD_TAGS:
            continue
        accesses = (node for node in walk(loop.body) if isinstance(node, Load | Store))
        local = (node for node in accesses if node.buffer.scope == LOCAL)
        if any(_depends(node.index, loop.var, lets) for node in local):
            yield loop


def _depends(expr: Expr, var: Var, lets: Mapping[Var, Expr]) -> bool:
    seen: set[Var] = set()
    rest: list[Node] = [expr]
    while rest:
        for node in walk(rest.pop()):
            if node is var:
                return True
            if isinstance(node, Var) and node in lets and node not in seen:
                seen.add(node)
                rest.append(lets[node])
    return False


def fewer_elements_advice(kernel: PrimFunc) -> str:
    """Return how a thread can keep fewer elements than the GPU has registers."""
    largest = _largest(kernel, LOCAL)
    if not largest:
        return "unroll less, or use narrower vectors"
    return (
        f"let a thread keep fewer elements of {largest}: split its loops by smaller factors, so "
        "that more threads share them"
    )


def smaller_shared_advice(kernel: PrimFunc) -> str:
    """Return how a block can do with less shared memory."""
    largest = _largest(kernel, SHARED)
    if not largest:
        return "keep fewer elements in shared memory"
    return (
        f"let a block keep fewer elements of {largest}: split the loops that it is attached to "
        "by smaller factors"
    )


def _largest(kernel: PrimFunc, scope: StorageScope) -> str:
    """Describe the largest buffer of a scope: name, origin, bytes. Return '' if there is none.

    A buffer whose size the launch decides counts as larger than others.
    """
    buffers = [
        node.buffer
        for node in walk(kernel.body)
        if isinstance(node, Allocate) and node.buffer.scope == scope
    ]
    if not buffers:
        return ""
    largest = max(buffers, key=_bytes)
    origin = _written_at(kernel, largest)
    stage = f" ({origin})" if origin else ""
    size = element_count(largest.shape)
    bytes_of = (
        "" if size is None else f", which has {counted(int(_bytes(largest)), 'byte')}"
    )
    return f"{largest.name}{stage}{bytes_of}"


def _written_at(kernel: PrimFunc, buffer: Buffer) -> Origin | None:
    writes = (
        n for n in walk(kernel.body) if isinstance(n, Store) and n.buffer is buffer
    )
    return next((write.origin for write in writes if write.origin), None)


def _bytes(buffer: Buffer) -> float:
    count = element_count(buffer.shape)
    return inf if count is None else count * buffer.dtype.bytes
