"""`loop` and `scan`: run a subgraph repeatedly.

The body of `loop` takes the number of the iteration (i64), the condition (bool), the carried values
and the captured ones. It returns the next condition, the next carried values, and elements of the
collected outputs, which are stacked along a new first axis.

The body of `scan` takes the states, a slice of each scanned input, and the captured values. It
returns the next states, and slices of the scanned outputs.

Source: the ONNX operator specification, Loop and Scan.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from refcomp.foundation.artifacts import Dim, names_in_dim
from refcomp.foundation.dtype import BOOL, I64, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import (
    Machine,
    RunValue,
    ShapedTensor,
    as_tensor,
    read_bool,
    read_integer,
)
from refcomp.graph.control.operator import (
    Attributes,
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    check_scalar,
    check_subgraph_inputs,
    refuse,
)
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Array, Graph, Value, ValueKind
from refcomp.topi.operator import AttributeSpec

_TENSORS = (ValueKind.TENSOR, ValueKind.UNSHAPED)


def attribute_count(attributes: Attributes, name: str, most: int, operator: str) -> int:
    """Return a number of inputs that an attribute gives."""
    count = attributes.get(name, 0)
    if not isinstance(count, int) or not 0 <= count <= most:
        refuse(
            f"the attribute {name} of {operator} is {count!r}, but {most} inputs are left",
            f"give a number from 0 to {most}",
        )
    return count


def carried_types(
    operator: str, count: int, body: Graph, first_input: int, first: int
) -> list[NodeType]:
    """Return the types of values that each iteration replaces.

    Args:
        operator: the name of the operator, for messages.
        count: the number of such values.
        body: the subgraph.
        first_input: the place of the first of them among the inputs of `body`.
        first: the place of the first of them among its outputs.
    """
    types = []
    for place in range(count):
        taken = NodeType.of(body.inputs[first_input + place])
        made = NodeType.of(body.outputs[first + place])
        if not made.fits(taken):
            refuse(
                f"the body of {operator} takes {body.inputs[first_input + place]}, "
                f"but returns {made} for the next iteration",
                f"declare the input as {unshaped(made.dtype)}, or return {taken}",
            )
        types.append(taken)
    return types


def _element_type(operator: str, value: Value) -> NodeType:
    check_kind(operator, "output of the body", value, *_TENSORS)
    return NodeType.of(value)


def _loop_types(node: NodeParts) -> list[NodeType]:
    trips, condition, *others = node.inputs
    (body,) = node.subgraphs
    check_scalar("loop", "trips", trips, is_bool=False)
    check_scalar("loop", "condition", condition, is_bool=True)
    given = [NodeType.of(value) for value in others if value is not None]
    carried = attribute_count(node.attributes, "carried", len(given), "loop")
    check_subgraph_inputs("loop", body, [NodeType(I64, ()), NodeType(BOOL, ()), *given])
    if len(body.outputs) <= carried:
        refuse(
            f"the body of loop returns {len(body.outputs)} values",
            f"return the next condition, then {carried} carried values",
        )
    check_scalar("loop", "next condition", body.outputs[0], is_bool=True)
    types = carried_types("loop", carried, body, 2, 1)
    collected = [_element_type("loop", value) for value in body.outputs[1 + carried :]]
    return types + [unshaped(one.dtype) for one in collected]


def _run_loop(call: ControlCall) -> list[RunValue]:
    trips, condition, *others = call.inputs
    (body,) = call.subgraphs
    count = attribute_int(call.attributes, "carried")
    carried = list(others[:count])
    captured = others[count:]
    most = None if trips is None else read_integer(call.machine, trips, "trips")
    goes_on = condition is None or read_bool(call.machine, condition, "condition")
    collected: list[list[ShapedTensor]] = [[] for _ in body.outputs[1 + count :]]
    iteration = 0
    while goes_on and (most is None or iteration < most):
        number = call.machine.tensor(np.array(iteration, np.int64))
        flag = call.machine.tensor(np.array(True))
        next_condition, *made = call.machine.run(
            body, [number, flag, *carried, *captured]
        )
        carried = made[:count]
        for elements, value in zip(collected, made[count:], strict=True):
            elements.append(as_tensor(value, "a collected output"))
        goes_on = read_bool(call.machine, next_condition, "the next condition")
        iteration += 1
    values = body.outputs[1 + count :]
    pairs = zip(collected, values, strict=True)
    return [*carried, *(stacked(call.machine, one, value, 0) for one, value in pairs)]


def stacked(
    machine: Machine, elements: Sequence[ShapedTensor], value: Value, axis: int
) -> ShapedTensor:
    """Return tensors along a new axis.

    Without any, the extents that only an iteration determines are 0.
    """
    if elements:
        return machine.tensor(np.stack(list(map(machine.read, elements)), axis))
    shape = [dim if isinstance(dim, int) else 0 for dim in value.shape]
    shape.insert(axis % (len(shape) + 1), 0)
    return machine.tensor(np.empty(shape, to_numpy(value.dtype)))


def _scan_types(node: NodeParts) -> list[NodeType]:
    (body,) = node.subgraphs
    values = [value for value in node.inputs if value is not None]
    states = attribute_count(node.attributes, "states", len(values), "scan")
    scanned = attribute_count(node.attributes, "scanned", len(values) - states, "scan")
    if scanned == 0:
        refuse("scan scans no input", "give the number of scanned inputs: scanned=1")
    axes = _axes(node.attributes, "input_axes", scanned)
    given = [NodeType.of(value) for value in values[:states]]
    extents = []
    for value, axis in zip(values[states : states + scanned], axes, strict=True):
        check_kind("scan", "scanned", value, *_TENSORS)
        if not value.is_tensor:
            given.append(NodeType.of(value))
            continue
        shape = list(value.shape)
        if not -len(shape) <= axis < len(shape):
            refuse(f"scan cannot scan axis {axis} of {value}", "choose an axis of it")
        extents.append(shape.pop(axis))
        given.append(NodeType(value.dtype, tuple(shape)))
    given += [NodeType.of(value) for value in values[states + scanned :]]
    check_subgraph_inputs("scan", body, given)
    if len(body.outputs) < states:
        refuse(
            f"the body of scan returns {len(body.outputs)} values",
            f"return the next {states} states first",
        )
    types = carried_types("scan", states, body, 0, 0)
    out_axes = _axes(node.attributes, "output_axes", len(body.outputs) - states)
    known = {n for one in given for dim in one.shape for n in names_in_dim(dim)}
    for value, axis in zip(body.outputs[states:], out_axes, strict=True):
        types.append(_scanned_output(value, axis, extents, known))
    return types


def _scanned_output(
    value: Value, axis: int, extents: Sequence[Dim], known: Set[str]
) -> NodeType:
    """Return the type of a scanned output; `known` are the symbols that inputs determine."""
    element = _element_type("scan", value)
    symbols = {name for dim in element.shape for name in names_in_dim(dim)}
    if not extents or not symbols <= known:
        return unshaped(element.dtype)
    if element.kind is ValueKind.UNSHAPED:
        return element
    rank = len(element.shape) + 1
    if not -rank <= axis < rank:
        refuse(f"scan cannot put {value} along axis {axis}", f"choose 0 to {rank - 1}")
    shape = list(element.shape)
    shape.insert(axis % rank, extents[0])
    return NodeType(element.dtype, tuple(shape))


def _run_scan(call: ControlCall) -> list[RunValue]:
    (body,) = call.subgraphs
    count = attribute_int(call.attributes, "states")
    scanned = attribute_int(call.attributes, "scanned")
    states = list(call.inputs[:count])
    arrays = [
        call.machine.read(as_tensor(value, "a scanned input"))
        for value in call.inputs[count : count + scanned]
    ]
    captured = call.inputs[count + scanned :]
    axes = _axes(call.attributes, "input_axes", scanned)
    directions = attribute_flags(call.attributes, "input_directions", scanned)
    states, collected = scan_steps(
        call.machine, body, states, arrays, axes, directions, captured
    )
    outputs = body.outputs[count:]
    out_axes = _axes(call.attributes, "output_axes", len(outputs))
    backwards = attribute_flags(call.attributes, "output_directions", len(outputs))
    results = []
    for elements, value, axis, backward in zip(
        collected, outputs, out_axes, backwards, strict=True
    ):
        ordered = elements[::-1] if backward else elements
        results.append(stacked(call.machine, ordered, value, axis))
    return [*states, *results]


def scan_steps(
    machine: Machine,
    body: Graph,
    states: Sequence[RunValue],
    arrays: Sequence[Array],
    axes: Sequence[int],
    directions: Sequence[bool],
    captured: Sequence[RunValue],
) -> tuple[list[RunValue], list[list[ShapedTensor]]]:
    """Run the body once for each place of an axis.

    Args:
        machine: what runs the body.
        body: it takes the states, a slice of each array, and the captured values.
        states: before the first step.
        arrays: the scanned inputs.
        axes: the axis of each array that is scanned.
        directions: for each array, True to begin with its last slice.
        captured: the values that each step reads.

    Returns:
        The last states; and for each scanned output, what the steps returned, in their order.
    """
    for array, axis in zip(arrays, axes, strict=True):
        if not -array.ndim <= axis < array.ndim:  # only a run knows the rank
            raise UserError(
                f"scan cannot scan axis {axis} of a tensor of shape {list(array.shape)}",
                remedy="choose an axis of the tensor",
            )
    lengths = {one.shape[axis] for one, axis in zip(arrays, axes, strict=True)}
    if len(lengths) != 1:
        raise UserError(
            f"scan cannot scan inputs of {' and '.join(map(str, sorted(lengths)))} elements",
            remedy="give scanned inputs of equal length",
        )
    (length,) = lengths
    last = list(states)
    collected: list[list[ShapedTensor]] = [[] for _ in body.outputs[len(last) :]]
    for step in range(length):
        slices = []
        for array, axis, backward in zip(arrays, axes, directions, strict=True):
            place = length - 1 - step if backward else step
            slices.append(machine.tensor(array.take(place, axis)))
        made = machine.run(body, [*last, *slices, *captured])
        last = made[: len(last)]
        for elements, one in zip(collected, made[len(last) :], strict=True):
            elements.append(as_tensor(one, "a scanned output"))
    return last, collected


def attribute_int(attributes: Attributes, name: str) -> int:
    """Return an integer that an attribute gives, 0 by default."""
    value = attributes.get(name, 0)
    assert isinstance(value, int)
    return value


def _axes(attributes: Attributes, name: str, count: int) -> tuple[int, ...]:
    """Return one integer for each of `count` values, 0 by default."""
    given = attributes.get(name, ())
    assert isinstance(given, tuple)
    if given and len(given) != count:
        refuse(
            f"the attribute {name} has {len(given)} elements for {count} values",
            "give one for each value",
        )
    return tuple(int(one) for one in given) or (0,) * count


def attribute_flags(attributes: Attributes, name: str, count: int) -> list[bool]:
    """Return True or False for each of `count` values, False by default."""
    return [one != 0 for one in _axes(attributes, name, count)]


LOOP = ControlOperator(
    "loop",
    inputs=("trips", "condition", "values"),
    required=0,
    variadic=True,
    subgraphs=1,
    attributes=(AttributeSpec("carried", (int,), 0),),
    rule=_loop_types,
    run=_run_loop,
)
SCAN = ControlOperator(
    "scan",
    inputs=("values",),
    variadic=True,
    subgraphs=1,
    attributes=(
        AttributeSpec("states", (int,), 0),
        AttributeSpec("scanned", (int,), required=True),
        AttributeSpec("input_axes", (tuple,)),
        AttributeSpec("input_directions", (tuple,)),
        AttributeSpec("output_axes", (tuple,)),
        AttributeSpec("output_directions", (tuple,)),
    ),
    rule=_scan_types,
    run=_run_scan,
)
