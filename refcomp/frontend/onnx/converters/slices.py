"""Operators that take a part of a tensor, or add a border."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

# An end from here on means the end of any axis.
_FAR = 2**31 - 1


@converter("Slice")
def slice_by_attributes(node: OnnxNode) -> Value:
    """Convert Slice-1, whose positions are attributes."""
    for name in ("starts", "ends"):
        if name not in node.attributes:
            raise UserError(f"its attribute {name} is missing")
    starts = node.attributes["starts"]
    ends = node.attributes["ends"]
    return _sliced(node, starts, ends, node.attributes.get("axes"), None)


@converter("Slice", since=10)
def slice_by_inputs(node: OnnxNode) -> Value:
    """Convert Slice, whose positions are inputs."""
    starts = node.integers(node.required(1), "starts")
    ends = node.integers(node.required(2), "ends")
    axes = node.optional_integers(3, "axes")
    steps = node.optional_integers(4, "steps")
    return _sliced(node, starts, ends, axes, steps)


def _sliced(
    node: OnnxNode,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Value:
    data = node.required(0)
    places = range(len(starts)) if axes is None else axes
    strides = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(places) == len(strides):
        raise UserError(
            f"it has {len(starts)} starts, {len(ends)} ends, {len(places)} axes "
            f"and {len(strides)} steps"
        )
    cut: list[tuple[int, int, int, int]] = []
    for start, end, axis, step in zip(starts, ends, places, strides, strict=True):
        place = node.axis(axis, len(data.shape))
        if start == 0 and end >= _FAR and step == 1:
            continue  # the whole axis, whose extent may be a symbol
        node.extent(data, place)
        cut.append((start, end, place, step))
    if not cut:
        return data
    begin, stop, kept, stride = (tuple(column) for column in zip(*cut, strict=True))
    return node.make(
        "strided_slice", [data], begin=begin, end=stop, strides=stride, axes=kept
    )
