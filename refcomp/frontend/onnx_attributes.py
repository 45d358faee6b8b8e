"""Read the attributes of a node as its converter declares them, so that none is ignored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from refcomp.foundation.errors import Unsupported, UserError

# name -> value; its type depends on the kind of the attribute
Attributes = dict[str, Any]

# kind of an attribute -> its number in ONNX (AttributeProto.AttributeType), how it is read
_FIELDS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "float": (1, lambda a: float(a.f)),
    "int": (2, lambda a: int(a.i)),
    "string": (3, lambda a: a.s.decode("utf-8", "replace")),
    "tensor": (4, lambda a: a.t),
    "floats": (6, lambda a: tuple(float(v) for v in a.floats)),
    "ints": (7, lambda a: tuple(int(v) for v in a.ints)),
}


def read_attributes(
    node: Any, declared: Mapping[str, str], read_tensor: Callable[[Any], Any]
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
            raise Unsupported(f"its attribute {attribute.name!r} is unknown to refcomp")
        code, read = _FIELDS[kind]
        if attribute.type != code:
            raise UserError(f"attribute {attribute.name!r} is not of type {kind}")
        value = read(attribute)
        if isinstance(value, float) and math.isnan(value):
            raise UserError(f"attribute {attribute.name!r} is NaN")
        attributes[attribute.name] = read_tensor(value) if kind == "tensor" else value
    return attributes
