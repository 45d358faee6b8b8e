"""Casts: to an element type, to that of another tensor, and of bits."""

from __future__ import annotations

from dataclasses import replace

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.conversions import (
    converted,
    width_of,
    wrapped,
)
from refcomp.frontend.onnx.deferred import defer
from refcomp.frontend.onnx.element_types import (
    BOOLS,
    ELEMENT_TYPES,
    FLOAT,
    INT2,
    INT4,
    STRINGS,
    UINT2,
    UINT4,
    element_type,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# Names of element types in Cast-1, whose attribute is a text, are those of TensorProto.
_BY_NAME = {one.name: code for code, one in ELEMENT_TYPES.items()} | {
    "float": 1,
    "double": 11,
}


@converter("Cast")
def cast_by_name(node: OnnxNode) -> Value:
    """Convert Cast-1, which names the element type by a text."""
    name = str(node.attributes["to"])
    code = _BY_NAME.get(name.lower())
    if code is None:
        raise UserError(
            f"its attribute to is {name!r}, which is not an element type",
            remedy="use a name of TensorProto.DataType, such as FLOAT",
        )
    return _cast(node, code)


@converter("Cast", since=6)
def cast(node: OnnxNode) -> Value:
    """Convert Cast, whose attribute is the number of an element type."""
    return _cast(node, int(node.attributes["to"]))


@converter("CastLike")
def cast_like(node: OnnxNode) -> Value:
    """Convert CastLike: only the element type of the second input matters."""
    return _cast(node, node.element_type(node.required(1)))


def _cast(node: OnnxNode, code: int) -> Value:
    data = node.required(0)
    element_type(code, "its output")
    source = node.element_type(data)
    if STRINGS in (source, code):
        return data if source == code else _text_cast(node, data, code)
    return converted(
        node,
        data,
        code,
        saturate=bool(node.attributes.get("saturate", 1)),
        round_mode=str(node.attributes.get("round_mode", "up")),
    )


def _text_cast(node: OnnxNode, data: Value, code: int) -> Value:
    """Return texts as numbers, or numbers as texts; types without a dtype pass through f32."""
    if code == STRINGS:
        is_narrow = ELEMENT_TYPES[node.element_type(data)].is_narrow
        given = _cast_in_a_run(node, data, FLOAT) if is_narrow else data
        return node.make("cast_to_string", [given])
    is_narrow = ELEMENT_TYPES[code].is_narrow
    storage = ELEMENT_TYPES[FLOAT if is_narrow else code].storage
    made = node.make("cast_from_string", [data], to=str(storage))
    return _cast_in_a_run(node, made, code) if is_narrow else made


def _cast_in_a_run(node: OnnxNode, data: Value, code: int) -> Value:
    """Return numbers as numbers of another element type; their shape may be unknown."""
    attributes = {**node.attributes, "to": code}
    cast = replace(
        node, operator="Cast", version=6, inputs=(data,), attributes=attributes
    )
    return node.typed(defer(cast, "", "", [code])[0], code)


@converter("BitCast")
def bit_cast(node: OnnxNode) -> Value:
    """Convert BitCast, to an element type of the same width."""
    data = node.required(0)
    source = node.element_type(data)
    code = int(node.attributes["to"])
    target = element_type(code, "its output")
    if STRINGS in (source, code) or width_of(source) != width_of(code):
        raise UserError(
            f"it cannot view {ELEMENT_TYPES[source].name} as {target.name}",
            why="both must have the same number of bits",
            remedy="use Cast to convert values",
        )
    if source == code:
        return data
    if width_of(code) < 8:
        # Only signed integers are held as their values, and all others as their bits.
        unsigned = {2: UINT2, 4: UINT4}.get(width_of(code))
        is_signed = code in (INT2, INT4)
        wanted = code if is_signed else unsigned
        made = data if wanted is None else wrapped(node, data, wanted)
    elif BOOLS in (source, code):
        made = node.cast(node.cast(data, "uint8"), target.storage)
    else:
        made = node.make("bitcast", [data], dtype=str(target.storage))
    if made is data:
        made = node.make("identity", [data])
    return node.typed(made, code)
