"""The open scopes of an ir_builder, and the canonical form of the kernels in its statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from refcomp.ir.kernels import NEST_ORDER, is_bound, kernel_nest
from refcomp.ir.rewrite import map_children, with_fields
from refcomp.ir.stmt import For, Stmt, block

Wrap = Callable[[Stmt], Stmt]  # puts a statement around those of a scope


@dataclass(slots=True)
class OpenScope:
    """A scope of a builder, which takes further statements."""

    stmts: list[Stmt] = field(default_factory=list)
    # A statement around the rest of the scope, such as an allocation, with the number of statements
    # before it.
    wraps: list[tuple[int, Wrap]] = field(default_factory=list)
    last_if: int = -1  # index of the IfThenElse that an else_scope may follow; -1: none

    def close(self) -> Stmt:
        """Return the statements as one."""
        stmts = list(self.stmts)
        # The last one first: it lies inside of the others.
        for number, wrap in reversed(self.wraps):
            stmts[number:] = [wrap(block(stmts[number:]))]
        return block(stmts)


def with_kernels(stmt: Stmt) -> Stmt:
    """Return `stmt` with the bound loops of each nest in canonical order."""
    if not isinstance(stmt, For) or not is_bound(stmt):
        return map_children(stmt, with_kernels, only=Stmt)
    nest = kernel_nest(stmt)
    body = with_kernels(nest.body)
    innermost_first = sorted(
        nest.loops, key=lambda loop: NEST_ORDER.index(loop.kind), reverse=True
    )
    for loop in innermost_first:
        body = with_fields(loop, body=body)
    return body
