"""The registers and memory that kernels need on an AMD GPU.

Requires the linked code object and, for advice, its kernels at the device level. Every number is
read from the code object, except the occupancy, which follows from the others. A kernel that spills
registers to memory causes a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from refcomp.codegen.amdgpu.module import MAX_THREADS
from refcomp.codegen.llvm.kernel_statements import SHARED_ALIGNMENT
from refcomp.codegen.signature import machine_symbol
from refcomp.driver.kernel_resources import (
    KernelResources,
    fewer_elements_advice,
    unknown_resources,
    unrolling_advice,
    warn_of_slow_kernel,
)
from refcomp.foundation.amd_metadata import CodeObjectMetadata, KernelMetadata
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.counted import counted
from refcomp.foundation.dtype import I64
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import SHARED, Buffer
from refcomp.ir.constants import as_ints, element_count
from refcomp.ir.expr import IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.rewrite import children, walk
from refcomp.ir.stmt import Allocate, Stmt
from refcomp.toolchain import Occupancy, occupancy_of, read_code_object
from refcomp.toolchain.code_object import ExpectedKernel

# Into how many variables LLVM's GlobalOpt parts one.
_MOST_PARTS = 16


@dataclass(frozen=True, slots=True)
class AmdResources(KernelResources):
    """The resources of an AMD GPU that one kernel takes."""

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


def resources_of(code: object) -> tuple[AmdResources, ...]:
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


def _resources(kernel: KernelMetadata, occupancy: Occupancy | None) -> AmdResources:
    return AmdResources(
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
            _warn(by_name[told.name], told)


def _warn(kernel: PrimFunc, told: KernelMetadata) -> None:
    unrolling = unrolling_advice(kernel)
    if unrolling and told.private_bytes:
        size = counted(told.private_bytes, "byte")
        what = [f"keeps {size} of each thread's local memory out of registers"]
        remedy = unrolling
    else:
        what = _vectors_in_memory(told)
        remedy = fewer_elements_advice(kernel)
    if told.spilled_sgprs:
        scalars = counted(told.spilled_sgprs, "scalar register")
        what.append(f"keeps {scalars} in lanes of vector registers")
    warn_of_slow_kernel(kernel.name, what, remedy)


def _vectors_in_memory(told: KernelMetadata) -> list[str]:
    """Describe vector registers and other values that lie elsewhere; nothing where none do."""
    size = f"{counted(told.private_bytes, 'byte')} a thread"
    if told.spilled_vgprs:
        # LLVM counts registers that it moved to accumulators, too: these take no memory.
        place = f"memory ({size})" if told.private_bytes else "accumulators"
        return [f"spills {counted(told.spilled_vgprs, 'vector register')} to {place}"]
    if told.private_bytes:
        return [f"keeps {size} in memory, but spills no vector register"]
    return []
