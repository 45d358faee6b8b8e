"""Replaces reads of inlined stages by the expressions of these stages.

A read of an output of an inlined operation becomes the operation's expression at the indices
of the read. This repeats until no such read is left.
The operations themselves are not changed.
"""

from __future__ import annotations

from collections.abc import Collection

from refcomp.ir.expr import Expr
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, substitute
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import TensorRead


def inline_reads(body: Expr, inlined: Collection[ComputeOp]) -> Expr:
    """Return `body` without reads of outputs of `inlined`; `body` itself if it has none."""
    makers = {tensor: op for op in inlined for tensor in op.outputs}
    if not makers:
        return body

    done: dict[tuple[object, ...], Expr] = {}

    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if not isinstance(node, TensorRead) or node.tensor not in makers:
            return node
        op = makers[node.tensor]
        # Reads of one element share one expression. Otherwise, a chain of t[i] + t[i]
        # would double the expression at each step.
        key = (node.tensor, *map(id, node.indices))
        if key not in done:
            axis_vars = [axis.var for axis in op.axis]
            at = dict(zip(axis_vars, node.indices, strict=True))
            value = recurse(op.body[node.tensor.value_index])
            done[key] = substitute(value, at)
        return done[key]

    inline = rewriter(visit)
    return inline(body)
