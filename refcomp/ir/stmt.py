"""Statements of the loop IR: what is done, in order.

Grammar (ASDL; every statement also has an optional `origin`)::

    stmt = For(var var, expr minimum, expr extent, str kind, stmt body)
         | BufferStore(buffer buffer, expr* indices, expr value)
         | Store(buffer buffer, expr index, expr value, expr? predicate)
         | Allocate(buffer buffer, stmt body)
         | IfThenElse(expr condition, stmt then_case, stmt? else_case)
         | Block(stmt* stmts)
         | LetStmt(var var, expr value, stmt body)
         | ParallelRegion(str name, capture* captures, var task, var num_tasks, stmt body)
         | Barrier()
         | AtomicUpdate(str operator, buffer buffer, expr* indices, expr value)
         | LaunchKernel(str kernel, capture* arguments, expr* grid, expr* block,
                        expr* shared_bytes)
         | Pragma(str key, expr value, stmt body)
         | Prefetch(buffer buffer, expr* indices)
         | CallPacked(str name, expr* args)
         | CallExtern(str name, dtype result, expr* args)

`BufferStore` belongs to the nested level and `Store` to the flat one (see `refcomp.ir.buffer`).
A loop whose kind is a thread tag is a *bound loop*, and one with all that is in it a *kernel*: the
code that each thread of a GPU runs. See Note [Kernels].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refcomp.foundation.dtype import DType
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node, node

SERIAL, PARALLEL, VECTORIZED, UNROLLED = "serial", "parallel", "vectorized", "unrolled"
BLOCK_TAGS = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREADS_IN_BLOCK_TAGS = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
THREAD_TAGS = (*BLOCK_TAGS, *THREADS_IN_BLOCK_TAGS)
VTHREAD = "vthread"
LOOP_KINDS = (SERIAL, PARALLEL, VECTORIZED, UNROLLED, *THREAD_TAGS, VTHREAD)
ATOMIC_OPERATORS = ("add", "min", "max", "and", "or", "xor")


@dataclass(frozen=True, slots=True)
class Origin:
    """The provenance of a statement. Outside equality and text form; every rewrite carries it."""

    stage: str
    # The axis of the stage whose loop the statement is or belongs to.
    axis: str = ""
    # The primitive that made it.
    primitive: str = ""
    # The user's line, as `file:line`.
    line: str = ""

    def __str__(self) -> str:
        parts = (f"axis {self.axis}", f"by {self.primitive}", f"at {self.line}")
        given = (self.axis, self.primitive, self.line)
        return ", ".join(
            [
                f"stage {self.stage}",
                *(p for p, g in zip(parts, given, strict=True) if g),
            ]
        )


class Stmt(Node):
    """An action on memory or control. Has no value."""

    __slots__ = ()
    origin: Origin | None


@node
class For(Stmt):
    """Run `body` for var = minimum, ..., minimum + extent - 1; never if extent <= 0.

    The kind of the loop decides the order of the iterations:

    - `serial`: in order.
    - `parallel`: in any order, possibly at once. Iterations must not conflict.
    - `vectorized`, `unrolled`: in order; the kind asks for a certain form of the code.
    - a thread tag: each iteration by a thread, or a group of threads, of its own, at once.
    - `vthread`: each iteration by a virtual thread. One thread executes several of them (Note
      [Kernels]).
    """

    binds = ("var",)
    var: Var
    minimum: Expr
    extent: Expr
    kind: str
    body: Stmt
    origin: Origin | None = None


@node
class BufferStore(Stmt):
    """Writes `value` to the element at `indices`; out of range is an error. The value and the
    indices are evaluated before anything is written."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    origin: Origin | None = None


@node
class Store(Stmt):
    """Writes `value` to the element `index` elements from the start of `buffer`, lane by lane in
    ascending order; lanes where `predicate` is false are left as they were."""

    buffer: Buffer
    index: Expr
    value: Expr
    predicate: Expr | None = None
    origin: Origin | None = None


@node
class Allocate(Stmt):
    """Gives `buffer` fresh, uninitialised memory for the duration of `body`."""

    binds = ("buffer",)
    buffer: Buffer
    body: Stmt
    origin: Origin | None = None


@node
class IfThenElse(Stmt):
    """Runs `then_case` where the scalar condition holds, else `else_case` if there is one."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None
    origin: Origin | None = None


@node
class Block(Stmt):
    """Runs the statements in order; may be empty."""

    stmts: tuple[Stmt, ...]
    origin: Origin | None = None


@node
class LetStmt(Stmt):
    """Runs `body` with `var` bound to `value`, which is evaluated once, before the body."""

    binds = ("var",)
    var: Var
    value: Expr
    body: Stmt
    origin: Origin | None = None


@node
class ParallelRegion(Stmt):
    """Runs `body` once for each task = 0, ..., num_tasks - 1, in any order, possibly at once.

    The number of tasks is at least 1 and chosen at run time; the result must not depend on it.
    `captures` are all variables and buffers of the surrounding code that the body uses.
    """

    binds = ("task", "num_tasks")
    name: str
    captures: tuple[Var | Buffer, ...]
    task: Var
    num_tasks: Var
    body: Stmt
    origin: Origin | None = None


@node
class Barrier(Stmt):
    """Each thread of a group waits until all of them are here. What any of them wrote to shared or
    global memory before is then seen by all of them."""

    origin: Origin | None = None


@node
class AtomicUpdate(Stmt):
    """Replaces the element at `indices` by operator(element, value), which no other thread can see
    half done. The indices are those of a BufferStore, or, from the flat level on, one offset in
    elements from the buffer's start.

    `add` wraps on integers and rounds once on floats; `min` and `max` are those of Min and Max.
    """

    operator: str
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    origin: Origin | None = None


@node
class LaunchKernel(Stmt):
    """Runs the function `kernel` of the same Program on a GPU, and waits for its results to be
    seen by what follows.

    `arguments` are the kernel's, in order. `grid` and `block` are the extents of its bound loops,
    x, y, z, 1 where there is none; nothing is run when one is <= 0. `shared_bytes` are the sizes
    of its shared buffers that are no constants, in the order of their allocation.
    """

    kernel: str
    arguments: tuple[Var | Buffer, ...]
    grid: tuple[Expr, ...]
    block: tuple[Expr, ...]
    shared_bytes: tuple[Expr, ...] = ()
    origin: Origin | None = None


@node
class Pragma(Stmt):
    """Runs `body`. `key` and `value` are a wish that some pass may follow, without a meaning."""

    key: str
    value: Expr
    body: Stmt
    origin: Origin | None = None


@node
class Prefetch(Stmt):
    """A hint that the element at `indices` will be read soon; it does nothing else, and is no error
    out of range. The indices are those of an AtomicUpdate."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    origin: Origin | None = None


@node
class CallPacked(Stmt):
    """Calls the function registered as `name` (`refcomp.foundation.registry`), in Python, and waits
    for it.

    It is given numbers, and numpy arrays on the memory of whole buffers (`AddressOf` without
    indices), which are read-only where they are read only. Its result is dropped. What it raises
    ends the program, whose outputs are undefined then. The host alone can do that.
    """

    name: str
    args: tuple[Expr, ...]
    origin: Origin | None = None


@node
class CallExtern(Stmt):
    """Calls the C function `name` of the host, by C's calling convention; a buffer is a pointer.

    Its `result` is dropped. It reads and writes only what its arguments say.
    """

    name: str
    result: DType
    args: tuple[Expr, ...]
    origin: Origin | None = None


CALLS = (CallPacked, CallExtern)


def block(stmts: list[Stmt] | tuple[Stmt, ...], origin: Origin | None = None) -> Stmt:
    """The statements as one: nested blocks are flattened, a single statement stays itself."""
    flat: list[Stmt] = []
    for stmt in stmts:
        flat.extend(stmt.stmts if isinstance(stmt, Block) else (stmt,))
    return flat[0] if len(flat) == 1 else Block(tuple(flat), origin)


def with_lets(
    lets: Sequence[tuple[Var, Expr]], body: Stmt, origin: Origin | None = None
) -> Stmt:
    """Return `body` inside a LetStmt for each of `lets`, the first one outermost."""
    for var, value in reversed(lets):
        body = LetStmt(var, value, body, origin)
    return body


# Note [Kernels]
# ~~~~~~~~~~~~~~
# A kernel is in canonical form: its bound loops are directly nested in the order of
# blockIdx.z, .y, .x, threadIdx.z, .y, .x (those in use), from 0, each tag once, with extents that
# do not depend on each other, and no bound loop lies below. What lies below is the program of one
# thread. A buffer allocated there is `local`, one for each thread, or `shared`, one for each group.
# What stands around a kernel is run by the host: loops, workspaces, other kernels before and after.
# All that a kernel wrote is seen by what comes after it.
#
# Loops of virtual threads stand anywhere below the bound loops, or on the host, with a constant
# extent from 0. Their iterations are threads of the group like any other, for shared memory too,
# and so they mean the right thing only once `inject_virtual_threads` has put them in order.
