"""Check that a graph keeps the rules of `refcomp.graph.graph`, and raise CompilerBug if not.

Frontends and passes build graphs with the builder, which infers types. This module checks their
graphs against the same rules in another way.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from refcomp.foundation.artifacts import names_in_dim
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import CompilerBug, RefcompError, UserError
from refcomp.foundation.mapped_files import changed_file
from refcomp.graph.control.operators import find_control
from refcomp.graph.control.types import NodeType
from refcomp.graph.graph import Graph, GraphNode, Value, spell, spell_condition
from refcomp.graph.infer import FUSED, infer_types
from refcomp.graph.narrow import is_narrow, narrowed_symbol


def verify_graph(graph: Graph, verified: Collection[GraphNode] = ()) -> None:
    """Check the rules of graphs, and raise an error for the first rule that is broken.

    Args:
        graph: the graph.
        verified: nodes that were verified in another graph. Their types and subgraphs are not
            checked again: a node and its values are immutable.

    Raises:
        CompilerBug: a rule is broken. The error has the graph's text.
        UserError: `graph` is not a graph, or the file of its weights has changed.

    Example::

        >>> builder = rc.graph.GraphBuilder("net")
        >>> x = builder.input("x", "float32", (2,))
        >>> rc.graph.verify_graph(builder.finish([builder.node("relu", [x])]))
    """
    if not isinstance(graph, Graph):
        raise UserError(
            f"{graph!r} is not a graph",
            remedy="pass what refcomp.from_onnx or GraphBuilder.finish returned",
        )
    check_files(graph)
    defined: set[Value] = set()
    names: set[str] = set()
    for value in (*graph.inputs, *graph.constants):
        _define(graph, value, defined, names)
    for value, array in graph.constants.items():
        if array.shape != value.shape or as_dtype(array.dtype) != value.dtype:
            _fail(graph, f"constant {value} holds {array.dtype} of shape {array.shape}")
    fault = symbol_fault(graph)
    if fault:
        _fail(graph, fault)
    known = frozenset(verified)
    for node in graph.nodes:
        _verify_reads(graph, node, defined)
        if node not in known:
            _verify_types(graph, node)
        for value in node.outputs:
            _define(graph, value, defined, names)
    for value in graph.outputs:
        if value not in defined:
            _fail(graph, f"output {value} is never made")


def check_files(graph: Graph) -> None:
    """Raise UserError if a file that holds weights of a graph was changed in place."""
    path = changed_file(graph.constants.values())
    if path is not None:
        raise UserError(
            f"the file {str(path)!r} has changed since the graph {spell(graph.name)} was read",
            why="weights of the graph are parts of this file",
            remedy="read the model again, or pass its bytes to from_onnx",
        )


def _define(graph: Graph, value: Value, defined: set[Value], names: set[str]) -> None:
    if value in defined:
        _fail(graph, f"{value} is made twice")
    if value.name in names:
        _fail(graph, f"two values are named {value.name!r}")
    defined.add(value)
    names.add(value.name)


def symbols_of(graph: Graph, *, with_narrowed: bool = True) -> list[str]:
    """Return the symbols of a graph, each once: those of inputs, then those of `narrow` nodes."""
    dims = (dim for value in graph.inputs for dim in value.shape)
    names = dict.fromkeys(name for dim in dims for name in names_in_dim(dim))
    if with_narrowed:
        nodes = filter(is_narrow, graph.nodes)
        names |= dict.fromkeys(narrowed_symbol(node) for node in nodes)
    return list(names)


def symbol_fault(graph: Graph) -> str:
    """Return what is wrong about the symbols of a graph; an empty text if nothing is.

    Each symbol of a condition gets its value from an input, or from one `narrow` node.
    """
    given = set(symbols_of(graph, with_narrowed=False))
    for node in filter(is_narrow, graph.nodes):
        symbol = narrowed_symbol(node)
        if symbol in given:
            return f"node {spell(node.name)} gives {spell(symbol)} a second value"
        given.add(symbol)
    for condition in graph.requires:
        unknown = sorted(set(names_in_dim(condition)) - given)
        if unknown:
            text = spell_condition(condition)
            return (
                f"no input has the symbol {spell(unknown[0])} of the condition {text}"
            )
    return ""


def _verify_reads(graph: Graph, node: GraphNode, defined: set[Value]) -> None:
    for value in node.reads:
        if value not in defined:
            _fail(graph, f"node {node.name!r} reads {value} before it is made")


def _verify_types(graph: Graph, node: GraphNode) -> None:
    _verify_subgraphs(graph, node)
    try:
        types = infer_types(
            node.operator,
            node.inputs,
            node.attributes,
            node.subgraphs,
            late=node.late,
            declared=list(map(NodeType.of, node.outputs)),
        )
    except RefcompError as error:
        _fail(graph, f"node {node.name!r}: {error.what}")
    if list(map(NodeType.of, node.outputs)) != types:
        made = ", ".join(map(str, types))
        _fail(graph, f"node {node.name!r} should make {made}")


def _verify_subgraphs(graph: Graph, node: GraphNode) -> None:
    for subgraph in node.subgraphs:
        verify_graph(subgraph)
    # The rules of control operators check their subgraphs.
    if find_control(node.operator) is not None:
        return
    if len(node.subgraphs) != (1 if node.operator == FUSED else 0):
        _fail(graph, f"node {node.name!r} has {len(node.subgraphs)} subgraphs")
    for subgraph in node.subgraphs:
        inside = [NodeType.of(value) for value in subgraph.inputs]
        given = [None if v is None else NodeType.of(v) for v in node.inputs]
        if inside != given:
            _fail(graph, f"node {node.name!r} gives its subgraph inputs of other types")


def _fail(graph: Graph, what: str) -> NoReturn:
    raise CompilerBug(f"graph {graph.name!r} is ill-formed: {what}", where=str(graph))
