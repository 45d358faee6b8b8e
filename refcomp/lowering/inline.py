"""Puts the expressions of inlined stages in place of the reads of their tensors.

Every TensorRead of a tensor that an operation in `inlined` makes becomes that operation's
expression at the indices read, again and again until none is left. The computation itself is not
changed: what comes back is a new expression.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from refcomp.ir.expr import Expr
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, substitute
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import TensorRead


def inline_reads(body: Expr, inlined: Collection[ComputeOp]) -> Expr:
    """`body` without reads of what the operations in `inlined` make; itself when there are none."""
    makers = {tensor: op for op in inlined for tensor in op.outputs}
    if not makers:
        return body

    done: dict[tuple[Any, ...], Expr] = {}

    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if not isinstance(node, TensorRead) or node.tensor not in makers:
            return node
        op = makers[node.tensor]
        # Reads of one element share one expression: a chain of t[i] + t[i] must not double.
        key = (node.tensor, *map(id, node.indices))
        if key not in done:
            at = dict(zip((a.var for a in op.axis), node.indices, strict=True))
            done[key] = substitute(recurse(op.body[node.tensor.value_index]), at)
        return done[key]

    return rewriter(visit)(body)
