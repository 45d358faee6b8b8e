"""`if`: run one of two subgraphs."""

from __future__ import annotations

from refcomp.foundation.artifacts import names_in_dim
from refcomp.graph.control.machine import RunValue, read_bool
from refcomp.graph.control.operator import (
    ControlCall,
    ControlOperator,
    NodeParts,
    check_scalar,
    check_subgraph_inputs,
    refuse,
)
from refcomp.graph.control.types import NodeType, unshaped


def _types(node: NodeParts) -> list[NodeType]:
    condition, *captured = node.inputs
    check_scalar("if", "condition", condition, is_bool=True)
    given = [NodeType.of(value) for value in captured if value is not None]
    for graph in node.subgraphs:
        check_subgraph_inputs("if", graph, given)
    first, second = (
        [NodeType.of(value) for value in graph.outputs] for graph in node.subgraphs
    )
    if len(first) != len(second):
        refuse(
            f"the branches of if return {len(first)} and {len(second)} values",
            "let both return the same number of values",
        )
    known = {name for one in given for dim in one.shape for name in names_in_dim(dim)}
    types = []
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        joined = one.joined(other)
        if joined is None:
            refuse(
                f"output {place} of the branches of if is {one} and {other}",
                "let both return values of the same kind and dtype",
            )
        names = {name for dim in joined.shape for name in names_in_dim(dim)}
        # A symbol that a branch makes has no value outside of it.
        types.append(joined if names <= known else unshaped(joined.dtype))
    return types


def _run(call: ControlCall) -> list[RunValue]:
    condition, *captured = call.inputs
    taken = read_bool(call.machine, condition, "the condition of if")
    return call.machine.run(call.subgraphs[0 if taken else 1], captured)


IF = ControlOperator(
    "if",
    inputs=("condition", "captured"),
    required=1,
    variadic=True,
    subgraphs=2,
    rule=_types,
    run=_run,
)
