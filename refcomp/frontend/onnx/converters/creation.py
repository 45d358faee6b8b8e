"""Constants, and tensors made from shapes or bounds."""

from __future__ import annotations

import json

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import FLOAT, STRINGS, element_type
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


@converter("ConstantOfShape")
def constant_of_shape(node: OnnxNode) -> Value:
    """Convert ConstantOfShape of any version."""
    shape = node.integers(node.required(0), "shape")
    if any(extent < 0 for extent in shape):
        raise UserError(
            f"its shape is {list(shape)}", remedy="give extents that are not negative"
        )
    value = np.asarray(node.attributes.get("value", np.zeros(1, np.float32)))
    if value.size != 1:
        raise UserError(
            f"its value has {value.size} elements",
            remedy="give a tensor of one element",
        )
    scalar = node.constant(value.reshape(()))
    made = node.make("broadcast_to", [scalar], shape=shape)
    code = node.attributes.get("value_element_type")
    return made if code is None else node.typed(made, code)


@converter("EyeLike")
def eye_like(node: OnnxNode) -> Value:
    """Convert EyeLike of any version: only the shape of its input matters."""
    data = node.required(0)
    if len(data.shape) != 2:
        raise UserError(f"its input is {data}, not a matrix")
    rows, columns = node.extents(data)
    code = int(node.attributes.get("dtype", 0)) or node.element_type(data)
    kind = element_type(code, "its output").storage
    k = node.attributes["k"]
    return node.make("eye", [], n=rows, m=columns, k=k, dtype=str(kind))


@converter("Range")
def range_of(node: OnnxNode) -> Value:
    """Convert Range of any version. Floats of 16 bits are computed in f32 unless forbidden."""
    first = node.required(0)
    read = node.integer if first.dtype.is_int else node.number
    start, stop, step = (
        read(node.required(place), name)
        for place, name in enumerate(("start", "limit", "delta"))
    )
    if step == 0:
        raise UserError("its delta is 0", remedy="give a step that is not 0")
    kind = first.dtype
    is_short = kind.is_float and kind.bits == 16
    if is_short and node.attributes.get("stash_type", FLOAT) == FLOAT:
        kind = F32
    made = node.make("arange", [], start=start, stop=stop, step=step, dtype=str(kind))
    return node.cast(made, first.dtype)
