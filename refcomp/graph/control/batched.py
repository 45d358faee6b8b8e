"""`batched_scan`: run a subgraph along axis 1 of each element of a batch.

The body is that of `scan`. It takes the states, a slice of each scanned input, and the captured
values. Axis 0 of all states, scanned inputs and outputs is the batch. An element of the batch has
the length that the input `lengths` gives it. Behind that, its scanned outputs are 0.

Source: the ONNX operator specification, Scan-8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.errors import UserError
from refcomp.graph.control.loops import (
    attribute_count,
    attribute_flags,
    attribute_int,
    carried_types,
    scan_steps,
    stacked,
)
from refcomp.graph.control.machine import Machine, RunValue, as_tensor
from refcomp.graph.control.operator import (
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    check_subgraph_inputs,
    refuse,
)
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Array, Value, ValueKind
from refcomp.topi.operator import AttributeSpec

NAME = "batched_scan"
_TENSORS = (ValueKind.TENSOR, ValueKind.UNSHAPED)


def _types(node: NodeParts) -> list[NodeType]:
    lengths, *others = node.inputs
    (body,) = node.subgraphs
    values = [value for value in others if value is not None]
    states = attribute_count(node.attributes, "states", len(values), NAME)
    scanned = attribute_count(node.attributes, "scanned", len(values) - states, NAME)
    if scanned == 0:
        refuse(f"{NAME} scans no input", "give the number of them: scanned=1")
    if lengths is not None and not lengths.dtype.is_int:
        refuse(f"{NAME} takes no lengths {lengths}", "give an integer for each element")
    batched = values[: states + scanned]
    given = [_inside(value, 1 if k < states else 2) for k, value in enumerate(batched)]
    given += [NodeType.of(value) for value in values[states + scanned :]]
    check_subgraph_inputs(NAME, body, given)
    if len(body.outputs) < states:
        refuse(
            f"the body of {NAME} returns {len(body.outputs)} values",
            f"return the next {states} states first",
        )
    first = batched[states]
    types = [
        _outside(one, first.shape[:1])
        for one in carried_types(NAME, states, body, 0, 0)
    ]
    for value in body.outputs[states:]:
        check_kind(NAME, "output of the body", value, *_TENSORS)
        types.append(_outside(NodeType.of(value), first.shape[:2]))
    return types


def _inside(value: Value, axes: int) -> NodeType:
    """Return the type of what the body gets: a value without its first axes."""
    check_kind(NAME, "batched", value, *_TENSORS)
    if len(value.shape) < axes and value.is_tensor:
        refuse(f"{NAME} cannot scan {value}", f"give a tensor of {axes} axes or more")
    return NodeType(value.dtype, value.shape[axes:], value.kind)


def _outside(kind: NodeType, leading: Sequence[Dim]) -> NodeType:
    """Return the type of a stack; it has no shape if that of an element needs a run."""
    is_static = all(isinstance(dim, int) for dim in kind.shape)
    if kind.kind is not ValueKind.TENSOR or not leading or not is_static:
        return unshaped(kind.dtype)
    return NodeType(kind.dtype, (*leading, *kind.shape))


def _run(call: ControlCall) -> list[RunValue]:
    machine = call.machine
    (body,) = call.subgraphs
    count = attribute_int(call.attributes, "states")
    scanned = attribute_int(call.attributes, "scanned")
    lengths, *others = call.inputs
    batched = [
        machine.read(as_tensor(value, "a batched input"))
        for value in others[: count + scanned]
    ]
    captured = others[count + scanned :]
    batch, longest = _extents(batched, count)
    steps = _lengths(machine, lengths, batch, longest)
    directions = attribute_flags(call.attributes, "directions", scanned)
    rows: list[list[Array]] = [[] for _ in body.outputs]
    for place in range(batch):
        states: list[RunValue] = [machine.tensor(one[place]) for one in batched[:count]]
        parts = [one[place, : steps[place]] for one in batched[count:]]
        last, collected = scan_steps(
            machine, body, states, parts, (0,) * scanned, directions, captured
        )
        for row, state in zip(rows, last, strict=False):
            row.append(machine.read(as_tensor(state, "a state")))
        for row, elements, value in zip(
            rows[count:], collected, body.outputs[count:], strict=True
        ):
            one = machine.read(stacked(machine, elements, value, 0))
            row.append(_padded(one, longest))
    if batch:
        return [machine.tensor(np.stack(row)) for row in rows]
    empty = [machine.read(stacked(machine, [], one, 0)) for one in body.outputs]
    for place in range(count, len(empty)):
        empty[place] = np.expand_dims(_padded(empty[place], longest), 0)[:0]
    return [machine.tensor(one) for one in empty]


def _extents(batched: Sequence[Array], states: int) -> tuple[int, int]:
    """Return the size of the batch, and the extent of axis 1 of all scanned inputs."""
    # Only a run knows the rank of an unshaped input.
    batches = {one.shape[0] if one.ndim else -1 for one in batched}
    lengths = {one.shape[1] if one.ndim > 1 else -1 for one in batched[states:]}
    if len(batches) != 1 or len(lengths) != 1 or -1 in batches | lengths:
        shapes = ", ".join(str(list(one.shape)) for one in batched)
        raise UserError(
            f"{NAME} cannot scan a batch of shapes {shapes}",
            remedy="give all inputs one batch, and scanned inputs one length",
        )
    return batches.pop(), lengths.pop()


def _lengths(machine: Machine, given: RunValue, batch: int, longest: int) -> list[int]:
    """Return the number of steps of each element of the batch."""
    if given is None:
        return [longest] * batch
    lengths = machine.read(as_tensor(given, "lengths")).reshape(-1).tolist()
    if len(lengths) != batch or not all(0 <= one <= longest for one in lengths):
        raise UserError(
            f"{NAME} cannot scan {lengths} elements of {longest}",
            why=f"it needs {batch} lengths from 0 to {longest}",
            remedy="give each element of the batch its length",
        )
    return [int(one) for one in lengths]


def _padded(rows: Array, length: int) -> Array:
    padding = [(0, length - len(rows)), *[(0, 0)] * (rows.ndim - 1)]
    return np.pad(rows, padding)


BATCHED_SCAN = ControlOperator(
    NAME,
    inputs=("lengths", "values"),
    variadic=True,
    required=0,
    subgraphs=1,
    attributes=(
        AttributeSpec("states", (int,), 0),
        AttributeSpec("scanned", (int,), required=True),
        AttributeSpec("directions", (tuple,)),
    ),
    rule=_types,
    run=_run,
)
