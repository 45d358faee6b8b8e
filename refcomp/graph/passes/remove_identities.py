"""Remove nodes that change nothing.

Before::

    graph net(x: f32[N]) -> (y) {
      a: f32[N] = exp(x)
      b: f32[N] = identity(a)
      c: f32[N] = cast(b) {dtype="float32"}
      y: f32[N] = relu(c)
    }

After::

    graph net(x: f32[N]) -> (y) {
      a: f32[N] = exp(x)
      y: f32[N] = relu(a)
    }

An `identity`, a cast to the same dtype, and a reshape to the same shape change nothing.

Requires: nothing. Ensures: such a node is left only if it reads an input or a constant, or
makes an output. An output needs memory and a name of its own. Refuses: nothing.
"""

from __future__ import annotations

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.graph import Graph, GraphNode
from refcomp.graph.passes.pointwise import is_plain


def remove_identities(graph: Graph) -> Graph:
    """Return `graph` without identities; the same object if it has none."""
    made = {value for node in graph.nodes for value in node.outputs}
    removable = set()
    for node in graph.nodes:
        is_needed = node.outputs[0] in graph.outputs
        if _is_identity(node) and node.inputs[0] in made and not is_needed:
            removable.add(node)
    if not removable:
        return graph
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        if node in removable:
            rewriter.values[node.outputs[0]] = rewriter.values[node.reads[0]]
        else:
            rewriter.copy(node)
    return rewriter.finish_copy()


def _is_identity(node: GraphNode) -> bool:
    if node.operator == "identity":
        return True
    # Tensors without a shape have equal types, whatever a reshape does.
    if node.operator not in ("cast", "reshape") or not is_plain(node):
        return False
    read = node.inputs[0]
    made = node.outputs[0]
    return read is not None and (read.dtype, read.shape) == (made.dtype, made.shape)
