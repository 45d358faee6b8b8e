"""Operators on sequences of tensors. A sequence never changes: each operator makes another one.

Source: the ONNX operator specification, SequenceAt and its kin. A negative position counts from the
end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import (
    RunValue,
    as_sequence,
    as_tensor,
    read_integer,
)
from refcomp.graph.control.operator import (
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    check_scalar,
    check_subgraph_inputs,
    refuse,
)
from refcomp.graph.control.types import NodeType, element_dtype, unshaped
from refcomp.graph.graph import Value, ValueKind
from refcomp.topi.operator import AttributeSpec

_TENSORS = (ValueKind.TENSOR, ValueKind.UNSHAPED)


def _sequence_of(value: Value) -> NodeType:
    return NodeType(value.dtype, (), ValueKind.SEQUENCE)


def _check_sequence(operator: str, value: Value | None) -> Value:
    return check_kind(operator, "sequence", value, ValueKind.SEQUENCE)


def _check_element(operator: str, sequence: Value, tensor: Value | None) -> None:
    element = check_kind(operator, "tensor", tensor, *_TENSORS)
    if element.dtype != sequence.dtype:
        refuse(
            f"{operator} cannot put {element} into {sequence}",
            f"convert the tensor to {sequence.dtype}",
        )


def _place(place: int, length: int, operator: str) -> int:
    """Return a position as a number from 0 to `length` - 1; UserError if there is none."""
    if not -length <= place < length:
        raise UserError(
            f"{operator} asks for element {place} of a sequence of {length}",
            remedy=f"give a position from {-length} to {length - 1}",
        )
    return place % length


def _construct_types(node: NodeParts) -> list[NodeType]:
    first = check_kind("sequence_construct", "tensors", node.inputs[0], *_TENSORS)
    for value in node.inputs:
        _check_element("sequence_construct", first, value)
    return [_sequence_of(first)]


def _construct(call: ControlCall) -> list[RunValue]:
    return [tuple(as_tensor(value, "an element") for value in call.inputs)]


def _empty_types(node: NodeParts) -> list[NodeType]:
    dtype = element_dtype(str(node.attributes["dtype"]))
    return [NodeType(dtype, (), ValueKind.SEQUENCE)]


def _empty(call: ControlCall) -> list[RunValue]:
    return [()]


def _at_types(node: NodeParts) -> list[NodeType]:
    sequence = _check_sequence("sequence_at", node.inputs[0])
    check_scalar("sequence_at", "position", node.inputs[1], is_bool=False)
    return [unshaped(sequence.dtype)]


def _at(call: ControlCall) -> list[RunValue]:
    elements = as_sequence(call.inputs[0], "sequence")
    place = read_integer(call.machine, call.inputs[1], "position")
    return [elements[_place(place, len(elements), "sequence_at")]]


def _insert_types(node: NodeParts) -> list[NodeType]:
    sequence = _check_sequence("sequence_insert", node.inputs[0])
    _check_element("sequence_insert", sequence, node.inputs[1])
    if len(node.inputs) > 2:
        check_scalar("sequence_insert", "position", node.inputs[2], is_bool=False)
    return [_sequence_of(sequence)]


def _insert(call: ControlCall) -> list[RunValue]:
    elements = as_sequence(call.inputs[0], "sequence")
    tensor = as_tensor(call.inputs[1], "tensor")
    length = len(elements)
    place = length
    if len(call.inputs) > 2 and call.inputs[2] is not None:
        place = read_integer(call.machine, call.inputs[2], "position")
        if not -length <= place <= length:
            raise UserError(
                f"sequence_insert cannot insert at {place} of a sequence of {length}",
                remedy=f"give a position from {-length} to {length}",
            )
        place = place + length if place < 0 else place
    return [(*elements[:place], tensor, *elements[place:])]


def _erase_types(node: NodeParts) -> list[NodeType]:
    sequence = _check_sequence("sequence_erase", node.inputs[0])
    if len(node.inputs) > 1:
        check_scalar("sequence_erase", "position", node.inputs[1], is_bool=False)
    return [_sequence_of(sequence)]


def _erase(call: ControlCall) -> list[RunValue]:
    elements = as_sequence(call.inputs[0], "sequence")
    place = -1
    if len(call.inputs) > 1 and call.inputs[1] is not None:
        place = read_integer(call.machine, call.inputs[1], "position")
    place = _place(place, len(elements), "sequence_erase")
    return [(*elements[:place], *elements[place + 1 :])]


def _length_types(node: NodeParts) -> list[NodeType]:
    _check_sequence("sequence_length", node.inputs[0])
    return [NodeType(I64, ())]


def _length(call: ControlCall) -> list[RunValue]:
    elements = as_sequence(call.inputs[0], "sequence")
    return [call.machine.tensor(np.array(len(elements), np.int64))]


def _concat_types(node: NodeParts) -> list[NodeType]:
    return [unshaped(_check_sequence("concat_from_sequence", node.inputs[0]).dtype)]


def _concat(call: ControlCall) -> list[RunValue]:
    elements = as_sequence(call.inputs[0], "sequence")
    if not elements:
        raise UserError(
            "concat_from_sequence joins a sequence without elements",
            remedy="give one or more tensors",
        )
    arrays = [call.machine.read(one) for one in elements]
    axis = call.attributes["axis"]
    assert isinstance(axis, int)
    join = np.stack if call.attributes.get("new_axis") else np.concatenate
    try:
        return [call.machine.tensor(join(arrays, axis=axis))]
    except ValueError as error:  # numpy's, which says what does not fit
        shapes = ", ".join(str(list(one.shape)) for one in arrays[:8])
        raise UserError(
            f"concat_from_sequence cannot join tensors of shape {shapes} along axis {axis}",
            why=str(error),
            remedy="give tensors that differ along this axis only",
        ) from error


def _split_types(node: NodeParts) -> list[NodeType]:
    data = check_kind("split_to_sequence", "data", node.inputs[0], *_TENSORS)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        sizes = check_kind("split_to_sequence", "sizes", node.inputs[1], *_TENSORS)
        if not sizes.dtype.is_int:
            refuse(f"split_to_sequence takes no sizes {sizes}", "give integers")
    return [_sequence_of(data)]


def _split(call: ControlCall) -> list[RunValue]:
    array = call.machine.read(as_tensor(call.inputs[0], "data"))
    axis = call.attributes.get("axis", 0)
    assert isinstance(axis, int)
    if not -array.ndim <= axis < array.ndim:
        raise UserError(
            f"split_to_sequence cannot split axis {axis} of {list(array.shape)}",
            remedy="choose an axis of the tensor",
        )
    length = array.shape[axis]
    if len(call.inputs) > 1 and call.inputs[1] is not None:
        given = call.machine.read(as_tensor(call.inputs[1], "sizes"))
        sizes = _part_sizes(given.reshape(-1).tolist(), given.ndim == 0, length)
        parts = np.split(array, list(accumulate(sizes))[:-1], axis)
        return [tuple(map(call.machine.tensor, parts))]
    slices = [array.take([place], axis) for place in range(length)]
    if not call.attributes.get("keep_axis", True):
        slices = [one.squeeze(axis) for one in slices]
    return [tuple(map(call.machine.tensor, slices))]


def _part_sizes(given: Sequence[int], is_each: bool, length: int) -> list[int]:
    """Return the sizes of all parts. With `is_each`, `given` is the size of all but the last."""
    if is_each and given[0] > 0:
        rest = length % given[0]
        return [given[0]] * (length // given[0]) + ([rest] if rest else [])
    if is_each or min(given, default=0) < 0 or sum(given) != length:
        raise UserError(
            f"split_to_sequence cannot split {length} elements into parts of {list(given)}",
            remedy="give sizes that add up to the extent",
        )
    return list(given)


def _map_types(node: NodeParts) -> list[NodeType]:
    sequence = _check_sequence("sequence_map", node.inputs[0])
    (body,) = node.subgraphs
    given = [unshaped(sequence.dtype)]
    for value in node.inputs[1:]:
        assert value is not None
        is_sequence = value.kind is ValueKind.SEQUENCE
        given.append(unshaped(value.dtype) if is_sequence else NodeType.of(value))
    check_subgraph_inputs("sequence_map", body, given)
    for value in body.outputs:
        check_kind("sequence_map", "output of the body", value, *_TENSORS)
    return [_sequence_of(value) for value in body.outputs]


def _map(call: ControlCall) -> list[RunValue]:
    (body,) = call.subgraphs
    length = len(as_sequence(call.inputs[0], "sequence"))
    for value in call.inputs:
        if isinstance(value, tuple) and len(value) != length:
            raise UserError(
                f"sequence_map takes sequences of {length} and {len(value)} elements",
                remedy="give sequences of equal length",
            )
    rows = []
    for place in range(length):
        given = [v[place] if isinstance(v, tuple) else v for v in call.inputs]
        made = call.machine.run(body, given)
        rows.append([as_tensor(value, "an element") for value in made])
    if not rows:
        return [() for _ in body.outputs]
    return [tuple(column) for column in zip(*rows, strict=True)]


SEQUENCE_OPERATORS = (
    ControlOperator(
        "sequence_construct",
        inputs=("tensors",),
        variadic=True,
        rule=_construct_types,
        run=_construct,
    ),
    ControlOperator(
        "sequence_empty",
        inputs=(),
        attributes=(AttributeSpec("dtype", (str,), required=True),),
        rule=_empty_types,
        run=_empty,
    ),
    ControlOperator(
        "sequence_at", inputs=("sequence", "position"), rule=_at_types, run=_at
    ),
    ControlOperator(
        "sequence_insert",
        inputs=("sequence", "tensor", "position"),
        required=2,
        rule=_insert_types,
        run=_insert,
    ),
    ControlOperator(
        "sequence_erase",
        inputs=("sequence", "position"),
        required=1,
        rule=_erase_types,
        run=_erase,
    ),
    ControlOperator(
        "sequence_length", inputs=("sequence",), rule=_length_types, run=_length
    ),
    ControlOperator(
        "concat_from_sequence",
        inputs=("sequence",),
        attributes=(
            AttributeSpec("axis", (int,), required=True),
            AttributeSpec("new_axis", (bool,), False),
        ),
        rule=_concat_types,
        run=_concat,
    ),
    ControlOperator(
        "split_to_sequence",
        inputs=("data", "sizes"),
        required=1,
        attributes=(
            AttributeSpec("axis", (int,), 0),
            AttributeSpec("keep_axis", (bool,), True),
        ),
        rule=_split_types,
        run=_split,
    ),
    ControlOperator(
        "sequence_map",
        inputs=("sequence", "values"),
        required=1,
        variadic=True,
        subgraphs=1,
        rule=_map_types,
        run=_map,
    ),
)
