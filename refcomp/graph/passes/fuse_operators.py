"""Nodes that can share their loops become one `fused` node, which is one kernel.

Before:  y = conv2d(x, w, b); z = relu(y)
After:   z = fused(x, w, b)   with the subgraph   y = conv2d(x, w, b); z = relu(y)

An operator that works element by element, or only moves elements, joins the kernel that makes its
input, if nothing else reads that. Moving elements before an operator with loops of its own
joins that one. Requires: nothing. Ensures: a kernel has one output, which alone leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.graph.builder import GraphBuilder, GraphRewriter
from refcomp.graph.graph import Graph, Node, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.operators import find_operator


def fuse_operators(graph: Graph) -> Graph:
    """`graph` with groups of nodes fused; the same object when every group is a single node."""
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


def _group(graph: Graph) -> list[list[Node]]:
    """The groups, each where its last node stands."""
    readers = graph.readers()
    group_of: dict[Value, list[Node]] = {}
    groups: list[list[Node]] = []
    for node in graph.nodes:
        joined = _group_to_join(graph, node, group_of, readers)
        if joined is None:
            joined = []
        else:
            groups = [group for group in groups if group is not joined]
        joined.append(node)
        groups.append(joined)
        group_of.update(dict.fromkeys(node.outputs, joined))
    return groups


def _group_to_join(
    graph: Graph,
    node: Node,
    group_of: dict[Value, list[Node]],
    readers: dict[Value, list[Node]],
) -> list[Node] | None:
    """The group of the first input that only this node reads, if the two may share loops."""
    if node.operator == FUSED:
        return None
    for value in node.reads:
        group = group_of.get(value)
        if group is None or len(readers[value]) > 1 or value in graph.outputs:
            continue
        if _may_follow(node, group):
            return group
    return None


def _may_follow(node: Node, group: Sequence[Node]) -> bool:
    if any(member.operator == FUSED or len(member.outputs) > 1 for member in group):
        return False
    if find_operator(node.operator).pattern != "anchor":
        return True
    return all(find_operator(member.operator).pattern == "movement" for member in group)


def _add_fused(rewriter: GraphRewriter, group: Sequence[Node]) -> None:
    made = {value for node in group for value in node.outputs}
    given = dict.fromkeys(v for node in group for v in node.reads if v not in made)
    builder = GraphBuilder("_".join(node.operator for node in group))
    inside = {v: builder.input(v.name, v.dtype, v.shape) for v in given}
    for node in group:
        inputs = [None if value is None else inside[value] for value in node.inputs]
        outputs = builder.nodes(
            node.operator, inputs, node.attributes, [value.name for value in node.outputs]
        )
        inside.update(zip(node.outputs, outputs, strict=True))
    results = group[-1].outputs
    subgraph = builder.finish([inside[value] for value in results])
    names = [value.name for value in results]
    fused = rewriter.nodes(FUSED, rewriter.mapped(list(given)), {}, names, [subgraph])
    rewriter.values.update(zip(results, fused, strict=True))
