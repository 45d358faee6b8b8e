"""Strings: tensors of texts, which only the executor knows.

Such a tensor is an unshaped tensor of the dtype `string`; in a run it is a numpy array of objects.

Source: the ONNX operator specification.
"""

from __future__ import annotations

import json

import numpy as np

from refcomp.foundation.dtype import STRING
from refcomp.graph.control.machine import RunValue
from refcomp.graph.control.operator import ControlCall, ControlOperator, NodeParts
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.topi.operator import AttributeSpec


def _string_types(node: NodeParts) -> list[NodeType]:
    return [unshaped(STRING)]


def _run_constant(call: ControlCall) -> list[RunValue]:
    shape = call.attributes["shape"]
    elements = json.loads(str(call.attributes["elements"]))
    array = np.array(elements, dtype=object)
    assert isinstance(shape, tuple)
    return [array.reshape([int(one) for one in shape])]


STRING_CONSTANT = ControlOperator(
    "string_constant",
    inputs=(),
    attributes=(
        AttributeSpec("elements", (str,), required=True),
        AttributeSpec("shape", (tuple,), required=True),
    ),
    rule=_string_types,
    run=_run_constant,
)

STRING_OPERATORS = (STRING_CONSTANT,)
