"""What each statement does for threads in step: `refcomp.oracle.interpreter.statements` by
numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.ir import stmt as st
from refcomp.ir.buffer import Buffer
from refcomp.oracle.interpreter.kernels import scrambled
from refcomp.oracle.interpreter.scalars import ATOMIC
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.expressions import evaluate
from refcomp.oracle.lockstep.folds import MOST_FOLDING, Fold, fold_of, run_fold
from refcomp.oracle.lockstep.groups import Doubt
from refcomp.oracle.lockstep.threads import Threads
from refcomp.oracle.tensors.arrays import OPERATORS


def run(threads: Threads, stmt: st.Stmt) -> None:
    """Does what `stmt` says for all `threads`."""
    threads.crowd.stmt = stmt
    STATEMENTS[type(stmt)](threads, stmt)


def _for(threads: Threads, loop: st.For) -> None:
    if loop.origin is not None:
        threads.crowd.origins[loop.var] = loop.origin
    minimum, extent = evaluate(threads, loop.minimum), evaluate(threads, loop.extent)
    most, least = int(extent.max()), int(extent.min())
    if loop.kind == st.PARALLEL and most != least:
        raise Doubt  # the order is another one for each thread
    fold = _fold_of(threads, loop) if most == least > 0 else None
    if fold is not None:
        threads.crowd.stmt = loop.body
        run_fold(threads, loop, fold, minimum, most)
        return
    for step in scrambled(most) if loop.kind == st.PARALLEL else range(most):
        inside, value = threads, minimum + step
        if step >= least:
            inside = threads.narrow((step < extent)[:, 0])
            value = inside.rows(value)
        inside.bind(loop.var, value)
        run(inside, loop.body)
        del inside.values[loop.var]


def _fold_of(threads: Threads, loop: st.For) -> Fold | None:
    folds = threads.crowd.folds
    if loop not in folds:
        folds[loop] = fold_of(loop)
    fold = folds[loop]
    if fold is None or len(threads.ids) > MOST_FOLDING:
        return None
    # Who watches an element wants to know each step.
    return None if threads.memory_of(fold.kept.buffer).is_watched else fold


def _buffer_store(threads: Threads, store: st.BufferStore) -> None:
    value = evaluate(threads, store.value)
    elements = threads.memory_of(store.buffer)
    offset = elements.offset([evaluate(threads, index) for index in store.indices])
    elements.write(offset, value, threads.column, threads)


def _store(threads: Threads, store: st.Store) -> None:
    value, index = evaluate(threads, store.value), evaluate(threads, store.index)
    elements, ids = threads.memory_of(store.buffer), threads.column
    if store.predicate is not None:
        wanted = evaluate(threads, store.predicate)
        index, value, ids, wanted = np.broadcast_arrays(index, value, ids, wanted)
        index, value, ids = index[wanted], value[wanted], ids[wanted]
    elements.write(elements.offset([index], by_dimension=False), value, ids, threads)


def _atomic_update(threads: Threads, update: st.AtomicUpdate) -> None:
    value = evaluate(threads, update.value)
    indices = [evaluate(threads, index) for index in update.indices]
    elements = threads.memory_of(update.buffer)
    offset = elements.offset(indices, by_dimension=len(indices) > 1)
    elements.update(
        update.operator, OPERATORS[ATOMIC[update.operator]], offset, value, threads
    )


def _allocate(threads: Threads, allocate: st.Allocate) -> None:
    crowd, buffer = threads.crowd, allocate.buffer
    shape = _shape_of(threads, buffer)
    elements = crowd.allocated.get(allocate)
    if elements is None or (elements.shape != shape and buffer.scope != "shared"):
        elements = crowd.allocated[allocate] = Elements.allocated(buffer, shape, crowd)
    if elements.shape != shape or (
        buffer.scope != "local" and crowd.is_kernel is (buffer.scope == "global")
    ):
        raise Doubt
    elements.begin_life(threads.ids)
    crowd.memory[buffer] = elements
    run(threads, allocate.body)
    del crowd.memory[buffer]


def _shape_of(threads: Threads, buffer: Buffer) -> tuple[int, ...]:
    dims = [evaluate(threads, dim) for dim in buffer.shape]
    if any((dim != dim[0]).any() for dim in dims):
        raise Doubt  # each thread has another shape
    return tuple(max(0, int(dim[0, 0])) for dim in dims)


def _if_then_else(threads: Threads, branch: st.IfThenElse) -> None:
    condition = evaluate(threads, branch.condition)
    if condition.all():
        run(threads, branch.then_case)
        return
    if condition.any():
        run(threads.narrow(condition[:, 0]), branch.then_case)
    if branch.else_case is not None:
        others = threads.narrow(~condition[:, 0]) if condition.any() else threads
        run(others, branch.else_case)


def _block(threads: Threads, block: st.Block) -> None:
    for stmt in block.stmts:
        run(threads, stmt)


def _let_stmt(threads: Threads, let: st.LetStmt) -> None:
    threads.bind(let.var, evaluate(threads, let.value))
    run(threads, let.body)
    del threads.values[let.var]


def _barrier(threads: Threads, _barrier: st.Barrier) -> None:
    threads.crowd.pass_barrier(threads.ids)


def _pragma(threads: Threads, pragma: st.Pragma) -> None:
    run(threads, pragma.body)


def _prefetch(_threads: Threads, _prefetch: st.Prefetch) -> None:
    return


STATEMENTS: dict[type[Any], Callable[[Threads, Any], None]] = {
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
