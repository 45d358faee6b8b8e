"""Recurrent layers over many steps, or a number of steps that only a run knows.

The operators of refcomp unroll all steps. Here, `scan` repeats a layer of a single step, so that
the code does not grow with the sequence. It requires a known batch, without which the results of
`scan` have no shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.frontend.onnx.node import OnnxNode
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.graph import Graph, Value
from refcomp.graph.macros import NotKnownError
from refcomp.topi.operator import Attribute

# Attributes of a layer with something for each direction.
_BY_DIRECTION = ("activation", "activations", "alphas", "betas")
_STATES = {"rnn": 1, "gru": 1, "lstm": 2}


@dataclass(frozen=True, slots=True)
class _Pass:
    """One direction of a layer over the whole sequence, in layout 0.

    Attributes:
        operator: the operator of refcomp for the layer.
        data: [steps, batch, inputs].
        weights: weight, recurrence, and maybe bias and peephole, of this direction only.
        lengths: [batch], the number of steps of each sample, or None for all steps.
        states: each [1, batch, hidden].
        attributes: those of the operator, for this direction only.
        is_backward: True if it begins with the last step.
    """

    operator: str
    data: Value
    weights: Mapping[str, Value]
    lengths: Value | None
    states: Sequence[Value]
    attributes: Mapping[str, Attribute]
    is_backward: bool


def scan_layer(
    node: OnnxNode,
    operator: str,
    operands: Sequence[Value | None],
    attributes: Mapping[str, Attribute],
) -> list[Value]:
    """Return the outputs of a layer, which are those of its operator.

    Args:
        node: the node.
        operator: rnn, gru or lstm.
        operands: those of the operator. The batch of the data is a number.
        attributes: those of the operator.

    Raises:
        NotKnownError: a sequence that is read backward has lengths, and a symbolic number of steps.
    """
    count = _STATES[operator]
    data, weight, recurrence, bias, lengths, *rest = (*operands, *[None] * 8)[:8]
    assert data is not None
    is_batch_first = attributes["layout"] == 1
    given = [_exchanged(node, value, is_batch_first) for value in rest[:count]]
    sequence = _exchanged(node, data, is_batch_first)
    assert sequence is not None
    named = {"weight": weight, "recurrence": recurrence, "bias": bias}
    named["peephole"] = rest[2] if operator == "lstm" else None
    directions = {"forward": (False,), "reverse": (True,)}
    passes = directions.get(str(attributes["direction"]), (False, True))
    made = []
    for place, is_backward in enumerate(passes):
        weights = {
            name: _direction(node, value, place, len(passes))
            for name, value in named.items()
            if value is not None
        }
        states = [
            _zeros(node, sequence, weights["recurrence"])
            if state is None
            else _direction(node, state, place, len(passes))
            for state in given
        ]
        own = _own_attributes(attributes, place, len(passes))
        one = _Pass(operator, sequence, weights, lengths, states, own, is_backward)
        made.append(_scanned(node, one))
    results = [
        parts[0]
        if len(parts) == 1
        else node.make("concatenate", parts, axis=1 if number == 0 else 0)
        for number, parts in enumerate(zip(*made, strict=True))
    ]
    if not is_batch_first:
        return results
    y, *last = results
    swapped = [node.make("swap_axes", [one], axis1=0, axis2=1) for one in last]
    return [node.make("transpose", [y], axes=(2, 0, 1, 3)), *swapped]


def _exchanged(node: OnnxNode, value: Value | None, is_wanted: bool) -> Value | None:
    if value is None or not is_wanted:
        return value
    return node.make("swap_axes", [value], axis1=0, axis2=1)


def _direction(node: OnnxNode, value: Value, place: int, count: int) -> Value:
    """Return the part of one direction, which the first axis numbers."""
    if count == 1:
        return value
    return node.make(
        "strided_slice", [value], begin=(place,), end=(place + 1,), axes=(0,)
    )


def _zeros(node: OnnxNode, data: Value, recurrence: Value) -> Value:
    """Return zeros [1, batch, hidden]."""
    shape = (1, _extent(data.shape[1]), _extent(recurrence.shape[2]))
    return node.make("zeros", [], shape=shape, dtype=str(data.dtype))


def _extent(dim: object) -> int:
    if not isinstance(dim, int):
        raise NotKnownError
    return dim


def _own_attributes(
    attributes: Mapping[str, Attribute], place: int, count: int
) -> dict[str, Attribute]:
    """Return the attributes of one direction, which runs forward through each single step."""
    own = {**attributes, "direction": "forward", "layout": 0}
    for name in _BY_DIRECTION:
        value = own.get(name)
        if isinstance(value, str):
            own[name] = ",".join(
                value.split(",")[_part(value.count(",") + 1, place, count)]
            )
        elif isinstance(value, tuple):
            own[name] = value[_part(len(value), place, count)]
    return own


def _part(length: int, place: int, count: int) -> slice:
    """Return part number `place` of `count` equal parts."""
    size = length // count
    return slice(place * size, (place + 1) * size)


def _scanned(node: OnnxNode, one: _Pass) -> list[Value]:
    """Return [steps, 1, batch, hidden], then the last states [1, batch, hidden]."""
    carried = list(one.states)
    if one.lengths is not None:
        carried.append(_first_count(node, one))
    slices = list(one.weights.values())
    flags = (int(one.is_backward),)
    directions: dict[str, Attribute] = {}
    if one.is_backward:
        directions = {"input_directions": flags, "output_directions": flags}
    made = node.builder.nodes(
        "scan",
        [*carried, one.data, *slices],
        {"states": len(carried), "scanned": 1, **directions},
        subgraphs=[_step(one, carried)],
    )
    return [made[-1], *made[: len(one.states)]]


def _first_count(node: OnnxNode, one: _Pass) -> Value:
    """Return for each sample the number of steps from the first one on that it takes part in.

    A sample takes part while this count, which each step changes by one, is positive.
    """
    assert one.lengths is not None
    if not one.is_backward:
        return one.lengths
    behind = node.constant(_extent(one.data.shape[0]) - 1, one.lengths.dtype.dtype)
    return node.make("subtract", [one.lengths, behind])


def _step(one: _Pass, carried: Sequence[Value]) -> Graph:
    """Return the body: states, the slice of a step and weights to next states and an output."""
    builder = GraphBuilder(f"{one.operator}_step")
    states = [
        builder.input(f"state{k}", value.dtype, value.shape)
        for k, value in enumerate(carried)
    ]
    data = builder.input("x", one.data.dtype, one.data.shape[1:])
    weights = {
        name: builder.input(name, value.dtype, value.shape)
        for name, value in one.weights.items()
    }
    count = len(one.states)
    lengths = states[count] if len(states) > count else None
    operands = [
        builder.node("expand_dims", [data], {"axis": (0,)}),
        weights["weight"],
        weights["recurrence"],
        weights.get("bias"),
        lengths,
        *states[:count],
    ]
    if one.operator == "lstm":
        operands.append(weights.get("peephole"))
    y, *last = builder.nodes(one.operator, operands, one.attributes)
    results = list(last)
    if lengths is not None:
        change = builder.constant("one", np.ones((), lengths.dtype.dtype))
        operator = "add" if one.is_backward else "subtract"
        results.append(builder.node(operator, [lengths, change]))
    output = builder.node("squeeze", [y], {"axis": (0,)})
    return builder.finish([*results, output])
