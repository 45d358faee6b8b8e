"""Copies of statements with fresh variables and buffers.

The loop IR binds each variable and buffer once on each path. So a pass that repeats a statement,
such as unrolling, needs copies. Parallel regions are not supported: they are outlined later.
"""

from collections.abc import Mapping

from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Let, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    ACCESSES,
    Rewrite,
    map_children,
    rewriter,
    with_changes,
    with_fields,
)
from refcomp.ir.stmt import Allocate, For, LetStmt, Stmt

_BINDERS = (For, Let, LetStmt)
_NAMING_BUFFERS = (*ACCESSES, Allocate)


def with_fresh_names(stmt: Stmt, replacements: Mapping[Var, Expr]) -> Stmt:
    """Return a copy of `stmt` that binds fresh names, and has its free variables replaced."""
    values = dict(replacements)
    buffers: dict[Buffer, Buffer] = {}

    def visit(recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, Var):
            return values.get(node, node)
        if isinstance(node, _BINDERS):
            var = values.setdefault(node.var, Var(node.var.name, node.var.dtype))
            return with_fields(map_children(node, recurse), var=var)
        if isinstance(node, Allocate):
            # map_children does not visit the shape, which may name replaced variables.
            shape = tuple(recurse(dim) for dim in node.buffer.shape)
            buffers.setdefault(node.buffer, with_fields(node.buffer, shape=shape))
        node = map_children(node, recurse)
        if isinstance(node, _NAMING_BUFFERS):
            buffer = buffers.get(node.buffer, node.buffer)
            return with_changes(node, buffer=buffer)
        return node

    return rewriter(visit)(stmt)
