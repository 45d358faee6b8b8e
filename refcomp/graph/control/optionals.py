"""Operators on optionals: values that may be absent.

Source: the ONNX operator specification, Optional, OptionalHasElement, OptionalGetElement.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import BOOL
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import RunValue
from refcomp.graph.control.operator import (
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    refuse,
)
from refcomp.graph.control.types import NodeType, element_dtype, unshaped
from refcomp.graph.graph import ValueKind
from refcomp.topi.operator import AttributeSpec

_OPTIONALS = (ValueKind.OPTIONAL, ValueKind.OPTIONAL_SEQUENCE)
_HELD = (ValueKind.TENSOR, ValueKind.UNSHAPED, ValueKind.SEQUENCE)


def _wrap_types(node: NodeParts) -> list[NodeType]:
    if not node.inputs or node.inputs[0] is None:
        if "dtype" not in node.attributes:
            refuse(
                "an optional without an element has no dtype",
                "give the attribute dtype, and sequence=True for a sequence",
            )
        is_sequence = bool(node.attributes.get("sequence"))
        return [
            NodeType(
                element_dtype(str(node.attributes["dtype"])), (), _kind(is_sequence)
            )
        ]
    value = check_kind("optional", "value", node.inputs[0], *_HELD)
    return [NodeType(value.dtype, (), _kind(value.kind is ValueKind.SEQUENCE))]


def _kind(is_sequence: bool) -> ValueKind:
    return ValueKind.OPTIONAL_SEQUENCE if is_sequence else ValueKind.OPTIONAL


def _wrap(call: ControlCall) -> list[RunValue]:
    return [call.inputs[0] if call.inputs else None]


def _has_types(node: NodeParts) -> list[NodeType]:
    if node.inputs and node.inputs[0] is not None:
        check_kind("optional_has_element", "value", node.inputs[0], *_OPTIONALS, *_HELD)
    return [NodeType(BOOL, ())]


def _has(call: ControlCall) -> list[RunValue]:
    is_present = bool(call.inputs) and call.inputs[0] is not None
    return [call.machine.tensor(np.array(is_present))]


def _get_types(node: NodeParts) -> list[NodeType]:
    value = check_kind(
        "optional_get_element", "value", node.inputs[0], *_OPTIONALS, *_HELD
    )
    if value.kind is ValueKind.OPTIONAL:
        return [unshaped(value.dtype)]
    if value.kind is ValueKind.OPTIONAL_SEQUENCE:
        return [NodeType(value.dtype, (), ValueKind.SEQUENCE)]
    return [NodeType.of(value)]


def _get(call: ControlCall) -> list[RunValue]:
    if call.inputs[0] is None:
        raise UserError(
            "optional_get_element takes the element of an optional without one",
            remedy="ask optional_has_element first",
        )
    return [call.inputs[0]]


OPTIONAL_OPERATORS = (
    ControlOperator(
        "optional",
        inputs=("value",),
        required=0,
        attributes=(
            AttributeSpec("dtype", (str,)),
            AttributeSpec("sequence", (bool,), False),
        ),
        rule=_wrap_types,
        run=_wrap,
    ),
    ControlOperator(
        "optional_has_element",
        inputs=("value",),
        required=0,
        rule=_has_types,
        run=_has,
    ),
    ControlOperator(
        "optional_get_element", inputs=("value",), rule=_get_types, run=_get
    ),
)
