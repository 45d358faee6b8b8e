"""What each statement of the loop IR does: one function per class.

A statement says which statements come next, one after the other, and `run` does them: so a thread
of a kernel can stop at a barrier, wherever that stands, and go on later. What may happen in any
order (parallel loops, the tasks of a region) happens in a fixed scrambled one, so that a program
that depends on the order gives another result than it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr
from refcomp.ir.kernels import is_bound
from refcomp.ir.rewrite import children
from refcomp.oracle.interpreter.calls import call_extern, call_packed
from refcomp.oracle.interpreter.expressions import Frame, lanes_of
from refcomp.oracle.interpreter.failure import InterpretError, describe
from refcomp.oracle.interpreter.kernels import (
    Stop,
    launch_kernel,
    run_kernel,
    scrambled,
    shared_memory,
)
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import ATOMIC, OPERATORS, wrap
from refcomp.oracle.interpreter.waves import Asks, Question

_Steps = Iterable[st.Stmt]  # what a statement wants done, in order


def run(frame: Frame, stmt: st.Stmt) -> Iterator[Stop]:
    """Does what `stmt` says; stops where threads wait for each other. An InterpretError tells the
    statement."""
    begun: list[Iterator[st.Stmt]] = [iter((stmt,))]
    try:
        while begun:
            step = next(begun[-1], None)
            if step is None:
                begun.pop()
            elif isinstance(step, st.Barrier):
                yield step
            else:
                frame.stmt = step
                if frame.group is not None and step in frame.group.asking:
                    yield from _questions(frame, step)
                begun.append(iter(_STATEMENTS[type(step)](frame, step)))
    except InterpretError as error:
        error.where = error.where or frame.where
        raise


def _questions(frame: Frame, step: st.Stmt) -> Iterator[Question]:
    """Has the expressions of a statement answered what threads compute together, one call after
    the other: nothing is written before."""
    frame.answers = {}
    for expr in children(step):
        while (
            isinstance(expr, Expr) and (question := _question(frame, expr)) is not None
        ):
            yield question
            frame.answers[question.call] = question.answer


def _question(frame: Frame, expr: Expr) -> Question | None:
    bound = dict(frame.values)
    try:
        frame.evaluate(expr)
    except Asks as asks:
        frame.values = bound  # lets within the expression are left open
        return asks.question
    return None


def run_to_end(frame: Frame, stmt: st.Stmt) -> None:
    """Does what `stmt` says, where there is nobody to wait for."""
    for stop in run(frame, stmt):
        assert isinstance(
            stop, st.Barrier
        )  # what threads compute together fails without a group
        where = describe(stop, frame.values, frame.origins)
        raise InterpretError("a barrier lies outside a kernel", where=where)


def _for(frame: Frame, loop: st.For) -> _Steps:
    if is_bound(loop):
        _kernel(frame, loop)
        return
    if frame.shortcut is not None and frame.shortcut(frame, loop):
        return
    frame.enter(loop)
    minimum, extent = frame.evaluate(loop.minimum), frame.evaluate(loop.extent)
    steps: Iterable[int] = range(extent)
    if loop.kind == st.PARALLEL:
        steps = scrambled(extent)
    for step in steps:
        frame.bind(loop.var, wrap(minimum + step, loop.var.dtype))
        yield loop.body
        del frame.values[loop.var]


def _kernel(frame: Frame, loop: st.For) -> None:
    if frame.shortcut is None or not frame.shortcut(frame, loop):
        run_kernel(frame, loop, run)


def _buffer_store(frame: Frame, store: st.BufferStore) -> _Steps:
    value = frame.evaluate(store.value)
    memory = frame.memory_of(store.buffer)
    offset = memory.offset([frame.evaluate(index) for index in store.indices])
    memory.write(offset, value, frame)
    return ()


def _store(frame: Frame, store: st.Store) -> _Steps:
    value, index = (
        lanes_of(frame.evaluate(store.value)),
        lanes_of(frame.evaluate(store.index)),
    )
    mask = (True,) * len(index)
    if store.predicate is not None:
        mask = lanes_of(frame.evaluate(store.predicate))
    memory = frame.memory_of(store.buffer)
    for position, lane, wanted in zip(index, value, mask, strict=True):
        if wanted:
            memory.write(position, lane, frame)
    return ()


def _atomic_update(frame: Frame, update: st.AtomicUpdate) -> _Steps:
    """A single index counts elements from the start: at the nested level, too, of one dimension."""
    meaning, dtype = OPERATORS[ATOMIC[update.operator]], update.buffer.dtype
    value = frame.evaluate(update.value)
    indices = [frame.evaluate(index) for index in update.indices]
    memory = frame.memory_of(update.buffer)
    offset = indices[0] if len(indices) == 1 else memory.offset(indices)
    memory.update(
        offset, update.operator, lambda old: meaning(old, value, dtype), frame
    )
    return ()


def _allocate(frame: Frame, allocate: st.Allocate) -> _Steps:
    frame.memory[allocate.buffer] = _allocated(frame, allocate)
    yield allocate.body
    del frame.memory[allocate.buffer]


def _allocated(frame: Frame, allocate: st.Allocate) -> Memory:
    buffer = allocate.buffer
    if buffer.scope == "shared":
        return shared_memory(frame, allocate)
    if buffer.scope == "global" and frame.group is not None:
        raise InterpretError(f"{buffer.name} is global, but allocated within a kernel")
    return Memory(buffer, frame.shape_of(buffer))


def _if_then_else(frame: Frame, branch: st.IfThenElse) -> _Steps:
    if frame.evaluate(branch.condition):
        return (branch.then_case,)
    return () if branch.else_case is None else (branch.else_case,)


def _block(_frame: Frame, block: st.Block) -> _Steps:
    return block.stmts


def _let_stmt(frame: Frame, let: st.LetStmt) -> _Steps:
    frame.bind(let.var, frame.evaluate(let.value))
    yield let.body
    del frame.values[let.var]


def _parallel_region(frame: Frame, region: st.ParallelRegion) -> _Steps:
    """Each task sees what is captured, and nothing else."""
    for task in scrambled(frame.num_tasks):
        inner = Frame(frame.name, frame.group, num_tasks=frame.num_tasks)
        inner.libraries, inner.shortcut = frame.libraries, frame.shortcut
        inner.origins = frame.origins
        for capture in region.captures:
            if isinstance(capture, Buffer):
                inner.memory[capture] = frame.memory_of(capture)
            else:
                inner.values[capture] = frame.evaluate(capture)
        inner.values |= {region.task: task, region.num_tasks: frame.num_tasks}
        run_to_end(inner, region.body)
    return ()


def _pragma(_frame: Frame, pragma: st.Pragma) -> _Steps:
    return (pragma.body,)


def _prefetch(_frame: Frame, _prefetch: st.Prefetch) -> _Steps:
    return ()


def _launch_kernel(frame: Frame, launch: st.LaunchKernel) -> _Steps:
    launch_kernel(frame, launch, _kernel)
    return ()


_STATEMENTS: dict[type[Any], Callable[[Frame, Any], _Steps]] = {
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
