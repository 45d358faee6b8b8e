"""Copies of statements that bind variables and buffers of their own, as each is bound once.

For what writes a statement out several times, before parallel regions are outlined.
"""

from collections.abc import Mapping

from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, Let, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, with_fields
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    BufferStore,
    For,
    LetStmt,
    Prefetch,
    Stmt,
    Store,
)

_ACCESSES = (BufferLoad, Load, AddressOf, BufferStore, Store, AtomicUpdate, Prefetch)


def with_fresh_names(stmt: Stmt, replacements: Mapping[Var, Expr]) -> Stmt:
    """`stmt` with free variables replaced, and with variables and buffers of its own."""
    values = dict(replacements)
    buffers: dict[Buffer, Buffer] = {}

    def visit(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, Var):
            return values.get(node, node)
        if isinstance(node, For | Let | LetStmt):
            var = values.setdefault(node.var, Var(node.var.name, node.var.dtype))
            return with_fields(map_children(node, recurse), var=var)
        if isinstance(node, Allocate):
            shape = tuple(recurse(dim) for dim in node.buffer.shape)
            buffers.setdefault(node.buffer, with_fields(node.buffer, shape=shape))
        node = map_children(node, recurse)
        if isinstance(node, (*_ACCESSES, Allocate)):
            buffer = buffers.get(node.buffer, node.buffer)
            return node if buffer is node.buffer else with_fields(node, buffer=buffer)
        return node

    return rewriter(visit)(stmt)
