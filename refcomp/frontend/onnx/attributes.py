"""Read the attributes of a node as the schema of its operator declares them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES
from refcomp.graph.graph import Array

# An object of onnx's own, which has no types.
Proto = Any
# By name. Numbers and texts are Python's, lists are tuples, tensors are arrays. Graphs and types
# are left as they are stored. Beside a tensor of a type that its dtype does not say (see
# `element_types`), NAME_element_type is the number of the type.
Attributes = dict[str, Any]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


# number of the kind in AttributeProto.AttributeType -> (its name, function that reads the value)
_KINDS: dict[int, tuple[str, Callable[[Proto], Any]]] = {
    1: ("float", lambda a: float(a.f)),
    2: ("int", lambda a: int(a.i)),
    3: ("string", lambda a: _text(a.s)),
    4: ("tensor", lambda a: a.t),
    5: ("graph", lambda a: a.g),
    6: ("floats", lambda a: tuple(float(v) for v in a.floats)),
    7: ("ints", lambda a: tuple(int(v) for v in a.ints)),
    8: ("strings", lambda a: tuple(_text(v) for v in a.strings)),
    9: ("tensors", lambda a: tuple(a.tensors)),
    11: ("sparse_tensor", lambda a: a.sparse_tensor),
    13: ("type", lambda a: a.tp),
}
_TENSOR, _TENSORS, _SPARSE = 4, 9, 11
# Operators with a float attribute that may be NaN, since it is an element and no setting.
_MAY_BE_NAN = frozenset({"Constant", "Pad", "LabelEncoder", "Imputer"})


def read_attributes(
    node: Proto,
    schema: Proto | None,
    read_tensor: Callable[[Proto], Array],
    read_sparse: Callable[[Proto], Array],
) -> Attributes:
    """Return the attributes of a node by name, with the defaults of those that it does not have.

    Args:
        node: an ONNX NodeProto.
        schema: the OpSchema of its operator; None for an operator that ONNX does not define.
        read_tensor: returns the array of a stored tensor.
        read_sparse: returns the dense array of a stored sparse tensor.

    Raises:
        Unsupported: an attribute is not declared.
        UserError: a value has another kind, or is NaN; or a required attribute is missing.
    """
    declared = {} if schema is None else dict(schema.attributes)
    attributes = _defaults(declared)
    for attribute in node.attribute:
        if schema is not None:
            _check_declared(attribute, declared)
        if attribute.type not in _KINDS:
            raise UserError(f"attribute {attribute.name!r} has no known type")
        _, read = _KINDS[attribute.type]
        value = read(attribute)
        if attribute.type == _TENSOR:
            _note_type(attributes, attribute.name, value.data_type)
            value = read_tensor(value)
        elif attribute.type == _TENSORS:
            value = tuple(map(read_tensor, value))
        elif attribute.type == _SPARSE:
            _note_type(attributes, attribute.name, value.values.data_type)
            value = read_sparse(value)
        # NaN equals nothing, so that no check of a converter would refuse it.
        is_nan = isinstance(value, float) and math.isnan(value)
        if is_nan and node.op_type not in _MAY_BE_NAN:
            raise UserError(f"attribute {attribute.name!r} is NaN")
        attributes[attribute.name] = value
    for name, one in declared.items():
        if one.required and name not in attributes:
            raise UserError(f"its attribute {name} is missing")
    return attributes


def _note_type(attributes: Attributes, name: str, code: int) -> None:
    """Add the attribute `NAME_element_type` if the dtype of a tensor does not say its type."""
    kind = ELEMENT_TYPES.get(code)
    if kind is not None and kind.is_narrow:
        attributes[f"{name}_element_type"] = code


def _defaults(declared: Mapping[str, Proto]) -> Attributes:
    """Return the defaults of the attributes that have one.

    ONNX stores them as f32, and means the decimal number: 1e-05, not 9.999999747378752e-06.
    """
    defaults: Attributes = {}
    for name, one in declared.items():
        proto = one.default_value
        if proto.type not in _KINDS:
            continue
        value = _KINDS[proto.type][1](proto)
        defaults[name] = _decimal(value) if isinstance(value, float) else value
    return defaults


def _decimal(value: float) -> float:
    """Return the shortest decimal number that rounds to `value` in f32."""
    return float(str(np.float32(value)))


def _check_declared(attribute: Proto, declared: Mapping[str, Proto]) -> None:
    one = declared.get(attribute.name)
    if one is None:
        what = f"its attribute {attribute.name!r} is unknown to refcomp"
        near = did_you_mean(attribute.name, declared)
        raise Unsupported(f"{what}; {near}" if near else what)
    if int(one.type.value) != attribute.type:
        kind = _KINDS[int(one.type.value)][0]
        raise UserError(f"attribute {attribute.name!r} is not of type {kind}")
