"""Statements of the loop IR: actions on memory, and control flow.

Grammar (ASDL; every statement also has an optional `origin`)::

    stmt = For(var var, expr minimum, expr extent, loop_kind kind, stmt body)
         | BufferStore(buffer buffer, expr* indices, expr value)
         | Store(buffer buffer, expr index, expr value, expr? predicate)
         | Allocate(buffer buffer, stmt body)
         | IfThenElse(expr condition, stmt then_case, stmt? else_case)
         | Block(stmt* stmts)
         | LetStmt(var var, expr value, stmt body)
         | ParallelRegion(str name, capture* captures, var task, var num_tasks, stmt body)
         | Barrier()
         | AtomicUpdate(atomic_operator operator, buffer buffer, expr* indices, expr value)
         | LaunchKernel(str kernel, capture* arguments, expr* grid, expr* block,
                        expr* shared_bytes)
         | Pragma(str key, expr value, stmt body)
         | Prefetch(buffer buffer, expr* indices)
         | CallPacked(str name, expr* args)
         | CallExtern(str name, dtype result, expr* args)
    atomic_operator = add | min | max | and | or | xor
    loop_kind = serial | parallel | vectorized | unrolled | unrollable | vthread
         | blockIdx.x | blockIdx.y | blockIdx.z | threadIdx.x | threadIdx.y | threadIdx.z

`BufferStore` belongs to the nested level and `Store` to the flat one (see `refcomp.ir.buffer`).
A loop whose kind is a thread tag is a *bound loop*. An outermost bound loop with its body is a
*kernel*, the code that each thread of a GPU runs. See Note [Kernels].
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.choices import Choice
from refcomp.foundation.dtype import DType
from refcomp.foundation.provenance import done_at
from refcomp.foundation.records import record
from refcomp.foundation.snippets import Snippet
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node, node


class LoopKind(Choice):
    """The order in which the iterations of a loop run (see For)."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    UNROLLABLE = "unrollable"
    BLOCK_X = "blockIdx.x"
    BLOCK_Y = "blockIdx.y"
    BLOCK_Z = "blockIdx.z"
    THREAD_X = "threadIdx.x"
    THREAD_Y = "threadIdx.y"
    THREAD_Z = "threadIdx.z"
    VTHREAD = "vthread"


# Python 3.11 looks up `LoopKind.SERIAL` by a slow property, so passes compare with these names.
SERIAL = LoopKind.SERIAL
PARALLEL = LoopKind.PARALLEL
VECTORIZED = LoopKind.VECTORIZED
UNROLLED = LoopKind.UNROLLED
UNROLLABLE = LoopKind.UNROLLABLE
VTHREAD = LoopKind.VTHREAD
BLOCK_TAGS = (LoopKind.BLOCK_X, LoopKind.BLOCK_Y, LoopKind.BLOCK_Z)
THREADS_IN_BLOCK_TAGS = (LoopKind.THREAD_X, LoopKind.THREAD_Y, LoopKind.THREAD_Z)
THREAD_TAGS = (*BLOCK_TAGS, *THREADS_IN_BLOCK_TAGS)


class AtomicOperator(Choice):
    """The operator of an AtomicUpdate."""

    ADD = "add"  # wraps on integers, rounds once on floats
    MIN = "min"  # as Min
    MAX = "max"  # as Max
    AND = "and"
    OR = "or"
    XOR = "xor"


@record
class Origin:
    """The provenance of a statement.

    It is not part of equality and of the text form. Every rewrite carries it over.
    """

    stage: str
    axis: str = ""  # the axis of the stage whose loop the statement is in
    primitive: str = ""  # the schedule primitive that made the statement
    line: str = ""  # the user's line, as `file:line`

    def __str__(self) -> str:
        return f"{self.place()}, at {self.line}" if self.line else self.place()

    def place(self) -> str:
        """Return the stage, the axis and the primitive, without the line."""
        axis = f", axis {self.axis}" if self.axis else ""
        primitive = f", by {self.primitive}" if self.primitive else ""
        return f"stage {self.stage}{axis}{primitive}"

    def snippet(self, name: str = "") -> Snippet:
        """Return the line for messages; `name` is what was declared or scheduled there."""
        return done_at(self.primitive, self.line, name)


def place_of(origin: Origin | None) -> str | None:
    """Return the place of an origin for messages; None if it is not known."""
    return origin.place() if origin else None


def line_of(origin: Origin | None) -> Snippet | None:
    """Return the line of an origin for messages; None if it is not known."""
    return origin.snippet() if origin else None


class Stmt(Node):
    """An action on memory or control. It has no value."""

    __slots__ = ()
    origin: Origin | None


@node
class For(Stmt):
    """Run `body` for var = minimum, ..., minimum + extent - 1; never if extent <= 0.

    The kind of the loop decides the order of the iterations:

    - `serial`: in order.
    - `parallel`: in any order, possibly at once. Iterations must not conflict.
    - `vectorized`, `unrolled`: in order; the kind asks for a certain form of the code.
    - `unrollable`: in order; the kind asks the target's compiler to unroll the loop.
    - a thread tag: each iteration by a thread, or a group of threads, of its own, at once.
    - `vthread`: each iteration by a virtual thread. One thread executes several of them (Note
      [Kernels]).
    """

    binds = ("var",)
    var: Var
    minimum: Expr
    extent: Expr
    kind: LoopKind
    body: Stmt
    origin: Origin | None = None


@node
class BufferStore(Stmt):
    """Write `value` to the element at `indices`; out of range is an error.

    The value and the indices are evaluated before the write.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    origin: Origin | None = None


@node
class Store(Stmt):
    """Write `value` to the element at `index` elements from the start of `buffer`.

    Lanes are written in ascending order. Where the predicate is false, nothing is written.
    """

    buffer: Buffer
    index: Expr
    value: Expr
    predicate: Expr | None = None  # bool, with as many lanes as the index
    origin: Origin | None = None


@node
class Allocate(Stmt):
    """Run `body` with fresh, uninitialised memory for `buffer`."""

    binds = ("buffer",)
    buffer: Buffer
    body: Stmt
    origin: Origin | None = None


@node
class IfThenElse(Stmt):
    """Run `then_case` if the scalar condition holds, else `else_case` if it exists."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None
    origin: Origin | None = None


@node
class Block(Stmt):
    """Run the statements in order. A block may be empty."""

    stmts: tuple[Stmt, ...]
    origin: Origin | None = None


@node
class LetStmt(Stmt):
    """Run `body` with `var` bound to `value`, which is evaluated once, before the body."""

    binds = ("var",)
    var: Var
    value: Expr
    body: Stmt
    origin: Origin | None = None


@node
class ParallelRegion(Stmt):
    """Run `body` once for each task = 0, ..., num_tasks - 1, in any order, possibly at once.

    The result must not depend on the number of tasks.
    """

    binds = ("task", "num_tasks")
    name: str
    captures: tuple[Var | Buffer, ...]  # all that the body uses of the code around it
    task: Var  # i64
    num_tasks: Var  # i64, at least 1, chosen at run time
    body: Stmt
    origin: Origin | None = None


@node
class Barrier(Stmt):
    """Make each thread of a group wait until all of its threads have arrived.

    Afterwards, all of them see what any of them wrote to shared or global memory before.
    """

    origin: Origin | None = None


@node
class AtomicUpdate(Stmt):
    """Atomically replace the element at `indices` by operator(element, value)."""

    operator: AtomicOperator
    buffer: Buffer
    indices: tuple[Expr, ...]  # from the flat level on, one offset in elements
    value: Expr
    origin: Origin | None = None


@node
class LaunchKernel(Stmt):
    """Run a kernel on a GPU. Later statements see all that it wrote.

    Nothing runs if an extent is <= 0.
    """

    kernel: str  # the name of a function of the same Program
    arguments: tuple[Var | Buffer, ...]
    # Extents of blockIdx.x, .y, .z; 1 if the kernel has no such loop.
    grid: tuple[Expr, ...]
    block: tuple[Expr, ...]  # extents of threadIdx.x, .y, .z, likewise
    # Sizes of the kernel's shared buffers that are not constant, in the order of their allocation.
    shared_bytes: tuple[Expr, ...] = ()
    origin: Origin | None = None


# The key of a pragma around a parallel loop, whose tasks then take iterations in turns.
STRIDE_PATTERN = "parallel_stride_pattern"


@node
class Pragma(Stmt):
    """Run `body`. `key` and `value` are a hint for passes, and do not change the meaning."""

    key: str
    value: Expr
    body: Stmt
    origin: Origin | None = None


@node
class Prefetch(Stmt):
    """Hint that the element at `indices` will be read soon. Any index is allowed."""

    buffer: Buffer
    indices: tuple[Expr, ...]  # from the flat level on, one offset in elements
    origin: Origin | None = None


@node
class CallPacked(Stmt):
    """Call a registered Python function (`refcomp.foundation.registry`), and wait for it.

    Its result is ignored. If it raises, the program ends with this exception, and the outputs are
    undefined. Only code of the host can call it.
    """

    name: str
    # A number stays one. An AddressOf without indices becomes a numpy array on the buffer's memory,
    # read-only if its access is `read`.
    args: tuple[Expr, ...]
    origin: Origin | None = None


@node
class CallExtern(Stmt):
    """Call the C function `name` on the host, by C's calling convention.

    It reads and writes only what its arguments say.
    """

    name: str
    result: DType  # the value is ignored
    args: tuple[Expr, ...]  # scalars, and AddressOf for pointers
    origin: Origin | None = None


CALLS = (CallPacked, CallExtern)


def block(stmts: list[Stmt] | tuple[Stmt, ...], origin: Origin | None = None) -> Stmt:
    """Return one statement for `stmts`: a flat Block, or the statement itself if it is single."""
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
# A kernel has a canonical form:
#
# - Its bound loops are nested directly, in the order blockIdx.z, .y, .x, threadIdx.z, .y, .x. Each
#   tag occurs at most once.
# - They begin at 0, and their extents do not depend on each other.
# - No bound loop lies deeper. The body is the program of one thread.
# - A buffer allocated in the body is `local` (one a thread) or `shared` (one a group).
#
# The host runs the code around a kernel: loops, workspaces, and other kernels before and after.
# Code after a kernel sees all that it wrote.
#
# Loops of virtual threads lie anywhere below the bound loops, or on the host. They begin at 0 and
# have a constant extent. Their iterations share memory as the threads of a group do. So their
# statements are in the right order only after `inject_virtual_threads`.
