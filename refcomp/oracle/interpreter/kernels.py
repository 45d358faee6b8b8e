"""How a kernel runs: its threads group by group, those of a group from barrier to barrier.

Groups and threads come in a fixed scrambled order, and each thread runs until it meets a barrier or
ends. That is one of the orders which a GPU may choose; where another order could give another
result, two threads touch one element without waiting for each other, which is refused (see
`refcomp.oracle.interpreter.races`). So is a barrier that not all threads of a group reach. At what
threads compute together (`refcomp.oracle.interpreter.waves`) they wait for each other, too, but not
for memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import asks_others, is_bound, kernel_nest
from refcomp.ir.rewrite import children, walk
from refcomp.ir.stmt import BLOCK_TAGS, Allocate, Barrier, For, LaunchKernel, Stmt
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.failure import InterpretError, describe
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import Group
from refcomp.oracle.interpreter.scalars import wrap
from refcomp.oracle.interpreter.waves import Question, answer

Stop = Barrier | Question  # where a thread waits for the others of its group
_Run = Callable[[Frame, Stmt], Iterator[Stop]]
_Loop = tuple[For, int]  # a bound loop and its extent


def scrambled(count: int) -> list[int]:
    """0, ..., count - 1 in an order that is neither ascending nor descending (from three on)."""
    return [*range(count)[1::2][::-1], *range(count)[::2]]


def run_kernel(host: Frame, loop: For, run: _Run) -> None:
    """Runs the kernel that begins with the bound loop `loop`; `run` runs a thread's statements.

    The threads see what `host` knows, but for its local memory.
    """
    if host.group is not None:
        raise InterpretError(
            f"a loop bound to {loop.kind} lies deeper in a kernel, not at its top"
        )
    nest = kernel_nest(loop)
    loops = bound_loops(host, nest.loops)
    if any(extent <= 0 for _, extent in loops):
        return
    launch, asking = object(), _asking(nest.body)
    for block in _positions([loop for loop in loops if loop[0].kind in BLOCK_TAGS]):
        group, shared = Group(launch, asking), dict[Allocate, Memory]()
        inner = _positions([loop for loop in loops if loop[0].kind not in BLOCK_TAGS])
        threads = [
            _thread(host, group, shared, [*block, *position]) for position in inner
        ]
        _run_group(group, [(thread, run(thread, nest.body)) for thread in threads])


def _asking(body: Stmt) -> frozenset[Stmt]:
    """The statements below `body` with expressions that threads compute together."""
    return frozenset(
        stmt
        for stmt in walk(body)
        if isinstance(stmt, Stmt)
        and any(
            asks_others(item)
            for expr in children(stmt)
            if isinstance(expr, Expr)
            for item in walk(expr)
        )
    )


def bound_loops(host: Frame, loops: Sequence[For]) -> list[_Loop]:
    """The bound `loops` of a kernel with their extents. Raises InterpretError for loops that no
    kernel has."""
    tags = [loop.kind for loop in loops]
    for loop in loops:
        if tags.count(loop.kind) > 1:
            raise InterpretError(f"two loops of a kernel are bound to {loop.kind}")
        if host.evaluate(loop.minimum) != 0:
            raise InterpretError(f"the loop bound to {loop.kind} does not begin at 0")
    return [(loop, host.evaluate(loop.extent)) for loop in loops]


def _positions(loops: Sequence[_Loop]) -> list[list[_Loop]]:
    """All positions within `loops`, each as the loops with a value instead of the extent."""
    ranges = [[(loop, value) for value in range(extent)] for loop, extent in loops]
    positions = [list(position) for position in itertools.product(*ranges)]
    return [positions[k] for k in scrambled(len(positions))]


def _thread(
    host: Frame, group: Group, shared: dict[Allocate, Memory], position: list[_Loop]
) -> Frame:
    words = ", ".join(f"{loop.kind} = {value}" for loop, value in position)
    thread = Frame(f"({words})", group, shared=shared, code=host.code)
    thread.values.update(host.values)
    thread.origins = host.origins
    for loop, value in position:
        thread.enter(loop)
        thread.bind(loop.var, wrap(value, loop.var.dtype))
    thread.memory = {
        b: memory for b, memory in host.memory.items() if b.scope != "local"
    }
    return thread


def _run_group(group: Group, threads: list[tuple[Frame, Iterator[Stop]]]) -> None:
    """Runs all threads to the next place where they wait, again and again, until they end."""
    numbers = scrambled(len(threads))
    stop: Stop | None = Barrier()
    while stop is not None:
        stops = [(thread, next(steps, None)) for thread, steps in threads]
        first, stop = stops[0]
        for thread, other in stops:
            if _place(other) is not _place(stop):
                _refuse_divergence((first, stop), (thread, other))
        if isinstance(stop, Question):
            numbered = zip(numbers, (other for _, other in stops), strict=True)
            asked = {number: q for number, q in numbered if isinstance(q, Question)}
            answer([asked[number] for number in range(len(stops))])
        else:
            group.interval = object()


def _place(stop: Stop | None) -> object:
    return stop.call if isinstance(stop, Question) else stop


def _refuse_divergence(*stops: tuple[Frame, Stop | None]) -> None:
    (first, stop), (second, other) = sorted(stops, key=lambda stop: stop[1] is None)
    assert stop is not None
    elsewhere = "has ended" if other is None else f"is at {_where(second, other)}"
    what = (
        f"come to {stop.call.name}" if isinstance(stop, Question) else "reach a barrier"
    )
    raise InterpretError(
        f"not all threads of a group {what}: thread {first.name} is at it, "
        f"thread {second.name} {elsewhere}",
        where=_where(first, stop),
    )


def _where(thread: Frame, stop: Stop) -> str | None:
    if isinstance(stop, Question):
        return thread.where
    return describe(stop, thread.values, thread.origins)


def shared_memory(thread: Frame, allocate: Allocate) -> Memory:
    """What `allocate` gives a thread: the same memory as the others of its group."""
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
    life = thread.lives[allocate] = thread.lives.get(allocate, 0) + 1
    return memory.in_life(life)


# Launches.


def launch_kernel(
    host: Frame, launch: LaunchKernel, run: Callable[[Frame, For], None]
) -> None:
    """Runs, by `run`, the kernel that `launch` names on its arguments; nothing when an extent is
    <= 0.

    Refuses extents and sizes that are not those of the kernel's own loops and shared buffers.
    """
    kernel = host.kernels.get(launch.kernel)
    if kernel is None:
        raise InterpretError(f"there is no kernel {launch.kernel}")
    grid_and_block = _integers(host, (*launch.grid, *launch.block))
    if min(grid_and_block) <= 0:
        return
    inner = _callee(host, kernel, launch)
    loop = kernel.body
    if not isinstance(loop, For) or not is_bound(loop):
        raise InterpretError(f"kernel {kernel.name} does not begin with a bound loop")
    nest = kernel_nest(loop)
    _agree(
        launch,
        "grid and block",
        grid_and_block,
        _integers(inner, (*nest.grid, *nest.block)),
    )
    shared = _integers(host, launch.shared_bytes)
    _agree(launch, "shared bytes", shared, _shared_bytes(inner, kernel))
    run(inner, loop)


def _integers(frame: Frame, exprs: Sequence[Expr]) -> list[int]:
    return [frame.evaluate(expr) for expr in exprs]


def _agree(
    launch: LaunchKernel, what: str, given: list[int], needed: list[int]
) -> None:
    if given != needed:
        raise InterpretError(
            f"{launch.kernel} is launched with {what} {given}, it needs {needed}"
        )


def _callee(host: Frame, kernel: PrimFunc, launch: LaunchKernel) -> Frame:
    """What the kernel knows: its parameters, and nothing else."""
    if len(kernel.params) != len(launch.arguments):
        takes = f"{kernel.name} takes {len(kernel.params)} arguments"
        raise InterpretError(f"{takes}, {len(launch.arguments)} given")
    inner, memories = Frame(code=host.code), dict[Buffer, Memory]()
    inner.shortcut, inner.origins = host.shortcut, host.origins
    for param, argument in zip(kernel.params, launch.arguments, strict=True):
        if param.dtype != argument.dtype:
            takes = f"{param.name} of {kernel.name} has dtype {param.dtype}"
            raise InterpretError(f"{takes}, {argument.dtype} given")
        if isinstance(param, Buffer) and isinstance(argument, Buffer):
            memories[param] = host.memory_of(argument)
        elif isinstance(param, Var) and isinstance(argument, Var):
            inner.values[param] = host.evaluate(argument)
        else:
            raise InterpretError(
                f"{argument.name} is given for {param.name} of {kernel.name}"
            )
    for buffer, memory in memories.items():
        shape = inner.shape_of(buffer)
        if shape != memory.shape:
            raise InterpretError(
                f"{buffer.name} has shape {shape}, {memory.shape} given"
            )
        inner.memory[buffer] = memory
    return inner


def _shared_bytes(inner: Frame, kernel: PrimFunc) -> list[int]:
    """The sizes of the kernel's shared buffers whose shapes are no constants."""
    allocated = [
        item.buffer for item in walk(kernel.body) if isinstance(item, Allocate)
    ]
    sized = [b for b in allocated if b.scope == "shared" and not _is_constant(b)]
    return [math.prod(inner.shape_of(b)) * to_numpy(b.dtype).itemsize for b in sized]


def _is_constant(buffer: Buffer) -> bool:
    return all(isinstance(dim, IntImm) for dim in buffer.shape)
