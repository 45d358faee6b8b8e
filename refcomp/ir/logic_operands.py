"""A search for nodes inside of `and` and `or`, which always evaluate both sides.

So a condition on one side does not guard the other: `i < n and A[i] > 0` reads A[i] in each
iteration.
"""

from __future__ import annotations

from collections.abc import Iterable

from refcomp.ir.expr import And, Or
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children

NEST_CONDITIONS = (
    "nest two conditions, as both sides of and/or are evaluated: "
    "if_then_else(i < n, if_then_else(A[i] > 0, x, y), y)"
)


def logic_operands(nodes: Iterable[Node]) -> set[int]:
    """Return the ids of all nodes that are below an `and` or an `or` in `nodes`."""
    below: set[int] = set()
    seen: set[int] = set()
    stack = [(node, False) for node in nodes]
    while stack:
        node, is_operand = stack.pop()
        # A shared node may stand inside and outside of a condition, so it is visited for each.
        visited = below if is_operand else seen
        if id(node) in visited:
            continue
        visited.add(id(node))
        inside = is_operand or isinstance(node, And | Or)
        stack += [(child, inside) for child in children(node)]
    return below
