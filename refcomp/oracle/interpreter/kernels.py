"""Kernels: their threads run group by group, and those of a group from barrier to barrier.

Groups and threads come in a fixed scrambled order. Each thread runs until it comes to a barrier or
ends. A GPU may choose this order, too. Where another order could give another result, two threads
access one element without waiting for each other: a race, which `refcomp.oracle.interpreter.races`
refuses. A barrier that not all threads of a group reach is refused here.

Threads also wait for each other at collective calls (`refcomp.oracle.interpreter.collectives`), but
these do not order accesses to memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import LOCAL, SHARED, Buffer
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound, is_collective, kernel_nest
from refcomp.ir.rewrite import children, walk
from refcomp.ir.stmt import BLOCK_TAGS, Allocate, Barrier, For, LaunchKernel, Stmt
from refcomp.oracle.interpreter.collectives import Arrival, compute_together
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.failure import InterpretError, describe
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import Group
from refcomp.oracle.interpreter.scalars import wrap

SyncPoint = Barrier | Arrival  # where a thread waits for the others of its group
_Run = Callable[[Frame, Stmt], Iterator[SyncPoint]]
_Position = dict[For, int]  # the values of the variables of bound loops


def scrambled(count: int) -> list[int]:
    """Return 0, ..., count - 1 in an order that neither ascends nor descends (from three on)."""
    return [*range(count)[1::2][::-1], *range(count)[::2]]


def run_kernel(host: Frame, loop: For, run: _Run) -> None:
    """Run the kernel that begins with the bound loop `loop`.

    The threads see the variables and the memory of `host`, except for local memory. `run` runs a
    statement of a thread, from one synchronization point to the next.
    """
    if host.group is not None:
        raise InterpretError(
            f"a loop bound to {loop.kind} lies deeper in a kernel, not at its top"
        )
    nest = kernel_nest(loop)
    extents = bound_extents(host, nest.loops)
    if any(extent <= 0 for extent in extents.values()):
        return
    launch = object()
    collective = _collective_statements(nest.body)
    of_groups = {axis: n for axis, n in extents.items() if axis.kind in BLOCK_TAGS}
    of_threads = {axis: n for axis, n in extents.items() if axis not in of_groups}
    for block in _positions(of_groups):
        group = Group(launch, collective)
        shared: dict[Allocate, Memory] = {}
        threads = []
        for position in _positions(of_threads):
            thread = _thread(host, group, shared, block | position)
            threads.append((thread, run(thread, nest.body)))
        _run_group(group, threads)


def bound_extents(host: Frame, loops: Sequence[For]) -> dict[For, int]:
    """Return the extent of each of a kernel's bound `loops`.

    Raises InterpretError if a tag occurs twice, or if a loop does not begin at 0.
    """
    tags = [loop.kind for loop in loops]
    for loop in loops:
        if tags.count(loop.kind) > 1:
            raise InterpretError(f"two loops of a kernel are bound to {loop.kind}")
        if host.evaluate(loop.minimum) != 0:
            raise InterpretError(f"the loop bound to {loop.kind} does not begin at 0")
    return {loop: host.evaluate(loop.extent) for loop in loops}


def _collective_statements(body: Stmt) -> frozenset[Stmt]:
    """Return the statements below `body` whose own expressions contain collective calls."""
    found = set()
    for stmt in walk(body):
        if not isinstance(stmt, Stmt):
            continue
        for expr in children(stmt):
            if isinstance(expr, Expr) and any(map(is_collective, walk(expr))):
                found.add(stmt)
    return frozenset(found)


def _positions(extents: Mapping[For, int]) -> list[_Position]:
    """Return all positions within loops of these extents, scrambled."""
    ranges = [range(extent) for extent in extents.values()]
    values = list(itertools.product(*ranges))
    return [dict(zip(extents, values[k], strict=True)) for k in scrambled(len(values))]


def _thread(
    host: Frame, group: Group, shared: dict[Allocate, Memory], position: _Position
) -> Frame:
    words = ", ".join(f"{loop.kind} = {value}" for loop, value in position.items())
    thread = host.inner_frame(f"({words})", group)
    thread.shared = shared
    thread.values.update(host.values)
    for loop, value in position.items():
        thread.enter(loop)
        thread.bind(loop.var, wrap(value, loop.var.dtype))
    for buffer, memory in host.memory.items():
        if buffer.scope != LOCAL:
            thread.memory[buffer] = memory
    return thread


def _run_group(group: Group, threads: list[tuple[Frame, Iterator[SyncPoint]]]) -> None:
    """Run all threads to their next synchronization point, again and again, until all end."""
    numbers = scrambled(len(threads))  # of the threads, in the order in which they run
    first = threads[0][0]
    while True:
        points = [next(steps, None) for _, steps in threads]
        point = points[0]
        for (thread, _), other in zip(threads, points, strict=True):
            if _place(other) is not _place(point):
                _refuse_divergence((first, point), (thread, other))
        if point is None:
            return
        if isinstance(point, Barrier):
            group.interval = object()
            continue
        arrivals = {
            number: other
            for number, other in zip(numbers, points, strict=True)
            if isinstance(other, Arrival)
        }
        compute_together([arrivals[number] for number in range(len(threads))])


def _place(point: SyncPoint | None) -> object:
    """Return the node at which a thread waits; None if it has ended."""
    return point.call if isinstance(point, Arrival) else point


def _refuse_divergence(*threads: tuple[Frame, SyncPoint | None]) -> None:
    """Raise InterpretError for two threads that wait at different points, or of which one ended."""
    (first, point), (second, other) = sorted(threads, key=lambda pair: pair[1] is None)
    assert point is not None
    what = "reach a barrier"
    if isinstance(point, Arrival):
        what = f"come to {point.call.name}"
    elsewhere = "has ended" if other is None else f"is at {_where(second, other)}"
    raise InterpretError(
        f"not all threads of a group {what}: thread {first.name} is at it, "
        f"thread {second.name} {elsewhere}",
        where=_where(first, point),
    )


def _where(thread: Frame, point: SyncPoint) -> str | None:
    if isinstance(point, Arrival):
        return thread.where
    return describe(point, thread.values, thread.origins)


def shared_memory(thread: Frame, allocate: Allocate) -> Memory:
    """Return the shared memory that `allocate` gives `thread`, as to the others of its group."""
    buffer = allocate.buffer
    if thread.group is None:
        raise InterpretError(f"{buffer.name} is shared, but allocated outside a kernel")
    shape = thread.shape_of(buffer)
    if allocate not in thread.shared:
        thread.shared[allocate] = Memory(buffer, shape)
    memory = thread.shared[allocate]
    if memory.shape != shape:
        raise InterpretError(
            f"shared {buffer.name} has shape {memory.shape} once and {shape} then"
        )
    thread.lifetimes[allocate] = thread.lifetimes.get(allocate, 0) + 1
    return memory.in_lifetime(thread.lifetimes[allocate])


def launch_kernel(
    host: Frame, launch: LaunchKernel, run: Callable[[Frame, For], None]
) -> None:
    """Run, by `run`, the kernel that `launch` names; nothing if an extent of the launch is <= 0.

    Raises InterpretError for extents and sizes that differ from those of the kernel's own loops
    and shared buffers.
    """
    kernel = host.kernels.get(launch.kernel)
    if kernel is None:
        raise InterpretError(f"no kernel is called {launch.kernel}")
    given = _integers(host, (*launch.grid, *launch.block))
    if min(given) <= 0:
        return
    inner = _kernel_frame(host, kernel, launch)
    loop = kernel.body
    if not isinstance(loop, For) or not is_bound(loop):
        raise InterpretError(f"kernel {kernel.name} does not begin with a bound loop")
    nest = kernel_nest(loop)
    needed = _integers(inner, (*nest.grid, *nest.block))
    _require_equal(launch, "grid and block", given, needed)
    given_bytes = _integers(host, launch.shared_bytes)
    _require_equal(launch, "shared bytes", given_bytes, _shared_bytes(inner, kernel))
    run(inner, loop)


def _integers(frame: Frame, exprs: Sequence[Expr]) -> list[int]:
    return [frame.evaluate(expr) for expr in exprs]


def _require_equal(
    launch: LaunchKernel, what: str, given: list[int], needed: list[int]
) -> None:
    if given != needed:
        raise InterpretError(
            f"{launch.kernel} is launched with {what} {given}, it needs {needed}"
        )


def _kernel_frame(host: Frame, kernel: PrimFunc, launch: LaunchKernel) -> Frame:
    """Return a frame that has the parameters of `kernel` bound, and nothing else."""
    if len(kernel.params) != len(launch.arguments):
        raise InterpretError(
            f"{kernel.name} takes {len(kernel.params)} arguments, "
            f"{len(launch.arguments)} given"
        )
    inner = host.inner_frame(host.name, None)
    for param, argument in zip(kernel.params, launch.arguments, strict=True):
        if param.dtype != argument.dtype:
            raise InterpretError(
                f"{param.name} of {kernel.name} has dtype {param.dtype}, "
                f"{argument.dtype} given"
            )
        if isinstance(param, Buffer) and isinstance(argument, Buffer):
            inner.memory[param] = host.memory_of(argument)
        elif isinstance(param, Var) and isinstance(argument, Var):
            inner.values[param] = host.evaluate(argument)
        else:
            raise InterpretError(
                f"{argument.name} is given for {param.name} of {kernel.name}"
            )
    # Only now, as the shape of a buffer may need a parameter that comes after it.
    for buffer, memory in inner.memory.items():
        shape = inner.shape_of(buffer)
        if shape != memory.shape:
            raise InterpretError(
                f"{buffer.name} has shape {shape}, {memory.shape} given"
            )
    return inner


def _shared_bytes(inner: Frame, kernel: PrimFunc) -> list[int]:
    """Return the size in bytes of each shared buffer of `kernel` whose shape is not constant."""
    sizes = []
    for node in walk(kernel.body):
        if not isinstance(node, Allocate) or node.buffer.scope != SHARED:
            continue
        if not all(isinstance(dim, IntImm) for dim in node.buffer.shape):
            count = math.prod(inner.shape_of(node.buffer))
            sizes.append(count * to_numpy(node.buffer.dtype).itemsize)
    return sizes
