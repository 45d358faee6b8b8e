"""Makes shared buffers dynamic in kernels that need more static shared memory than can be declared.

Before::

    func f(A: f32[n] out) {
      launch k (A, n) grid (n // 64, 1, 1) block (64, 1, 1)
    }

    func k(A: f32[n] out, n: i64) {
      for b in range(n // 64) blockIdx.x {
        for t in range(64) threadIdx.x {
          alloc S: f32[64] shared {
            alloc T: f32[192, 64] shared {
              T@[t] = A@[b * 64 + t]
              barrier
              S@[63 - t] = T@[t] * 2.0f32
              barrier
              A@[b * 64 + t] = S@[t]
            }
          }
        }
      }
    }

After::

    func f(A: f32[n] out) {
      let T_elements: i64 = 12288 {
        launch k (A, n, T_elements) grid (n // 64, 1, 1) block (64, 1, 1) shared_bytes (49152)
      }
    }

    func k(A: f32[n] out, n: i64, T_elements: i64) {
      for b in range(n // 64) blockIdx.x {
        for t in range(64) threadIdx.x {
          alloc S: f32[64] shared {
            alloc T: f32[T_elements] shared {
              T@[t] = A@[b * 64 + t]
              barrier
              S@[63 - t] = T@[t] * 2.0f32
              barrier
              A@[b * 64 + t] = S@[t]
            }
          }
        }
      }
    }

NVIDIA's compilers refuse a kernel that declares more than 48 KiB of shared memory, even if the GPU
has more. A launch may have more as dynamic shared memory, whose size a kernel does not know when it
is compiled. So the largest buffers get an extent that is a parameter, until the others take at most
48 KiB. The host passes the same number in each call.

Requires: a Program as `split_host_device` makes it. Ensures: the shared buffers of a kernel whose
sizes are constants take at most 48 KiB, except those that stand at several places of the statement
tree. The launches name the bytes of all others, in the order of their allocations. Level: flat for
kernels and launch for the host, both kept. It refuses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from refcomp.foundation.dtype import I64
from refcomp.foundation.names import UniqueNames
from refcomp.ir.buffer import SHARED, Buffer
from refcomp.ir.constants import element_count
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc, Program
from refcomp.ir.node import bound_by
from refcomp.ir.rewrite import map_children, replace_buffers, walk, with_fields
from refcomp.ir.stmt import Allocate, LaunchKernel, LetStmt, Stmt
from refcomp.passes.analysis.shared_places import shared_places

# Bytes of static shared memory that a kernel can declare. Source: CUDA C++ Programming Guide,
# "Shared Memory" of compute capability 7.x and later.
MAX_STATIC_BYTES = 48 << 10


class _Moved(NamedTuple):
    """A shared buffer that becomes dynamic."""

    buffer: Buffer
    elements: Var  # the parameter that is its extent
    number: int  # its value


def make_shared_memory_dynamic(program: Program) -> Program:
    """Return `program` with at most 48 KiB of static shared memory in each kernel."""
    names = UniqueNames(_names_in(program))
    moved: dict[str, list[_Moved]] = {}
    for kernel in program.kernels:
        for buffer, count in _choose(kernel):
            elements = Var(names.take(f"{buffer.name}_elements"), I64)
            moved.setdefault(kernel.name, []).append(_Moved(buffer, elements, count))
    if not moved:
        return program
    kernels = {
        kernel.name: _with_params(kernel, moved.get(kernel.name, []))
        for kernel in program.kernels
    }

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, LaunchKernel) and stmt.kernel in moved:
            return _with_arguments(stmt, kernels[stmt.kernel], moved[stmt.kernel])
        return map_children(stmt, visit, only=Stmt)

    host = program.host.with_body(visit(program.host.body))
    return Program(host, tuple(kernels.values()))


def _names_in(program: Program) -> Iterator[str]:
    """Yield the names of all variables and buffers."""
    for func in (program.host, *program.kernels):
        yield from (param.name for param in func.params)
        yield from (symbol.name for symbol in func.symbols)
        for node in walk(func.body):
            yield from (bound.name for bound in bound_by(node))


def _choose(kernel: PrimFunc) -> Iterator[tuple[Buffer, int]]:
    """Yield the buffers that must become dynamic, largest first, with their elements."""
    counts: dict[Buffer, int] = {}
    places: Counter[Buffer] = Counter()
    for allocate, number in shared_places(kernel).items():
        buffer = allocate.buffer
        count = element_count(buffer.shape)
        if count is not None:
            counts[buffer] = count
            places[buffer] += number
    sizes = {buffer: count * buffer.dtype.bytes for buffer, count in counts.items()}
    total = sum(size * places[buffer] for buffer, size in sizes.items())
    for buffer in sorted(sizes, key=lambda buffer: sizes[buffer], reverse=True):
        if total > MAX_STATIC_BYTES and places[buffer] == 1:
            total -= sizes[buffer]
            yield buffer, counts[buffer]


def _with_params(kernel: PrimFunc, moved: list[_Moved]) -> PrimFunc:
    """Return `kernel` with a parameter for the extent of each moved buffer."""
    if not moved:
        return kernel
    buffers = {
        item.buffer: with_fields(item.buffer, shape=(item.elements,)) for item in moved
    }
    return with_fields(
        kernel,
        params=(*kernel.params, *(item.elements for item in moved)),
        body=replace_buffers(kernel.body, buffers),
    )


def _with_arguments(
    launch: LaunchKernel, kernel: PrimFunc, moved: list[_Moved]
) -> Stmt:
    """Return `launch` of `kernel`, which already has the new parameters, inside lets for them."""
    counts = {item.elements: item.number for item in moved}
    # The sizes of the buffers that were dynamic before, in the same order.
    others = iter(launch.shared_bytes)
    sizes: list[Expr] = []
    for node in walk(kernel.body):
        if not isinstance(node, Allocate) or node.buffer.scope != SHARED:
            continue
        extent = node.buffer.shape[0] if node.buffer.shape else None
        if isinstance(extent, Var) and extent in counts:
            sizes.append(IntImm(counts[extent] * node.buffer.dtype.bytes, I64))
        elif element_count(node.buffer.shape) is None:
            sizes.append(next(others))
    stmt: Stmt = with_fields(
        launch,
        arguments=(*launch.arguments, *counts),
        shared_bytes=tuple(sizes),
    )
    for elements, count in reversed(counts.items()):
        stmt = LetStmt(elements, IntImm(count, I64), stmt, origin=launch.origin)
    return stmt
