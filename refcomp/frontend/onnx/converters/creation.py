"""Constants, and tensors made from shapes or bounds."""

from __future__ import annotations

import json

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import STRINGS
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("Constant", control=True)
def constant(node: OnnxNode) -> Value:
    """Convert Constant of any version. One attribute holds the elements."""
    given = [name for name in _ELEMENTS if name in node.attributes]
    if len(given) != 1:
        raise UserError(
            f"it has {len(given)} values: {', '.join(given) or 'none'}",
            why="exactly one of its attributes holds the elements",
            remedy=f"set one of {', '.join(_ELEMENTS)}",
        )
    name = given[0]
    array = np.asarray(node.attributes[name], _ELEMENTS[name])
    if array.dtype.kind in "OU":
        texts = json.dumps(array.reshape(-1).tolist())
        made = node.make("string_constant", [], elements=texts, shape=array.shape)
        return node.typed(made, STRINGS)
    code = node.attributes.get(f"{name}_element_type")
    made = node.constant(array)
    return made if code is None else node.typed(made, code)


# Attribute of Constant -> the dtype of its elements; None for a tensor.
_ELEMENTS: dict[str, type | None] = {
    "value": None,
    "sparse_value": None,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


@converter("Identity", control=True)
def identity(node: OnnxNode) -> Value:
    """Convert Identity of any version, of a value of any kind."""
    return node.required(0)
