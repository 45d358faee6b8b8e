"""Optionals: a tensor or a sequence, or nothing."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.attributes import Proto
from refcomp.frontend.onnx.element_types import element_type
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("Optional", since=15, control=True)
def optional(node: OnnxNode) -> Value:
    """Convert Optional: its input as an optional, or nothing of the type in an attribute."""
    value = node.input(0)
    if value is not None:
        return node.typed(node.make("optional", [value]), node.element_type(value))
    code, is_sequence = _held_type(node.attributes.get("type"))
    kind = element_type(code, "its element")
    made = node.make(
        "optional", [], dtype=str(kind.storage), sequence=bool(is_sequence)
    )
    return node.typed(made, kind.code)


def _held_type(proto: Proto | None) -> tuple[int, bool]:
    """Return the element type that a TypeProto names, and whether it is a sequence of it."""
    if proto is None:
        raise UserError("it has neither an input nor the attribute type")
    is_sequence = proto.HasField("sequence_type")
    if is_sequence:
        proto = proto.sequence_type.elem_type
    if not proto.HasField("tensor_type"):
        kind = proto.WhichOneof("value") or "value without a type"
        raise UserError(f"its attribute type is a {kind}, not a tensor or a sequence")
    return proto.tensor_type.elem_type, is_sequence


@converter("OptionalHasElement", since=15, control=True)
def optional_has_element(node: OnnxNode) -> Value:
    """Convert OptionalHasElement. A tensor and a sequence have one, an absent input has none."""
    return node.make("optional_has_element", [node.input(0)])


@converter("OptionalGetElement", since=15, control=True)
def optional_get_element(node: OnnxNode) -> Value:
    """Convert OptionalGetElement. An input that is not an optional is its own element."""
    value = node.required(0)
    made = node.make("optional_get_element", [value])
    return node.typed(made, node.element_type(value))
