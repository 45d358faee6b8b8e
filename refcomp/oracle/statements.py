"""What each statement of the loop IR does: one function per class.

What may happen in any order (parallel loops, the tasks of a region) happens in a fixed scrambled
one, so that a program that depends on the order gives another result than it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Var
from refcomp.ir.printer import print_stmt
from refcomp.oracle.expressions import Frame, Value, lanes_of, mask_of
from refcomp.oracle.memory import InterpretError, Memory
from refcomp.oracle.scalars import wrap


def run(frame: Frame, stmt: st.Stmt) -> None:
    """Does what `stmt` says; an InterpretError tells the innermost statement and its variables."""
    try:
        _STATEMENTS[type(stmt)](frame, stmt)
    except InterpretError as error:
        if error.where is None:
            error.where = _describe(stmt, frame.values)
        raise


def _describe(stmt: st.Stmt, values: Mapping[Var, Value]) -> str:
    line = print_stmt(stmt).partition("\n")[0]
    bound = ", ".join(f"{var.name} = {value}" for var, value in values.items())
    origin = f" ({stmt.origin})" if stmt.origin else ""
    return f"{line}{origin}" + (f" with {bound}" if bound else "")


def scrambled(count: int) -> list[int]:
    """0, ..., count - 1 in an order that is neither ascending nor descending (from three on)."""
    return [*range(count)[1::2][::-1], *range(count)[::2]]


def _for(frame: Frame, loop: st.For) -> None:
    minimum, extent = frame.evaluate(loop.minimum), frame.evaluate(loop.extent)
    steps: Iterable[int] = range(extent)
    if loop.kind == st.PARALLEL:
        steps = scrambled(extent)
    for step in steps:
        var = wrap(minimum + step, loop.var.dtype)
        frame.bind(loop.var, var, lambda: run(frame, loop.body))


def _buffer_store(frame: Frame, store: st.BufferStore) -> None:
    value = frame.evaluate(store.value)
    memory = frame.memory_of(store.buffer)
    memory.write(memory.offset([frame.evaluate(index) for index in store.indices]), value)


def _store(frame: Frame, store: st.Store) -> None:
    value, index = lanes_of(frame.evaluate(store.value)), lanes_of(frame.evaluate(store.index))
    mask = mask_of(frame.evaluate(store.predicate) if store.predicate is not None else None, index)
    memory = frame.memory_of(store.buffer)
    for position, lane, wanted in zip(index, value, mask, strict=True):
        if wanted:
            memory.write(position, lane)


def _allocate(frame: Frame, allocate: st.Allocate) -> None:
    buffer = allocate.buffer
    frame.memory[buffer] = Memory(buffer, frame.shape_of(buffer))
    run(frame, allocate.body)
    del frame.memory[buffer]


def _if_then_else(frame: Frame, branch: st.IfThenElse) -> None:
    if frame.evaluate(branch.condition):
        run(frame, branch.then_case)
    elif branch.else_case is not None:
        run(frame, branch.else_case)


def _block(frame: Frame, block: st.Block) -> None:
    for stmt in block.stmts:
        run(frame, stmt)


def _let_stmt(frame: Frame, let: st.LetStmt) -> None:
    frame.bind(let.var, frame.evaluate(let.value), lambda: run(frame, let.body))


def _parallel_region(frame: Frame, region: st.ParallelRegion) -> None:
    """Each task sees what is captured, and nothing else."""
    for task in scrambled(frame.num_tasks):
        inner = Frame(frame.num_tasks)
        for capture in region.captures:
            if isinstance(capture, Buffer):
                inner.memory[capture] = frame.memory_of(capture)
            else:
                inner.values[capture] = frame.evaluate(capture)
        inner.values |= {region.task: task, region.num_tasks: frame.num_tasks}
        run(inner, region.body)


_STATEMENTS: dict[type[Any], Callable[[Frame, Any], None]] = {
    st.For: _for,
    st.BufferStore: _buffer_store,
    st.Store: _store,
    st.Allocate: _allocate,
    st.IfThenElse: _if_then_else,
    st.Block: _block,
    st.LetStmt: _let_stmt,
    st.ParallelRegion: _parallel_region,
}
