"""Memory of kernels in the statements of users: each thread's own, and that of a group.

Users may allocate such memory before the loops over threads begin, as in the classic system. The
loop IR has it within the kernel.
"""

from __future__ import annotations

from refcomp.ir.buffer import LOCAL, SHARED
from refcomp.ir.kernels import is_bound, kernels_in
from refcomp.ir.rewrite import buffers_in, map_children, statements_in, with_fields
from refcomp.ir.stmt import Allocate, For, Stmt


def memory_in_kernels(stmt: Stmt) -> Stmt:
    """Return `stmt` with local and shared memory allocated within the kernel around which it lies.

    Before: `alloc t: f32[1] local { for threadIdx.x in range(8) threadIdx.x { ... } }`.
    After: `for threadIdx.x in range(8) threadIdx.x { alloc t: f32[1] local { ... } }`.

    Memory around several kernels, or around a kernel and other statements, stays where it is.
    """
    if is_bound(stmt):
        return stmt
    made = map_children(stmt, memory_in_kernels, only=Stmt)
    if not isinstance(made, Allocate) or made.buffer.scope not in (LOCAL, SHARED):
        return made
    if not isinstance(made.body, For) or not is_bound(made.body):
        return made
    return _allocated_within(made, made.body)


def _allocated_within(memory: Allocate, loop: For) -> For:
    """Return a bound loop whose threads allocate `memory` inside of all bound loops."""
    inner = loop.body
    if isinstance(inner, For) and is_bound(inner):
        return with_fields(loop, body=_allocated_within(memory, inner))
    return with_fields(loop, body=with_fields(memory, body=inner))


def outside_memory(root: Stmt) -> Allocate | None:
    """Return the first allocation of local memory outside of a kernel that uses it, or None."""
    kernels = list(kernels_in(root))
    used = {buffer for kernel in kernels for buffer in buffers_in(kernel)}
    for stmt in statements_in(root, without=frozenset(kernels)):
        if not isinstance(stmt, Allocate) or stmt.buffer.scope != LOCAL:
            continue
        if stmt.buffer in used:
            return stmt
    return None
