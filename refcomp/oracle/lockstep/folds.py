"""Loops that fold values into one element, such as sums: `T[i] = T[i] + A[i, k]` for all k.

No value depends on a step before, so all of them are evaluated at once, a thread and an iteration
side by side. Then they are folded one after the other, in the order of the loop: the same bits.
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

MOST_FOLDING = 1 << 10  # threads: with more, each step is at once enough
_MOST_VALUES = 1 << 18  # at once, as all of them are kept


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Each iteration makes `value`, of the element at `kept` and of `operand`, that element."""

    value: BinaryExpr
    kept: BufferLoad | Load
    operand: Expr


def fold_of(loop: For) -> Fold | None:
    """What `loop` folds; None where it does anything else."""
    store = loop.body
    if not isinstance(store, BufferStore | Store) or loop.kind == PARALLEL:
        return None
    value = store.value
    if not isinstance(value, BinaryExpr) or value.dtype.lanes > 1:
        return None
    for kept, operand in ((value.a, value.b), (value.b, value.a)):
        if _is_place(store, kept) and loop.var not in {*variables_in(kept)}:
            assert isinstance(kept, BufferLoad | Load)
            index_and_operand = (*_indices(kept), operand)
            if not any(_reads(part, store) for part in index_and_operand):
                return Fold(value, kept, operand)
    return None


def _is_place(store: BufferStore | Store, kept: Expr) -> bool:
    """Whether `kept` is the element that `store` writes, at all times."""
    if not isinstance(kept, BufferLoad | Load) or kept.buffer is not store.buffer:
        return False
    if isinstance(store, Store) and store.predicate is not None:
        return False
    if isinstance(kept, Load) and kept.predicate is not None:
        return False
    pairs = zip(_indices(kept), _indices(store), strict=True)
    return isinstance(kept, Load) == isinstance(store, Store) and all(
        structurally_equal(one, two) for one, two in pairs
    )


def _indices(access: BufferLoad | Load | BufferStore | Store) -> tuple[Expr, ...]:
    return (access.index,) if isinstance(access, Load | Store) else access.indices


def _reads(root: Node, store: BufferStore | Store) -> bool:
    loads = (node for node in walk(root) if isinstance(node, BufferLoad | Load))
    return any(load.buffer is store.buffer for load in loads)


def run_fold(
    threads: Threads, loop: For, fold: Fold, minimum: Array, extent: int
) -> None:
    """Runs `extent` iterations of `loop` from `minimum` on, at least one, for all `threads`."""
    elements = threads.memory_of(fold.kept.buffer)
    indices = [evaluate(threads, index) for index in _indices(fold.kept)]
    offset = elements.offset(indices, by_dimension=isinstance(fold.kept, BufferLoad))
    kept, meaning = elements.read(offset, threads.column), OPERATORS[type(fold.value)]
    is_left = fold.operand is fold.value.b
    per_batch = max(1, _MOST_VALUES // len(threads.ids))
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
    """The operand's values, a row for each thread and a column for each step."""
    count = len(threads.ids)
    side_by_side = threads.narrow(np.repeat(np.arange(count), len(steps)))
    places = np.tile(steps, count)[:, None]
    side_by_side.bind(loop.var, side_by_side.rows(minimum) + places)
    values = evaluate(side_by_side, operand)
    return np.broadcast_to(values, places.shape).reshape(count, len(steps))
