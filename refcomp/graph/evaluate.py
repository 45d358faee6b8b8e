"""The meaning of a graph: evaluate its nodes in order by the numpy functions of their operators.

This is the oracle for everything that compiles graphs. It uses no te, schedule or machine code.
"""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.foundation.errors import UserError
from refcomp.graph.feeds import check_feeds
from refcomp.graph.graph import Array, Graph, GraphNode, Value
from refcomp.graph.infer import FUSED
from refcomp.graph.verify import verify_graph
from refcomp.topi.operator import find_operator


def evaluate_graph(graph: Graph, feeds: Mapping[str, Array]) -> list[Array]:
    """Return the outputs of a graph, computed by the numpy meaning of each operator.

    Args:
        graph: any graph; it is verified first.
        feeds: name of an input -> its array.

    Raises:
        UserError: the arrays do not fit the graph's inputs.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", ("N",))
        >>> net = builder.finish([builder.node("relu", [x])])
        >>> print(*rc.graph.evaluate_graph(net, {"x": np.array([1, -1], "float32")}))
        [1. 0.]
    """
    verify_graph(graph)
    if not isinstance(feeds, Mapping):
        raise UserError(
            f"feeds are a {type(feeds).__name__}, not arrays by name",
            remedy='pass a dict: {"x": array}',
        )
    forms = {}
    for name, array in feeds.items():
        if not hasattr(array, "dtype"):
            raise UserError(
                f"input {name!r} cannot be a {type(array).__name__}",
                remedy="pass a numpy array",
            )
        forms[name] = (array.dtype, array.shape)
    check_feeds(graph, forms)
    given = {value: feeds[value.name] for value in graph.inputs}
    return _evaluate(graph, given)


def evaluate_node(node: GraphNode, known: Mapping[Value, Array]) -> list[Array]:
    """Return the outputs of one node; `known` holds the values of its inputs."""
    if node.operator == FUSED:
        (subgraph,) = node.subgraphs
        given = [known[value] for value in node.inputs if value is not None]
        feeds = dict(zip(subgraph.inputs, given, strict=True))
        return _evaluate(subgraph, feeds)
    inputs = [None if value is None else known[value] for value in node.inputs]
    made = find_operator(node.operator).numpy(*inputs, **node.attributes)
    return made if isinstance(made, list) else [made]


def _evaluate(graph: Graph, given: Mapping[Value, Array]) -> list[Array]:
    known = {**given, **graph.constants}
    for node in graph.nodes:
        outputs = evaluate_node(node, known)
        known.update(zip(node.outputs, outputs, strict=True))
    return [known[value] for value in graph.outputs]
