"""Copies of statements with fresh variables and buffers.

The loop IR binds each variable and buffer once on each path. So a pass that repeats a statement,
such as unrolling, needs copies. Parallel regions are not supported: they are outlined later.
"""

from collections.abc import Callable, Iterable, Mapping

from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import BinaryExpr, Expr, Let, Var
from refcomp.ir.node import Node, bound_by
from refcomp.ir.rewrite import (
    ACCESSES,
    Rewrite,
    children,
    map_children,
    memoised,
    rewriter,
    walk,
    with_changes,
    with_fields,
)
from refcomp.ir.stmt import Allocate, For, LetStmt, Stmt

_VAR_BINDERS = (For, Let, LetStmt)
_BINDERS = (*_VAR_BINDERS, Allocate)
_NAMING_BUFFERS = (*ACCESSES, Allocate)


def with_fresh_names(stmt: Stmt, replacements: Mapping[Var, Expr]) -> Stmt:
    """Return a copy of `stmt` that binds fresh names, and has its free variables replaced."""
    return Copier(stmt, replacements).copy(replacements)


class Copier:
    """Makes copies of a statement. They share the parts that are the same in all copies."""

    def __init__(
        self,
        stmt: Stmt,
        replaced: Iterable[Var],
        combine: Callable[[BinaryExpr], Expr] = lambda expr: expr,
    ) -> None:
        """Prepare copies of `stmt` in each of which the variables `replaced` are others.

        `combine` returns a simpler expression for a binary one that differs from copy to copy.
        """
        self._stmt = stmt
        self._combine = combine
        # The names that differ from copy to copy.
        self._names: set[Node] = set(replaced)
        for node in walk(stmt):
            if isinstance(node, _BINDERS):
                self._names.update(bound_by(node))
        self._differs = memoised(self._holds_name)

    def _holds_name(self, recurse: Callable[[Node], bool], node: Node) -> bool:
        """Return True if `node` binds or uses one of the names."""
        if isinstance(node, Var):
            return node in self._names
        if isinstance(node, ACCESSES) and node.buffer in self._names:
            return True
        return isinstance(node, _BINDERS) or any(map(recurse, children(node)))

    def copy(self, replacements: Mapping[Var, Expr]) -> Stmt:
        """Return a copy that binds fresh names, with `replacements` of the variables."""
        values = dict(replacements)
        buffers: dict[Buffer, Buffer] = {}

        def visit(recurse: Rewrite, node: Node) -> Node:
            if not self._differs(node):
                return node
            if isinstance(node, Var):
                return values.get(node, node)
            if isinstance(node, _VAR_BINDERS):
                var = values.setdefault(node.var, Var(node.var.name, node.var.dtype))
                return with_fields(map_children(node, recurse), var=var)
            if isinstance(node, Allocate):
                # map_children does not visit the shape, which may name replaced variables.
                shape = tuple(recurse(dim) for dim in node.buffer.shape)
                buffers.setdefault(node.buffer, with_fields(node.buffer, shape=shape))
            node = map_children(node, recurse)
            if isinstance(node, BinaryExpr):
                return self._combine(node)
            if isinstance(node, _NAMING_BUFFERS):
                buffer = buffers.get(node.buffer, node.buffer)
                return with_changes(node, buffer=buffer)
            return node

        return rewriter(visit)(self._stmt)
