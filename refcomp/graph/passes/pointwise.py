"""Nodes that compute each element from the elements at the same index. They work in any layout."""

from __future__ import annotations

from refcomp.graph.graph import GraphNode
from refcomp.graph.infer import FUSED
from refcomp.topi.operator import find_operator


def is_pointwise(node: GraphNode) -> bool:
    """Return True if a permutation of the axes of all operands permutes those of the result alike.

    The operands must have the shape of the result, or one element. An operator with an axis, such
    as `quantize`, reads vectors along it.
    """
    if node.operator == FUSED or not node.reads:
        return False
    operator = find_operator(node.operator)
    has_axis = any(spec.name == "axis" for spec in operator.attributes)
    return operator.pattern in ("elementwise", "broadcast") and not has_axis
