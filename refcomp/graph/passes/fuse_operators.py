"""Fuse nodes that can share their loops into one `fused` node, which becomes one kernel.

Before:  y = conv2d(x, w, b); z = relu(y)
After:   z = fused(x, w, b)   with the subgraph   y = conv2d(x, w, b); z = relu(y)

An operator that works element by element, or that only moves elements, joins the kernel that makes
its input, unless another node reads that input too. Operators that only move elements also join
the operator with loops of its own that reads their result.

Ensures: a kernel has one output. Its expressions stay small: an input that is read twice is
computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph.builder import GraphBuilder, GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.operators import find_operator

_MAX_EXPRESSIONS = 32  # that an element of a kernel's result may take


def fuse_operators(graph: Graph) -> Graph:
    """Return `graph` with groups of nodes fused; the same object if no nodes can be."""
    groups = _group(graph)
    if all(len(group) == 1 for group in groups):
        return graph
    rewriter = GraphRewriter(graph)
    for group in groups:
        if len(group) == 1:
            rewriter.copy(group[0])
        else:
            _add_fused(rewriter, group)
    return rewriter.finish_copy()


def _group(graph: Graph) -> list[list[GraphNode]]:
    """Return the groups, each at the place of its last node."""
    grouping = _Grouping(graph)
    for node in graph.nodes:
        grouping.add(node)
    return grouping.groups


class _Grouping:
    """The groups of the nodes so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers = graph.readers()
        self.groups: list[list[GraphNode]] = []
        self.group_of: dict[Value, list[GraphNode]] = {}
        # How many expressions it takes to compute an element anew.
        self.cost: dict[Value, int] = {}

    def add(self, node: GraphNode) -> None:
        joined = next((v for v in node.reads if self._may_join(node, v)), None)
        group = [] if joined is None else self.group_of[joined]
        self.groups = [*(g for g in self.groups if g is not group), group]
        group.append(node)
        cost = 1 if joined is None else self._cost_after(node, joined)
        for value in node.outputs:
            self.group_of[value], self.cost[value] = group, cost

    def _may_join(self, node: GraphNode, value: Value) -> bool:
        """Return True if only `node` reads `value`, and both may share loops."""
        group = self.group_of.get(value)
        if group is None or node.operator == FUSED or value in self.graph.outputs:
            return False
        if (
            len(self.readers[value]) > 1
            or self._cost_after(node, value) > _MAX_EXPRESSIONS
        ):
            return False
        return _may_follow(node, group)

    def _cost_after(self, node: GraphNode, joined: Value) -> int:
        return 1 + self.cost[joined] * sum(value is joined for value in node.inputs)


def _may_follow(node: GraphNode, group: Sequence[GraphNode]) -> bool:
    if any(member.operator == FUSED or len(member.outputs) > 1 for member in group):
        return False
    if find_operator(node.operator).pattern != "anchor":
        return True
    return all(find_operator(member.operator).pattern == "movement" for member in group)


def _add_fused(rewriter: GraphRewriter, group: Sequence[GraphNode]) -> None:
    made = {value for node in group for value in node.outputs}
    given = dict.fromkeys(v for node in group for v in node.reads if v not in made)
    builder = GraphBuilder("_".join(node.operator for node in group))
    inside = {v: builder.input(v.name, v.dtype, v.shape) for v in given}
    for node in group:
        inputs = [None if value is None else inside[value] for value in node.inputs]
        outputs = builder.nodes(
            node.operator,
            inputs,
            node.attributes,
            [value.name for value in node.outputs],
        )
        inside.update(zip(node.outputs, outputs, strict=True))
    results = group[-1].outputs
    subgraph = builder.finish([inside[value] for value in results])
    names = [value.name for value in results]
    fused = rewriter.nodes(FUSED, rewriter.mapped(list(given)), {}, names, [subgraph])
    rewriter.values.update(zip(results, fused, strict=True))
