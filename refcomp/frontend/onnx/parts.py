"""The part of a graph that computes one value from others, all by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.attributes import Proto


def needed_nodes(
    nodes: Sequence[Proto], given: Collection[str], output: str
) -> list[Proto]:
    """Return the nodes, in their order, that compute `output` from `given` and other values.

    Args:
        nodes: the NodeProtos of a graph, each behind those that it reads.
        given: names of values that are not computed, even if a node makes them.
        output: the name of the value.

    Raises:
        UserError: `output` is among the given values.
        Unsupported: a needed node has a subgraph, which may read any value of the graph.
    """
    if output in given:
        raise UserError(
            f"the value {output!r} is to be computed from itself",
            remedy="name a value that nodes compute",
        )
    needed = {output}
    found: list[Proto] = []
    for node in reversed(nodes):
        if not needed & (set(node.output) - set(given) - {""}):
            continue
        if any(one.HasField("g") or one.graphs for one in node.attribute):
            raise Unsupported(f"the node that makes {node.output[0]!r} has a subgraph")
        found.append(node)
        needed |= set(node.input) - set(given)
    return found[::-1]
