"""Simultaneous stores: the values may read elements that the stores overwrite."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.ir.expr import Var
from refcomp.ir.rewrite import with_changes
from refcomp.ir.stmt import BufferStore, LetStmt, Stmt, block


def store_together(stores: Sequence[BufferStore]) -> Stmt:
    """Return a statement that evaluates the values of all `stores`, then stores them."""
    if len(stores) == 1:
        return stores[0]
    lets: list[tuple[BufferStore, Var]] = []
    named: list[Stmt] = []
    for store in stores:
        name = Var(f"{store.buffer.name}.next", store.value.dtype)
        lets.append((store, name))
        named.append(with_changes(store, value=name))
    stmt = block(named)
    # Each let has the origin of its own store.
    for store, name in reversed(lets):
        stmt = LetStmt(name, store.value, stmt, store.origin)
    return stmt
