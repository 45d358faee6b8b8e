"""Graphs with a wrong operator in the place of a right one, and right graphs with wrong code."""

from dataclasses import replace

from refcomp.graph.builder import GraphRewriter
from refcomp.graph.compile import GraphModule, compile_nodes
from refcomp.graph.graph import Graph


def with_operator(graph: Graph, old: str, new: str) -> Graph:
    """The graph in which all nodes with the operator `old` have `new`, those in fused ones too."""
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        names = [value.name for value in node.outputs]
        operator = new if node.operator == old else node.operator
        subgraphs = [with_operator(sub, old, new) for sub in node.subgraphs]
        inputs = rewriter.mapped(node.inputs)
        made = rewriter.nodes(operator, inputs, node.attributes, names, subgraphs)
        rewriter.values.update(zip(node.outputs, made, strict=True))
    return rewriter.finish_copy()


def code_of_wrong(right: GraphModule, old: str, new: str) -> GraphModule:
    """The right graph with the functions that the operator `new` gives."""
    wrong = compile_nodes(with_operator(right.graph, old, new), right.target)
    values = {value.name: value for value in right.graph.values()}
    kernels = [
        replace(
            kernel,
            inputs=tuple(values[value.name] for value in kernel.inputs),
            outputs=tuple(values[value.name] for value in kernel.outputs),
        )
        for kernel in wrong.kernels
    ]
    return replace(right, kernels=tuple(kernels), module=wrong.module)
