"""Operators that move or compare strings, on numbers in their place.

The texts of all inputs are numbered in their order (`refcomp.graph.control.strings`). Then the
operator runs on the numbers, as on any integers, and its outputs are looked up. So equal texts are
equal numbers, sorted ones are sorted, and the empty text is 0, with which operators pad.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from refcomp.foundation.errors import Unsupported
from refcomp.frontend.onnx.deferred import defer
from refcomp.frontend.onnx.element_types import INT64, STRINGS
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.graph.graph import Value

_MOVING = frozenset(
    {
        "ArrayFeatureExtractor",
        "CenterCropPad",
        "Compress",
        "Concat",
        "DepthToSpace",
        "Equal",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "NonZero",
        "OneHot",
        "Pad",
        "Reshape",
        "ReverseSequence",
        "Scatter",
        "ScatterElements",
        "ScatterND",
        "Shape",
        "Size",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "TensorScatter",
        "Tile",
        "Transpose",
        "Trilu",
        "Unique",
        "Unsqueeze",
        "Where",
    }
)
# Their converters handle strings themselves.
_READING = frozenset({"Cast", "CastLike", "TfIdfVectorizer"})
# These compute new elements, unless they take the nearest one.
_SAMPLING = frozenset({"GridSample", "Resize", "Upsample"})


def moves_strings(node: OnnxNode) -> bool:
    """Return True if a node reads strings, but computes nothing from their characters."""
    if not any(map(node.is_string, node.inputs)):
        return False
    is_nearest = node.attributes.get("mode") == "nearest"
    return node.operator in _MOVING or (node.operator in _SAMPLING and is_nearest)


def check_reads_strings(node: OnnxNode, domain: str) -> None:
    """Raise Unsupported if an operator of ONNX itself would compute elements of strings."""
    has_strings = any(map(node.is_string, node.inputs))
    if has_strings and not domain and node.operator not in _READING:
        raise Unsupported("it cannot compute elements of strings")


def convert_on_codes(
    node: OnnxNode, domain: str, prefix: str, types: Sequence[int | None]
) -> list[Value]:
    """Add a node that runs on numbers in the place of strings, and return its outputs.

    Args:
        node: a node for which `moves_strings` holds.
        domain: the domain of its operator.
        prefix: stands before the names of its outputs.
        types: the element types of its outputs.

    Raises:
        Unsupported: a type is not known.
    """
    strings = [value for value in node.inputs if node.is_string(value)]
    *codes, table = node.make_all("string_codes", strings)
    numbers = dict(zip(strings, codes, strict=True))
    inputs = tuple(None if v is None else numbers.get(v, v) for v in node.inputs)
    names = tuple(name and f"{name}.codes" for name in node.outputs)
    inner = replace(node, inputs=inputs, outputs=names)
    inner_types = [INT64 if code == STRINGS else code for code in types]
    made = defer(inner, domain, prefix, inner_types)
    return [
        node.make("string_lookup", [value, table]) if code == STRINGS else value
        for value, code in zip(made, types, strict=True)
    ]
