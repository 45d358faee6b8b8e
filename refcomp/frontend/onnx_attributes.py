"""Reads a node's attributes by what its operator declares, so that none is silently ignored."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from refcomp.foundation.errors import Unsupported, UserError

# What an attribute may be: "int", "float", "string", "ints", "floats", "tensor".
Attributes = dict[str, Any]

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
    """The attributes that the node has, by name.

    `declared` maps each name the operator knows to its kind. Raises Unsupported for a name that is
    not among them, UserError for a value of another kind or a number that is none.
    """
    attributes: Attributes = {}
    for attribute in node.attribute:
        kind = declared.get(attribute.name)
        if kind is None:
            raise Unsupported(f"its attribute {attribute.name!r} is unknown to refcomp")
        code, read = _FIELDS[kind]
        if attribute.type != code:
            raise UserError(f"attribute {attribute.name!r} is no {kind}")
        value = read(attribute)
        if isinstance(value, float) and math.isnan(value):
            raise UserError(f"attribute {attribute.name!r} is not a number")
        attributes[attribute.name] = read_tensor(value) if kind == "tensor" else value
    return attributes
