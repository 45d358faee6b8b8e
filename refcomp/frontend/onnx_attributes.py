"""Read the attributes of a node as its converter declares them, so that none is ignored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.near_misses import did_you_mean
from refcomp.graph.graph import Array

# An object of onnx's own, which has no types.
Proto = Any
# By name. The kind that the operator declares decides the type of the value: int, float, str, a
# tuple of ints or of floats, or an array.
Attributes = dict[str, Any]

# kind -> (number of the kind in AttributeProto.AttributeType, function that reads the value)
_FIELDS: dict[str, tuple[int, Callable[[Proto], object]]] = {
    "float": (1, lambda a: float(a.f)),
    "int": (2, lambda a: int(a.i)),
    "string": (3, lambda a: a.s.decode("utf-8", "replace")),
    "tensor": (4, lambda a: a.t),
    "floats": (6, lambda a: tuple(float(v) for v in a.floats)),
    "ints": (7, lambda a: tuple(int(v) for v in a.ints)),
}


def read_attributes(
    node: Proto, declared: Mapping[str, str], read_tensor: Callable[[Proto], Array]
) -> Attributes:
    """Return the attributes that the node has, by name.

    Args:
        node: an ONNX NodeProto.
        declared: name of an attribute -> its kind, a key of `_FIELDS`.
        read_tensor: returns the array of a stored tensor.

    Raises:
        Unsupported: an attribute is not declared.
        UserError: a value has another kind, or is NaN.
    """
    attributes: Attributes = {}
    for attribute in node.attribute:
        kind = declared.get(attribute.name)
        if kind is None:
            what = f"its attribute {attribute.name!r} is unknown to refcomp"
            near = did_you_mean(attribute.name, declared)
            raise Unsupported(f"{what}; {near}" if near else what)
        code, read = _FIELDS[kind]
        if attribute.type != code:
            raise UserError(f"attribute {attribute.name!r} is not of type {kind}")
        value = read(attribute)
        # NaN equals nothing, so that no check of a converter would refuse it.
        if isinstance(value, float) and math.isnan(value):
            raise UserError(f"attribute {attribute.name!r} is NaN")
        attributes[attribute.name] = read_tensor(value) if kind == "tensor" else value
    return attributes
