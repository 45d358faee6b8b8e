"""Puts the expressions of inlined stages in place of the reads of their tensors.

Every TensorRead of an operation in `inlined` becomes that operation's expression at the indices
read, again and again until none is left. The computation itself is not changed: what comes back is
a new expression.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from refcomp.ir.expr import Expr
from refcomp.ir.rewrite import map_children, memoised, substitute
from refcomp.te.operation import Operation
from refcomp.te.tensor import TensorRead


def inline_reads(body: Expr, inlined: Collection[Operation]) -> Expr:
    """`body` without reads of the operations in `inlined`; itself when there are none."""
    if not inlined:
        return body

    done: dict[tuple[Any, ...], Expr] = {}

    def visit(recurse: Callable[[Any], Any], node: Any) -> Any:
        node = map_children(node, recurse)
        if not (isinstance(node, TensorRead) and node.tensor.op in inlined):
            return node
        # Reads of one element share one expression: a chain of t[i] + t[i] must not double.
        key = (node.tensor, *map(id, node.indices))
        if key not in done:
            op = node.tensor.op
            at = dict(zip((a.var for a in op.axis), node.indices, strict=True))
            done[key] = substitute(recurse(op.body[node.tensor.value_index]), at)
        return done[key]

    result: Expr = memoised(visit)(body)
    return result
