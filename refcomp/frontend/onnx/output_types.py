"""The element types of a node's inputs and outputs, from the schema of its operator."""

from __future__ import annotations

import re
from collections.abc import Sequence

from refcomp.foundation.dtype import as_dtype
from refcomp.frontend.onnx.attributes import Attributes, Proto
from refcomp.frontend.onnx.element_types import (
    ELEMENT_TYPES,
    FLOAT,
    FLOAT8E8M0,
    INT32,
    INT64,
    STRINGS,
    UINT8,
    code_of,
    element_type,
)
from refcomp.graph.graph import Array

_TENSOR = re.compile(r"tensor\((\w+)\)\Z")
_BY_NAME = {one.name: code for code, one in ELEMENT_TYPES.items()} | {
    "float": FLOAT,
    "double": 11,
}
# Attributes that name the element type of the output; 0 means that they do not.
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")
# Outputs without such an attribute, and without an input of the same type.
_DEFAULTS = {"Multinomial": INT32, "QuantizeLinear": UINT8}
_CLASSIFIERS = ("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")
_LIKE_FIRST_INPUT = ("EyeLike", "Bernoulli", "RandomNormalLike", "RandomUniformLike")


def output_types(
    schema: Proto | None, inputs: Sequence[int], attributes: Attributes, count: int
) -> list[int | None]:
    """Return the number of the element type of each output; None where it is not known.

    Args:
        schema: the OpSchema of the operator; None for an operator that ONNX does not define.
        inputs: numbers of the element types of the inputs; 0 for one that is left out.
        attributes: those of the node.
        count: the number of outputs.
    """
    if schema is None:
        return [None] * count
    bound: dict[str, int] = {}
    for constraint in schema.type_constraints:
        allowed = constraint.allowed_type_strs
        fixed = _TENSOR.match(allowed[0]) if len(allowed) == 1 else None
        if fixed and fixed[1] in _BY_NAME:
            bound[constraint.type_param_str] = _BY_NAME[fixed[1]]
    for place, code in enumerate(inputs):
        if code and schema.inputs:
            formal = schema.inputs[min(place, len(schema.inputs) - 1)]
            bound.setdefault(formal.type_str, code)
    named = next((attributes[n] for n in _TYPE_ATTRIBUTES if attributes.get(n)), None)
    types: list[int | None] = []
    for place in range(count):
        formal = schema.outputs[min(place, len(schema.outputs) - 1)]
        is_first = place == 0 and formal.type_str not in bound
        if is_first and isinstance(named, int):
            types.append(element_type(named, "its output").code)
        else:
            types.append(
                _type_of(formal.type_str, schema.name, bound, inputs, attributes)
            )
    return types


def _type_of(
    type_text: str,
    operator: str,
    bound: dict[str, int],
    inputs: Sequence[int],
    attributes: Attributes,
) -> int | None:
    fixed = _TENSOR.match(type_text)
    if fixed:
        return _BY_NAME.get(fixed[1])
    if type_text in bound:
        return bound[type_text]
    if operator in _LIKE_FIRST_INPUT:
        return inputs[0] or None if inputs else None
    if operator == "ConstantOfShape":
        value: Array | None = attributes.get("value")
        if value is None:
            return FLOAT
        known: int | None = attributes.get("value_element_type")
        return known or code_of(as_dtype(value.dtype))
    if operator == "Constant":
        return None  # its converter says it
    if operator == "DequantizeLinear" and len(inputs) > 1:
        return FLOAT if inputs[1] == FLOAT8E8M0 else inputs[1]
    if operator in _CLASSIFIERS:
        return STRINGS if attributes.get("classlabels_strings") else INT64
    if operator in ("CategoryMapper", "LabelEncoder"):
        return _label_type(inputs[0], attributes)
    return _DEFAULTS.get(operator, FLOAT)


def _label_type(given: int, attributes: Attributes) -> int:
    """Return the element type of the labels that an operator maps others to."""
    lists = {"values_strings": STRINGS, "values_int64s": INT64, "values_floats": FLOAT}
    for name, code in lists.items():
        if name in attributes:
            return code
    values: Array | None = attributes.get("values_tensor")
    if values is not None:
        return STRINGS if values.dtype == object else code_of(as_dtype(values.dtype))
    return INT64 if given == STRINGS else STRINGS
