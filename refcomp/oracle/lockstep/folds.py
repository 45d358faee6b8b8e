"""Loops that fold values into one element, such as sums: `T[i] = T[i] + A[i, k]` for all k.

No value depends on an earlier step. So the values of all steps are evaluated at once, for each
thread and each step in a row of its own. Then they are folded in the order of the loop, which gives
the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.expr import BinaryExpr, Expr
from refcomp.ir.node import Node
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import PARALLEL, BufferStore, For, Store
from refcomp.ir.structure import structurally_equal
from refcomp.oracle.lockstep.expressions import evaluate
from refcomp.oracle.lockstep.threads import Threads
from refcomp.oracle.tensors.arrays import OPERATORS, Array

MAX_FOLD_THREADS = 1 << 10  # with more threads, single steps are as fast
_MAX_VALUES = 1 << 18  # kept at once


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A loop whose every step stores `value`, made of `kept` and `operand`, where `kept` lies."""

    value: BinaryExpr
    kept: BufferLoad | Load
    operand: Expr


def fold_of(loop: For) -> Fold | None:
    """Return the fold that `loop` is; None if it is anything else."""
    store = loop.body
    if not isinstance(store, BufferStore | Store) or loop.kind == PARALLEL:
        return None
    value = store.value
    if not isinstance(value, BinaryExpr) or value.dtype.lanes > 1:
        return None
    for kept, operand in ((value.a, value.b), (value.b, value.a)):
        if not isinstance(kept, BufferLoad | Load) or not _is_same_place(store, kept):
            continue
        if loop.var in set(variables_in(kept)):
            continue
        if not any(_reads(part, store) for part in (*_indices(kept), operand)):
            return Fold(value, kept, operand)
    return None


def _is_same_place(store: BufferStore | Store, load: BufferLoad | Load) -> bool:
    """Return True if `load` always reads the element that `store` writes."""
    if load.buffer is not store.buffer:
        return False
    if isinstance(load, Load) != isinstance(store, Store):
        return False
    if isinstance(store, Store) and store.predicate is not None:
        return False
    if isinstance(load, Load) and load.predicate is not None:
        return False
    pairs = zip(_indices(load), _indices(store), strict=True)
    return all(structurally_equal(one, two) for one, two in pairs)


def _indices(access: BufferLoad | Load | BufferStore | Store) -> tuple[Expr, ...]:
    return (access.index,) if isinstance(access, Load | Store) else access.indices


def _reads(root: Node, store: BufferStore | Store) -> bool:
    loads = (node for node in walk(root) if isinstance(node, BufferLoad | Load))
    return any(load.buffer is store.buffer for load in loads)


def run_fold(
    threads: Threads, loop: For, fold: Fold, minimum: Array, extent: int
) -> None:
    """Run `extent` steps of `loop` from `minimum` on, at least one, for all `threads`."""
    elements = threads.memory_of(fold.kept.buffer)
    indices = [evaluate(threads, index) for index in _indices(fold.kept)]
    offset = elements.offset(indices, by_dimension=isinstance(fold.kept, BufferLoad))
    kept = elements.read(offset, threads.column)
    meaning = OPERATORS[type(fold.value)]
    is_left = fold.operand is fold.value.b  # whether `kept` is the left operand
    per_batch = max(1, _MAX_VALUES // len(threads.ids))
    for first in range(0, extent, per_batch):
        steps = np.arange(first, min(extent, first + per_batch), dtype=minimum.dtype)
        values = _values(threads, loop, fold.operand, minimum, steps)
        for step in range(len(steps)):
            value = values[:, step : step + 1]
            kept = meaning(kept, value) if is_left else meaning(value, kept)
    elements.write(offset, kept, threads.column, threads)


def _values(
    threads: Threads, loop: For, operand: Expr, minimum: Array, steps: Array
) -> Array:
    """Return the values of `operand`: [threads, steps]."""
    count = len(threads.ids)
    expanded = threads.select(np.repeat(np.arange(count), len(steps)))
    column = np.tile(steps, count)[:, None]
    expanded.bind(loop.var, expanded.rows(minimum) + column)
    values = evaluate(expanded, operand)
    return np.broadcast_to(values, column.shape).reshape(count, len(steps))
