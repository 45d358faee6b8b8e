"""Fuse nodes that can share their loops into one `fused` node, which becomes one kernel.

Before:  y = conv2d(x, w, b); z = relu(y)
After:   z = fused(x, w, b)   with the subgraph   y = conv2d(x, w, b); z = relu(y)

An operator that works element by element, or that only moves elements, joins the kernel that makes
its input, unless another node reads that input too. Operators that only move elements also join
the operator with loops of its own that reads their result.

A node `narrow` stays alone, since a run has to read a count before it.

Ensures: a kernel has one output. Its expressions stay small: an input that is read twice is
computed twice.

Reference: T. Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning",
OSDI 2018, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph.builder import GraphBuilder, GraphRewriter
from refcomp.graph.graph import Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.narrow import NARROW
from refcomp.topi.operator import find_operator

_ALONE = (FUSED, NARROW)
_MAX_COST = 32  # nodes that one element of a group evaluates, repetitions included


def fuse_operators(graph: Graph) -> Graph:
    """Return `graph` with groups of nodes fused, or the same object if no two nodes fuse."""
    grouping = _Grouping(graph)
    for node in graph.nodes:
        grouping.add(node)
    groups = list(grouping.groups.values())
    if all(len(group) == 1 for group in groups):
        return graph
    rewriter = GraphRewriter(graph)
    for group in groups:
        if len(group) == 1:
            rewriter.copy(group[0])
        else:
            _add_fused(rewriter, group)
    return rewriter.finish_copy()


class _Grouping:
    """The groups of the nodes that were added so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers = graph.readers()
        # First node of a group -> its nodes, in the order of the last nodes.
        self.groups: dict[GraphNode, list[GraphNode]] = {}
        self.group_of: dict[Value, list[GraphNode]] = {}  # that computes the value
        # The nodes to evaluate for an element of the value, repetitions included.
        self.cost: dict[Value, int] = {}

    def add(self, node: GraphNode) -> None:
        """Add `node` to the group of the first input that it may join, or to a new group."""
        joined = next((v for v in node.reads if self._may_join(node, v)), None)
        group = [] if joined is None else self.group_of[joined]
        group.append(node)
        # Moved to the end: all inputs of `node` are computed by then.
        self.groups.pop(group[0], None)
        self.groups[group[0]] = group
        cost = 1 if joined is None else self._cost_after(node, joined)
        for value in node.outputs:
            self.group_of[value] = group
            self.cost[value] = cost

    def _may_join(self, node: GraphNode, value: Value) -> bool:
        """Return True if only `node` reads `value`, and both may share loops."""
        group = self.group_of.get(value)
        if group is None or node.operator in _ALONE or value in self.graph.outputs:
            return False
        if len(self.readers[value]) > 1 or self._cost_after(node, value) > _MAX_COST:
            return False
        for member in group:
            if member.operator in _ALONE or len(member.outputs) > 1:
                return False
        if find_operator(node.operator).pattern != "anchor":
            return True
        patterns = {find_operator(member.operator).pattern for member in group}
        return patterns == {"movement"}

    def _cost_after(self, node: GraphNode, joined: Value) -> int:
        """Return the cost of an element of `node` in the group of its input `joined`."""
        return 1 + self.cost[joined] * sum(value is joined for value in node.inputs)


def _add_fused(rewriter: GraphRewriter, group: Sequence[GraphNode]) -> None:
    made = {value for node in group for value in node.outputs}
    reads = (value for node in group for value in node.reads)
    given = dict.fromkeys(value for value in reads if value not in made)
    builder = GraphBuilder("_".join(node.operator for node in group))
    inside = {v: builder.input(v.name, v.dtype, v.shape) for v in given}
    for node in group:
        inputs = [None if value is None else inside[value] for value in node.inputs]
        names = [value.name for value in node.outputs]
        outputs = builder.nodes(node.operator, inputs, node.attributes, names)
        inside.update(zip(node.outputs, outputs, strict=True))
    results = group[-1].outputs
    subgraph = builder.finish([inside[value] for value in results])
    names = [value.name for value in results]
    fused = rewriter.nodes(FUSED, rewriter.mapped(list(given)), {}, names, [subgraph])
    rewriter.values.update(zip(results, fused, strict=True))
