"""Sequences of tensors, which the executor handles. A position below 0 counts from the end."""

from __future__ import annotations

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import element_type
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.control.types import NodeType, unshaped
from refcomp.graph.graph import Value, ValueKind


@converter("SequenceConstruct", since=11, control=True)
def sequence_construct(node: OnnxNode) -> Value:
    """Convert SequenceConstruct; its tensors may have different shapes."""
    tensors = node.all_inputs()
    code = node.shared_element_type(tensors)
    return node.typed(node.make("sequence_construct", tensors), code)


@converter("SequenceEmpty", since=11, control=True)
def sequence_empty(node: OnnxNode) -> Value:
    """Convert SequenceEmpty, of floats unless the attribute dtype names another element type."""
    kind = element_type(node.attributes.get("dtype", 1), "its sequence")
    made = node.make("sequence_empty", [], dtype=str(kind.storage))
    return node.typed(made, kind.code)


@converter("SequenceAt", since=11, control=True)
def sequence_at(node: OnnxNode) -> Value:
    """Convert SequenceAt."""
    sequence = node.required(0)
    made = node.make("sequence_at", [sequence, node.required(1)])
    return node.typed(made, node.element_type(sequence))


@converter("SequenceInsert", since=11, control=True)
def sequence_insert(node: OnnxNode) -> Value:
    """Convert SequenceInsert; without a position, the tensor becomes the last one."""
    sequence, tensor = node.required(0), node.required(1)
    code = node.shared_element_type([sequence, tensor])
    made = node.make("sequence_insert", [sequence, tensor, node.input(2)])
    return node.typed(made, code)


@converter("SequenceErase", since=11, control=True)
def sequence_erase(node: OnnxNode) -> Value:
    """Convert SequenceErase; without a position, the last tensor is erased."""
    sequence = node.required(0)
    made = node.make("sequence_erase", [sequence, node.input(1)])
    return node.typed(made, node.element_type(sequence))


@converter("SequenceLength", since=11, control=True)
def sequence_length(node: OnnxNode) -> Value:
    """Convert SequenceLength."""
    return node.make("sequence_length", [node.required(0)])


@converter("ConcatFromSequence", since=11, control=True)
def concat_from_sequence(node: OnnxNode) -> Value:
    """Convert ConcatFromSequence, along an axis of the tensors or a new one."""
    sequence = node.required(0)
    made = node.make(
        "concat_from_sequence",
        [sequence],
        axis=node.attributes["axis"],
        new_axis=node.flag("new_axis"),
    )
    return node.typed(made, node.element_type(sequence))


@converter("SplitToSequence", since=11, control=True)
def split_to_sequence(node: OnnxNode) -> Value:
    """Convert SplitToSequence. `keepdims` only counts if no sizes are given."""
    data = node.required(0)
    made = node.make(
        "split_to_sequence",
        [data, node.input(1)],
        axis=node.attributes["axis"],
        keep_axis=node.flag("keepdims"),
    )
    return node.typed(made, node.element_type(data))


@converter("SequenceMap", since=17, control=True)
def sequence_map(node: OnnxNode) -> list[Value]:
    """Convert SequenceMap. Its body gets an element of each sequence, and all other inputs."""
    values = node.all_inputs()
    if not values or values[0].kind is not ValueKind.SEQUENCE:
        raise UserError("its first input is not a sequence")
    given = [(_element(value), node.element_type(value)) for value in values]
    body = node.subgraph("body", given)
    made = node.builder.nodes(
        "sequence_map",
        [*values, *body.captured],
        names=node.outputs,
        subgraphs=[body.graph],
    )
    return node.all_typed(made, body.element_types)


def _element(value: Value) -> NodeType:
    """Return the type of what the body gets of an input in each of its runs."""
    is_sequence = value.kind is ValueKind.SEQUENCE
    return unshaped(value.dtype) if is_sequence else NodeType.of(value)
