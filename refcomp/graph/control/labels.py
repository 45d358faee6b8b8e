"""Labels: the places of texts in a list, the texts at places, and checks that labels are known.

Kernels compute with places only. The lists are attributes, as JSON.

Source: the ONNX operator specification, ai.onnx.ml: LabelEncoder, CategoryMapper, OneHotEncoder.
"""

from __future__ import annotations

import json

import numpy as np

from refcomp.foundation.dtype import I64, STRING
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import RunValue, as_tensor
from refcomp.graph.control.operator import (
    Attributes,
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    refuse,
)
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Value, ValueKind
from refcomp.topi.operator import AttributeSpec

_TENSORS = (ValueKind.TENSOR, ValueKind.UNSHAPED)
_LABELS = AttributeSpec("labels", (str,), required=True)


def _labels(attributes: Attributes) -> list[str]:
    """Return the texts of the attribute `labels`."""
    text = str(attributes["labels"])
    try:
        labels = json.loads(text)
    except ValueError:
        labels = None
    if not isinstance(labels, list) or not all(isinstance(v, str) for v in labels):
        refuse(
            f"labels cannot be read from {text[:40]!r}", 'give a list: ["one", "two"]'
        )
    return labels


def _tensor(operator: str, value: Value | None) -> Value:
    return check_kind(operator, "data", value, *_TENSORS)


def _index_types(node: NodeParts) -> list[NodeType]:
    data = _tensor("label_index", node.inputs[0])
    if data.dtype != STRING:
        refuse(f"label_index cannot take {data}", "give a tensor of strings")
    _labels(node.attributes)
    return [unshaped(I64)]


def _index(call: ControlCall) -> list[RunValue]:
    """Return the last place of each text among the labels; their number for an unknown text."""
    labels = _labels(call.attributes)
    places = {label: place for place, label in enumerate(labels)}
    data = np.asarray(call.inputs[0], object)  # texts are on no device
    found = [places.get(_text(one), len(labels)) for one in data.reshape(-1)]
    return [call.machine.tensor(np.array(found, np.int64).reshape(data.shape))]


def _text(element: object) -> str:
    return element.decode() if isinstance(element, bytes) else str(element)


def _at_types(node: NodeParts) -> list[NodeType]:
    data = _tensor("label_at", node.inputs[0])
    if not data.dtype.is_int:
        refuse(f"label_at cannot take {data}", "give a tensor of integers")
    if not _labels(node.attributes):
        refuse("label_at has no labels", "give at least one")
    return [unshaped(STRING)]


def _at(call: ControlCall) -> list[RunValue]:
    """Return the text at each place; a place out of range is moved to the nearest one."""
    labels = np.array(_labels(call.attributes), object)
    places = call.machine.read(as_tensor(call.inputs[0], "data"))
    return [labels[np.clip(places, 0, len(labels) - 1)].reshape(places.shape)]


def _checked_types(node: NodeParts) -> list[NodeType]:
    data = _tensor("checked", node.inputs[0])
    condition = check_kind("checked", "condition", node.inputs[1], *_TENSORS)
    if not condition.dtype.is_bool:
        refuse(f"checked cannot be decided by {condition}", "give a tensor of bools")
    return [NodeType.of(data)]


def _checked(call: ControlCall) -> list[RunValue]:
    """Return the data, if the condition holds everywhere."""
    condition = call.machine.read(as_tensor(call.inputs[1], "condition"))
    if not condition.all():
        raise UserError(str(call.attributes["fault"]))
    return [call.inputs[0]]


LABEL_OPERATORS = (
    ControlOperator(
        "label_index",
        inputs=("data",),
        attributes=(_LABELS,),
        rule=_index_types,
        run=_index,
    ),
    ControlOperator(
        "label_at", inputs=("data",), attributes=(_LABELS,), rule=_at_types, run=_at
    ),
    ControlOperator(
        "checked",
        inputs=("data", "condition"),
        attributes=(AttributeSpec("fault", (str,), required=True),),
        rule=_checked_types,
        run=_checked,
    ),
)
