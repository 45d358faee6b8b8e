"""The effect of each statement on threads in lockstep.

The counterpart of `refcomp.oracle.interpreter.statements`, by numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refcomp.ir import stmt as st
from refcomp.ir.buffer import GLOBAL, LOCAL, SHARED, BufferLoad
from refcomp.ir.expr import Expr
from refcomp.oracle.interpreter.kernels import scrambled
from refcomp.oracle.interpreter.scalars import ATOMIC
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.expressions import evaluate
from refcomp.oracle.lockstep.folds import Fold, indices_of
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.lockstep.threads import Threads
from refcomp.oracle.tensors.arrays import OPERATORS, Array

_MAX_FOLD_THREADS = 1 << 10  # with more threads, single steps are as fast
_MAX_VALUES = 1 << 18  # of a fold, kept at once


def run(threads: Threads, stmt: st.Stmt) -> None:
    """Run `stmt` for all `threads`."""
    threads.batch.stmt = stmt
    STATEMENTS[type(stmt)](threads, stmt)


def _for(threads: Threads, loop: st.For) -> None:
    if loop.origin is not None:
        threads.batch.origins[loop.var] = loop.origin
    minimum = evaluate(threads, loop.minimum)
    extent = evaluate(threads, loop.extent)
    longest = int(extent.max())
    shortest = int(extent.min())
    if loop.kind == st.PARALLEL and longest != shortest:
        raise BailOut  # the scrambled order differs from thread to thread
    fold = threads.batch.folds.get(loop)
    if (
        fold is not None
        and longest == shortest > 0
        and len(threads.ids) <= _MAX_FOLD_THREADS
        and not threads.memory_of(fold.kept.buffer).is_watched  # that records each step
    ):
        threads.batch.stmt = loop.body
        _run_fold(threads, loop, fold, minimum, longest)
        return
    steps: Sequence[int] = range(longest)
    if loop.kind == st.PARALLEL:
        steps = scrambled(longest)
    for step in steps:
        inside = threads
        value = minimum + step
        if step >= shortest:
            inside = threads.select((step < extent)[:, 0])
            value = inside.rows(value)
        inside.bind(loop.var, value)
        run(inside, loop.body)
        del inside.values[loop.var]


def _run_fold(
    threads: Threads, loop: st.For, fold: Fold, minimum: Array, extent: int
) -> None:
    """Run `extent` steps of `loop` from `minimum` on, at least one, for all `threads`."""
    elements = threads.memory_of(fold.kept.buffer)
    indices = [evaluate(threads, index) for index in indices_of(fold.kept)]
    is_nested = isinstance(fold.kept, BufferLoad)
    offset = elements.offset(indices, by_dimension=is_nested)
    kept = elements.read(offset, threads.column)
    meaning = OPERATORS[type(fold.value)]
    is_left = fold.operand is fold.value.b  # whether `kept` is the left operand
    per_batch = max(1, _MAX_VALUES // len(threads.ids))
    for first in range(0, extent, per_batch):
        steps = np.arange(first, min(extent, first + per_batch), dtype=minimum.dtype)
        values = _values_of_fold(threads, loop, fold.operand, minimum, steps)
        for step in range(len(steps)):
            value = values[:, step : step + 1]
            kept = meaning(kept, value) if is_left else meaning(value, kept)
    elements.write(offset, kept, threads.column, threads)


def _values_of_fold(
    threads: Threads, loop: st.For, operand: Expr, minimum: Array, steps: Array
) -> Array:
    """Return the values of `operand`: [threads, steps]."""
    count = len(threads.ids)
    expanded = threads.select(np.repeat(np.arange(count), len(steps)))
    column = np.tile(steps, count)[:, None]
    expanded.bind(loop.var, expanded.rows(minimum) + column)
    values = evaluate(expanded, operand)
    return np.broadcast_to(values, column.shape).reshape(count, len(steps))


def _buffer_store(threads: Threads, store: st.BufferStore) -> None:
    value = evaluate(threads, store.value)
    elements = threads.memory_of(store.buffer)
    offset = elements.offset([evaluate(threads, index) for index in store.indices])
    elements.write(offset, value, threads.column, threads)


def _store(threads: Threads, store: st.Store) -> None:
    value = evaluate(threads, store.value)
    index = evaluate(threads, store.index)
    ids = threads.column
    elements = threads.memory_of(store.buffer)
    if store.predicate is not None:
        wanted = evaluate(threads, store.predicate)
        index, value, ids, wanted = np.broadcast_arrays(index, value, ids, wanted)
        index = index[wanted]
        value = value[wanted]
        ids = ids[wanted]
    offset = elements.offset([index], by_dimension=False)
    elements.write(offset, value, ids, threads)


def _atomic_update(threads: Threads, update: st.AtomicUpdate) -> None:
    value = evaluate(threads, update.value)
    indices = [evaluate(threads, index) for index in update.indices]
    elements = threads.memory_of(update.buffer)
    offset = elements.offset(indices, by_dimension=len(indices) > 1)
    meaning = OPERATORS[ATOMIC[update.operator]]
    elements.update(update.operator, meaning, offset, value=value, threads=threads)


def _allocate(threads: Threads, allocate: st.Allocate) -> None:
    batch = threads.batch
    buffer = allocate.buffer
    dims = [evaluate(threads, dim) for dim in buffer.shape]
    if any((dim != dim[0]).any() for dim in dims):
        raise BailOut  # the shape differs from thread to thread
    shape = tuple(max(0, int(dim[0, 0])) for dim in dims)
    elements = batch.allocated.get(allocate)
    if elements is None or (elements.shape != shape and buffer.scope != SHARED):
        elements = Elements.allocated(buffer, shape, batch)
        batch.allocated[allocate] = elements
    scopes = (LOCAL, SHARED if batch.is_kernel else GLOBAL)
    if elements.shape != shape or buffer.scope not in scopes:
        raise BailOut
    elements.begin_lifetime(threads.ids)
    batch.memory[buffer] = elements
    run(threads, allocate.body)
    del batch.memory[buffer]


def _if_then_else(threads: Threads, branch: st.IfThenElse) -> None:
    condition = evaluate(threads, branch.condition)
    if condition.all():
        run(threads, branch.then_case)
        return
    others = threads
    if condition.any():
        taken = condition[:, 0]
        run(threads.select(taken), branch.then_case)
        others = threads.select(~taken)
    if branch.else_case is not None:
        run(others, branch.else_case)


def _block(threads: Threads, block: st.Block) -> None:
    for stmt in block.stmts:
        run(threads, stmt)


def _let_stmt(threads: Threads, let: st.LetStmt) -> None:
    threads.bind(let.var, evaluate(threads, let.value))
    run(threads, let.body)
    del threads.values[let.var]


def _barrier(threads: Threads, _barrier: st.Barrier) -> None:
    threads.batch.pass_barrier(threads.ids)


def _pragma(threads: Threads, pragma: st.Pragma) -> None:
    run(threads, pragma.body)


def _prefetch(_threads: Threads, _prefetch: st.Prefetch) -> None:
    return


STATEMENTS: dict[type[st.Stmt], Callable[[Threads, Any], None]] = {
    st.For: _for,
    st.BufferStore: _buffer_store,
    st.Store: _store,
    st.AtomicUpdate: _atomic_update,
    st.Allocate: _allocate,
    st.IfThenElse: _if_then_else,
    st.Block: _block,
    st.LetStmt: _let_stmt,
    st.Barrier: _barrier,
    st.Pragma: _pragma,
    st.Prefetch: _prefetch,
}
