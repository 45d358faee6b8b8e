"""Find the nodes that a pass may change, and those that compute each element from one index.

A pass sees tensors of known rank. A node that runs subgraphs, that reads or makes other kinds of
values, or whose attributes only a run determines, stays as it is.
"""

from __future__ import annotations

from refcomp.graph.control.operators import find_control
from refcomp.graph.graph import GraphNode
from refcomp.graph.infer import FUSED
from refcomp.graph.narrow import NARROW
from refcomp.topi.operator import Pattern, find_operator


def is_plain(node: GraphNode) -> bool:
    """Return True for an application of a registered operator to tensors of known rank."""
    if node.operator in (FUSED, NARROW) or node.late:
        return False
    if find_control(node.operator) is not None:
        return False
    return all(value.is_tensor for value in (*node.reads, *node.outputs))


def pattern_of(node: GraphNode) -> Pattern:
    """Return the pattern of a plain node's operator; `opaque` for any other node."""
    return find_operator(node.operator).pattern if is_plain(node) else "opaque"


def is_pointwise(node: GraphNode) -> bool:
    """Return True if a permutation of the axes of all operands permutes those of the result alike.

    The operands must have the shape of the result, or one element. An operator with an axis, such
    as `quantize`, reads vectors along it.
    """
    if not node.reads or pattern_of(node) not in ("elementwise", "broadcast"):
        return False
    operator = find_operator(node.operator)
    return all(spec.name != "axis" for spec in operator.attributes)
