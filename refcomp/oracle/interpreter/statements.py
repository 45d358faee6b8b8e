"""The effect of each statement of the loop IR: one function for each class of statement.

The function of a statement yields the statements inside of it one after the other, and `run` runs
them. So a thread of a kernel can stop at a barrier at any depth, and go on later. Iterations of
parallel loops and tasks of a region may run in any order. They run in a fixed scrambled order, so
that a program whose result depends on the order gives a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from refcomp.ir import stmt as st
from refcomp.ir.buffer import GLOBAL, SHARED, Buffer
from refcomp.ir.expr import Expr
from refcomp.ir.kernels import is_bound
from refcomp.ir.outside_calls import calls_python
from refcomp.ir.rewrite import children
from refcomp.oracle.interpreter.calls import call_extern, call_packed
from refcomp.oracle.interpreter.collectives import Arrival, AwaitsOthers
from refcomp.oracle.interpreter.expressions import Frame, lanes_of
from refcomp.oracle.interpreter.failure import InterpretError, describe
from refcomp.oracle.interpreter.kernels import (
    SyncPoint,
    launch_kernel,
    run_kernel,
    scrambled,
    shared_memory,
)
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import ATOMIC, OPERATORS, wrap

_Next = Iterable[st.Stmt]  # the statements that come next, in order


def run(frame: Frame, stmt: st.Stmt) -> Iterator[SyncPoint]:
    """Run `stmt`, and yield each point where the thread waits for the others of its group.

    Raises InterpretError that names the statement.
    """
    stack: list[Iterator[st.Stmt]] = [iter((stmt,))]
    try:
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            elif isinstance(step, st.Barrier):
                yield step
            else:
                frame.stmt = step
                if frame.group is not None and step in frame.group.collective:
                    yield from _arrivals(frame, step)
                stack.append(iter(_STATEMENTS[type(step)](frame, step)))
    except InterpretError as error:
        error.where = error.where or frame.where
        raise


def _arrivals(frame: Frame, step: st.Stmt) -> Iterator[Arrival]:
    """Yield an arrival at each collective call in the expressions of `step`, one after the other.

    Expressions have no effects, and `step` has written nothing so far. So an expression is
    evaluated again and again, each time with one more result, until no call is missing.
    """
    frame.results = {}
    for expr in children(step):
        if isinstance(expr, Expr):
            while (arrival := _next_arrival(frame, expr)) is not None:
                yield arrival
                frame.results[arrival.call] = arrival.result


def _next_arrival(frame: Frame, expr: Expr) -> Arrival | None:
    bound = dict(frame.values)
    try:
        frame.evaluate(expr)
    except AwaitsOthers as awaiting:
        frame.values = bound  # the exception has left lets open
        return awaiting.arrival
    return None


def run_to_end(frame: Frame, stmt: st.Stmt) -> None:
    """Run `stmt` where no other threads can be waited for."""
    for point in run(frame, stmt):
        # Without a group, a collective call fails before it is yielded.
        assert isinstance(point, st.Barrier)
        where = describe(point, frame.values, frame.origins)
        raise InterpretError("a barrier lies outside a kernel", where=where)


def _for(frame: Frame, loop: st.For) -> _Next:
    if is_bound(loop):
        _run_kernel(frame, loop)
        return
    if frame.shortcut is not None and frame.shortcut(frame, loop):
        return
    frame.enter(loop)
    minimum = frame.evaluate(loop.minimum)
    extent = frame.evaluate(loop.extent)
    steps: Sequence[int] = range(extent)
    if loop.kind == st.PARALLEL and not calls_python(loop.body):
        steps = scrambled(extent)
    for step in steps:
        frame.bind(loop.var, wrap(minimum + step, loop.var.dtype))
        yield loop.body
        del frame.values[loop.var]


def _run_kernel(frame: Frame, loop: st.For) -> None:
    if frame.shortcut is None or not frame.shortcut(frame, loop):
        run_kernel(frame, loop, run)


def _buffer_store(frame: Frame, store: st.BufferStore) -> _Next:
    value = frame.evaluate(store.value)
    memory = frame.memory_of(store.buffer)
    offset = memory.offset([frame.evaluate(index) for index in store.indices])
    memory.write(offset, value, frame)
    return ()


def _store(frame: Frame, store: st.Store) -> _Next:
    value = lanes_of(frame.evaluate(store.value))
    index = lanes_of(frame.evaluate(store.index))
    mask = (True,) * len(index)
    if store.predicate is not None:
        mask = lanes_of(frame.evaluate(store.predicate))
    memory = frame.memory_of(store.buffer)
    for position, lane, wanted in zip(index, value, mask, strict=True):
        if wanted:
            memory.write(position, lane, frame)
    return ()


def _atomic_update(frame: Frame, update: st.AtomicUpdate) -> _Next:
    meaning = OPERATORS[ATOMIC[update.operator]]
    dtype = update.buffer.dtype
    value = frame.evaluate(update.value)
    indices = [frame.evaluate(index) for index in update.indices]
    memory = frame.memory_of(update.buffer)
    # A single index counts all elements of the buffer. With one dimension that is the same.
    offset = indices[0] if len(indices) == 1 else memory.offset(indices)
    memory.update(
        offset, update.operator, lambda old: meaning(old, value, dtype), frame
    )
    return ()


def _allocate(frame: Frame, allocate: st.Allocate) -> _Next:
    buffer = allocate.buffer
    if buffer.scope == SHARED:
        memory = shared_memory(frame, allocate)
    elif buffer.scope == GLOBAL and frame.group is not None:
        raise InterpretError(f"{buffer.name} is global, but allocated within a kernel")
    else:
        memory = Memory(buffer, frame.shape_of(buffer))
    frame.memory[buffer] = memory
    yield allocate.body
    del frame.memory[buffer]


def _if_then_else(frame: Frame, branch: st.IfThenElse) -> _Next:
    if frame.evaluate(branch.condition):
        return (branch.then_case,)
    return () if branch.else_case is None else (branch.else_case,)


def _block(_frame: Frame, block: st.Block) -> _Next:
    return block.stmts


def _let_stmt(frame: Frame, let: st.LetStmt) -> _Next:
    frame.bind(let.var, frame.evaluate(let.value))
    yield let.body
    del frame.values[let.var]


def _parallel_region(frame: Frame, region: st.ParallelRegion) -> _Next:
    """Run each task in a frame that has only the captures bound."""
    for task in scrambled(frame.num_tasks):
        inner = frame.inner_frame(frame.name, frame.group)
        for capture in region.captures:
            if isinstance(capture, Buffer):
                inner.memory[capture] = frame.memory_of(capture)
            else:
                inner.values[capture] = frame.evaluate(capture)
        inner.values |= {region.task: task, region.num_tasks: frame.num_tasks}
        run_to_end(inner, region.body)
    return ()


def _pragma(_frame: Frame, pragma: st.Pragma) -> _Next:
    return (pragma.body,)


def _prefetch(_frame: Frame, _prefetch: st.Prefetch) -> _Next:
    return ()


def _launch_kernel(frame: Frame, launch: st.LaunchKernel) -> _Next:
    launch_kernel(frame, launch, _run_kernel)
    return ()


_STATEMENTS: dict[type[st.Stmt], Callable[[Frame, Any], _Next]] = {
    st.For: _for,
    st.BufferStore: _buffer_store,
    st.Store: _store,
    st.Allocate: _allocate,
    st.IfThenElse: _if_then_else,
    st.Block: _block,
    st.LetStmt: _let_stmt,
    st.ParallelRegion: _parallel_region,
    st.AtomicUpdate: _atomic_update,
    st.Pragma: _pragma,
    st.Prefetch: _prefetch,
    st.LaunchKernel: _launch_kernel,
    st.CallPacked: call_packed,
    st.CallExtern: call_extern,
}
