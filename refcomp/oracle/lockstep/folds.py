"""Loops that fold values into one element, such as sums: `T[i] = T[i] + A[i, k]` for all k.

No value depends on an earlier step, so lockstep evaluates the values of all steps at once. Then it
folds them in the order of the loop, which gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.expr import BinaryExpr, Expr
from refcomp.ir.rewrite import variables_in, walk
from refcomp.ir.stmt import PARALLEL, AtomicUpdate, BufferStore, For, Store
from refcomp.ir.structure import structurally_equal

_Access = BufferLoad | Load | BufferStore | Store | AtomicUpdate


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
        # The values and the place must not depend on what the loop stores.
        read = [*walk(operand)]
        for index in indices_of(kept):
            read += walk(index)
        if store.buffer not in {
            x.buffer for x in read if isinstance(x, BufferLoad | Load)
        }:
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
    one = indices_of(load)
    two = indices_of(store)
    return len(one) == len(two) and all(map(structurally_equal, one, two))


def indices_of(access: _Access) -> tuple[Expr, ...]:
    """Return the indices of an access; a flat one has a single index."""
    return (access.index,) if isinstance(access, Load | Store) else access.indices
