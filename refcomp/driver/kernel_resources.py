"""The registers and memory that kernels need on an AMD GPU, and which loop to change.

Requires the linked code object and, for advice, its kernels at the device level. Every number is
read from the code object, except the occupancy, which follows from the others. A kernel that spills
registers to memory causes a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from refcomp.codegen.amdgpu.module import MAX_THREADS
from refcomp.codegen.amdgpu.statements import SHARED_ALIGNMENT
from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.amd_metadata import CodeObjectMetadata, KernelMetadata
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.provenance import caller_line
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import LOCAL, SHARED, Buffer, Load
from refcomp.ir.constants import as_ints, element_count
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, walk
from refcomp.ir.stmt import THREAD_TAGS, Allocate, For, LetStmt, Origin, Stmt, Store
from refcomp.toolchain import Occupancy, occupancy_of, read_code_object
from refcomp.toolchain.code_object import ExpectedKernel

# Into how many variables LLVM's GlobalOpt parts one.
_MOST_PARTS = 16


class SlowKernelWarning(UserWarning):
    """A kernel will be slower than its schedule looks."""


@dataclass(frozen=True, slots=True)
class KernelResources:
    """The resources of an AMD GPU that one kernel takes."""

    kernel: str
    vgprs: int  # vector registers of a lane, those for matrices included
    agprs: int  # vector registers for matrices
    sgprs: int  # scalar registers of a wave
    spilled_vgprs: int  # vector registers that lie in memory
    spilled_sgprs: int  # scalar registers that lie in lanes of vector registers
    private_bytes: int  # memory of a thread
    shared_bytes: int  # memory of a group
    threads: int  # of a group, at most
    waves: int  # that a SIMD holds at a time; 0 where that is not known
    limit: str  # what allows no more waves


def resources_of(code: object) -> tuple[KernelResources, ...]:
    """Return the resources of each kernel of a code object.

    Raises:
        Unsupported: the code is for other devices.
    """
    if not isinstance(code, Binary) or code.format != "hsaco":
        raise unknown_resources()
    told = read_code_object(code.data)
    return tuple(
        _resources(kernel, occupancy_of(kernel, told.mcpu)) for kernel in told.kernels
    )


def unknown_resources() -> Unsupported:
    """Return the error for targets whose machine code does not list the resources of kernels."""
    return Unsupported(
        "the resources of kernels are not known",
        why="only machine code for AMD GPUs lists them",
        remedy="build for the target rocm",
    )


def _resources(kernel: KernelMetadata, occupancy: Occupancy | None) -> KernelResources:
    return KernelResources(
        kernel.name,
        kernel.vgprs,
        kernel.agprs,
        kernel.sgprs,
        kernel.spilled_vgprs,
        kernel.spilled_sgprs,
        kernel.private_bytes,
        kernel.shared_bytes,
        kernel.max_threads,
        occupancy.waves if occupancy else 0,
        occupancy.limit if occupancy else "",
    )


def expected_kernel(kernel: PrimFunc) -> ExpectedKernel:
    """Return the metadata that the code object of `kernel` (at the device level) must have."""
    params = tuple(None if isinstance(p, Buffer) else p.dtype for p in kernel.params)
    starts = [*kernels_in(kernel.body)]
    extents = kernel_nest(starts[0]).block if starts else (IntImm(1, I64),) * 3
    block = tuple(max(1, extent) for extent in as_ints(extents) or ())
    threads = prod(block) if block else MAX_THREADS
    shared_bytes = _shared_bytes(kernel, threads)
    return ExpectedKernel(machine_symbol(kernel.name), params, block, shared_bytes)


@deep_recursion()
def _shared_bytes(kernel: PrimFunc, threads: int) -> int:
    """Return an upper bound of the bytes of all buffers of constant size, in any order.

    LLVM may divide a shared buffer into up to sixteen variables, each with the alignment of the
    whole. It may put small local buffers into shared memory, one for each thread.
    """
    units = [n.buffer.alignment for n in walk(kernel.body) if isinstance(n, Allocate)]
    unit = max(SHARED_ALIGNMENT, *units, 0)
    known = dict[int, int]()

    def total(stmt: Stmt) -> int:
        # A statement that stands in several places is printed at each, with memory of its own.
        if id(stmt) not in known:
            inner = sum(
                total(child) for child in children(stmt) if isinstance(child, Stmt)
            )
            known[id(stmt)] = inner + _own_shared_bytes(stmt, threads, unit)
        return known[id(stmt)]

    return total(kernel.body)


def _own_shared_bytes(stmt: Stmt, threads: int, unit: int) -> int:
    count = element_count(stmt.buffer.shape) if isinstance(stmt, Allocate) else None
    if not isinstance(stmt, Allocate) or count is None:
        return 0
    size = max(1, count) * stmt.buffer.dtype.bytes
    if stmt.buffer.scope != SHARED:
        return -(-size * threads // unit) * unit
    return (-(-size // unit) + min(max(1, count), _MOST_PARTS) - 1) * unit


def warn_of_slow_kernels(kernels: Sequence[PrimFunc], code: CodeObjectMetadata) -> None:
    """Warn of each of `kernels`, compiled to `code`, whose threads keep values in memory."""
    by_name = {machine_symbol(kernel.name): kernel for kernel in kernels}
    for told in code.kernels:
        if told.spilled_vgprs or told.spilled_sgprs or told.private_bytes:
            _warn(_advice(by_name[told.name], told))


def _warn(text: str) -> None:
    file, _, line = caller_line().rpartition(":")
    warnings.warn_explicit(text, SlowKernelWarning, file or "refcomp", int(line or 1))


def _advice(kernel: PrimFunc, told: KernelMetadata) -> str:
    indexing = next(_loops_indexing_local_memory(kernel), None)
    if indexing is not None and told.private_bytes:
        what = [
            f"keeps {told.private_bytes} bytes of each thread's local memory out of registers"
        ]
        loop = str(indexing.origin or f"the loop {indexing.var.name}")
        remedy = f"unroll {loop}, whose variable chooses among local elements"
    else:
        what = _vectors_in_memory(told)
        remedy = _smaller(kernel)
    if told.spilled_sgprs:
        scalars = _counted(told.spilled_sgprs, "scalar register")
        what.append(f"keeps {scalars} in lanes of vector registers")
    return f"the kernel {kernel.name} {' and '.join(what)}\n  what to do: {remedy}"


def _vectors_in_memory(told: KernelMetadata) -> list[str]:
    """Describe vector registers and other values that lie elsewhere; nothing where none do."""
    size = f"{_counted(told.private_bytes, 'byte')} a thread"
    if told.spilled_vgprs:
        # LLVM counts registers that it moved to accumulators, too: these take no memory.
        place = f"memory ({size})" if told.private_bytes else "accumulators"
        return [f"spills {_counted(told.spilled_vgprs, 'vector register')} to {place}"]
    if told.private_bytes:
        return [f"keeps {size} in memory, but spills no vector register"]
    return []


def _counted(number: int, name: str) -> str:
    return f"1 {name}" if number == 1 else f"{number} {name}s"


# A loop that stays a loop in the machine code.


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


# More elements than there are registers.


def _smaller(kernel: PrimFunc) -> str:
    local = [
        node.buffer
        for node in walk(kernel.body)
        if isinstance(node, Allocate) and node.buffer.scope == LOCAL
    ]
    if not local:
        return "unroll less, or use narrower vectors"
    largest = max(local, key=_bytes)
    origin = _written_at(kernel, largest)
    stage = f" ({origin})" if origin else ""
    return (
        f"let a thread keep fewer elements of {largest.name}{stage}, which has {_bytes(largest)} "
        "bytes: split its loops by smaller factors, so that more threads share them"
    )


def _written_at(kernel: PrimFunc, buffer: Buffer) -> Origin | None:
    writes = (
        n for n in walk(kernel.body) if isinstance(n, Store) and n.buffer is buffer
    )
    return next((write.origin for write in writes if write.origin), None)


def _bytes(buffer: Buffer) -> int:
    return (element_count(buffer.shape) or 0) * buffer.dtype.bytes
