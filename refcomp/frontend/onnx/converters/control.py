"""If, Loop and Scan: subgraphs that the executor chooses or repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames
from refcomp.frontend.onnx.element_types import BOOLS, ELEMENT_TYPES, INT64
from refcomp.frontend.onnx.node import OnnxNode, Subgraph
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Graph, Value, ValueKind
from refcomp.graph.inline import inline_graph

# Conversions of a body before all tensors that it carries lose their shapes.
_SHAPED_TRIALS = 2
_TENSORS = (ValueKind.TENSOR, ValueKind.UNSHAPED)


@converter("If", control=True)
def branch(node: OnnxNode) -> list[Value]:
    """Convert If. Where the condition is known, only the nodes of that branch are kept."""
    condition = node.required(0)
    known = node.builder.elements(condition)
    if known is not None and known.size == 1:
        taken = node.subgraph("then_branch" if known.item() else "else_branch")
        values = inline_graph(node.builder, taken.graph, taken.captured)
        return node.all_typed(values, taken.element_types)
    branches = node.subgraph("then_branch"), node.subgraph("else_branch")
    codes = [one.element_types for one in branches]
    if codes[0] != codes[1]:
        lists = " and ".join(
            f"[{', '.join(ELEMENT_TYPES[code].name for code in row)}]" for row in codes
        )
        raise UserError(f"its branches return the element types {lists}")
    captured = list(dict.fromkeys(value for one in branches for value in one.captured))
    made = node.builder.nodes(
        "if",
        [condition, *captured],
        names=node.outputs,
        subgraphs=[_taking(one, captured) for one in branches],
    )
    return node.all_typed(made, codes[0])


def _taking(branch: Subgraph, captured: Sequence[Value]) -> Graph:
    """Return the graph of a branch with an input for each captured value of both branches."""
    graph = branch.graph
    own = dict(zip(branch.captured, graph.inputs, strict=True))
    names = UniqueNames(separator=".")
    for value in graph.values():
        names.take(value.name)
    inputs = [
        own.get(value) or replace(value, name=names.take(value.name))
        for value in captured
    ]
    return replace(graph, inputs=tuple(inputs))


@converter("Loop", control=True)
def loop(node: OnnxNode) -> list[Value]:
    """Convert Loop. A value that changes its shape is carried without one."""
    carried = [node.required(place) for place in range(2, len(node.inputs))]
    leading = [(NodeType(ELEMENT_TYPES[code].storage, ()), code) for code in _COUNTERS]
    body, codes = _body(node, leading, carried, [], first=1)
    made = node.builder.nodes(
        "loop",
        [node.input(0), node.input(1), *carried, *body.captured],
        {"carried": len(carried)},
        node.outputs,
        [body.graph],
    )
    return node.all_typed(made, codes[1:])


_COUNTERS = (INT64, BOOLS)  # the number of the iteration, and the condition


def _body(
    node: OnnxNode,
    leading: Sequence[tuple[NodeType, int]],
    carried: Sequence[Value],
    trailing: Sequence[tuple[NodeType, int]],
    *,
    first: int = 0,
    types: Sequence[NodeType] = (),
) -> tuple[Subgraph, tuple[int, ...]]:
    """Return a body that takes each carried value as it returns it, and its element types.

    Args:
        node: Loop or Scan.
        leading: the types of the inputs before the carried values.
        carried: their values before the first iteration.
        trailing: the types of the inputs behind them.
        first: the place of the first carried value among the outputs of the body.
        types: the types of the carried values in the body, if not those of `carried`.
    """
    codes = [node.element_type(value) for value in carried]
    taken = list(types or map(NodeType.of, carried))
    trial = 0
    while True:
        declared = list(zip(taken, codes, strict=True))
        body = node.subgraph("body", [*leading, *declared, *trailing])
        returned = body.graph.outputs[first : first + len(carried)]
        made = body.element_types[first : first + len(carried)]
        if list(made) != codes:
            raise UserError(
                f"its body takes {_names(codes)} and returns {_names(made)} to carry"
            )
        wider = [
            _joined(one, NodeType.of(value))
            for one, value in zip(taken, returned, strict=True)
        ]
        if wider == taken:
            return body, body.element_types
        trial += 1
        if trial >= _SHAPED_TRIALS:
            wider = [unshaped(t.dtype) if t.kind in _TENSORS else t for t in wider]
        taken = wider


def _names(codes: Sequence[int]) -> str:
    return f"[{', '.join(ELEMENT_TYPES[code].name for code in codes)}]"


def _joined(taken: NodeType, returned: NodeType) -> NodeType:
    joined = taken.joined(returned)
    if joined is None:
        raise UserError(f"its body takes a {taken} and returns a {returned} to carry")
    return joined


@converter("Scan", since=9, control=True)
def scan(node: OnnxNode) -> list[Value]:
    """Convert Scan: slices of some inputs, along any axis, forward or backward."""
    values = node.all_inputs()
    count = _scanned(node, len(values))
    states, scanned = values[: len(values) - count], values[len(values) - count :]
    axes = _per_value(node, "scan_input_axes", count)
    slices = [
        (_slice_type(node, value, axis), node.element_type(value))
        for value, axis in zip(scanned, axes, strict=True)
    ]
    body, codes = _body(node, [], states, slices)
    outputs = len(codes) - len(states)
    given = {
        "input_axes": axes,
        "input_directions": _per_value(node, "scan_input_directions", count),
        "output_axes": _per_value(node, "scan_output_axes", outputs),
        "output_directions": _per_value(node, "scan_output_directions", outputs),
    }
    made = node.builder.nodes(
        "scan",
        [*values, *body.captured],
        {
            "states": len(states),
            "scanned": count,
            **{k: v for k, v in given.items() if any(v)},
        },
        node.outputs,
        [body.graph],
    )
    return node.all_typed(made, codes)


@converter("Scan", since=8, control=True)
def batched_scan(node: OnnxNode) -> list[Value]:
    """Convert Scan-8, which scans axis 1 of each element of a batch, up to a length of its own."""
    values = [node.required(place) for place in range(1, len(node.inputs))]
    count = _scanned(node, len(values))
    states, scanned = values[: len(values) - count], values[len(values) - count :]
    types = [_slice_type(node, value, 0) for value in states]
    slices = [
        (_without_axis(node, _slice_type(node, value, 0), 0), node.element_type(value))
        for value in scanned
    ]
    body, codes = _body(node, [], states, slices, types=types)
    attributes = {"states": len(states), "scanned": count}
    directions = _per_value(node, "directions", count)
    made = node.builder.nodes(
        "batched_scan",
        [node.input(0), *values, *body.captured],
        {**attributes, **({"directions": directions} if any(directions) else {})},
        node.outputs,
        [body.graph],
    )
    return node.all_typed(made, codes)


def _scanned(node: OnnxNode, most: int) -> int:
    count = node.attributes["num_scan_inputs"]
    if not 1 <= count <= most:
        raise UserError(
            f"its attribute num_scan_inputs is {count}, but {most} inputs can be scanned"
        )
    return int(count)


def _per_value(node: OnnxNode, name: str, count: int) -> tuple[int, ...]:
    """Return an attribute with one integer for each of `count` values, 0 by default."""
    given = node.attributes.get(name, (0,) * count)
    if len(given) != count:
        raise UserError(
            f"its attribute {name} has {len(given)} elements for {count} values"
        )
    return tuple(given)


def _slice_type(node: OnnxNode, value: Value, axis: int) -> NodeType:
    """Return the type of a slice of a tensor at one place of an axis."""
    if value.kind not in _TENSORS:
        raise UserError(f"it cannot scan {value}")
    return _without_axis(node, NodeType.of(value), axis)


def _without_axis(node: OnnxNode, kind: NodeType, axis: int) -> NodeType:
    if kind.kind is ValueKind.UNSHAPED:
        return kind
    place = node.axis(axis, len(kind.shape))
    return NodeType(kind.dtype, (*kind.shape[:place], *kind.shape[place + 1 :]))
