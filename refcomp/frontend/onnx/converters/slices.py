"""Operators that take a part of a tensor, or add a border."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.extent_values import are_equal
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError
from refcomp.topi.operator import Attribute

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
    ends = node.extents_in(node.required(2), "ends")
    axes = node.optional_integers(3, "axes")
    steps = node.optional_integers(4, "steps")
    return _sliced(node, starts, ends, axes, steps)


def _sliced(
    node: OnnxNode,
    starts: Sequence[int],
    ends: Sequence[Dim],
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
        is_far = isinstance(end, int) and end >= _FAR
        if start == 0 and step == 1 and (is_far or are_equal(end, data.shape[place])):
            continue  # the whole axis, whose extent may be a symbol
        node.extent(data, place)
        if not isinstance(end, int):
            raise NotKnownError
        cut.append((start, end, place, step))
    if not cut:
        return data
    begin, stop, kept, stride = (tuple(column) for column in zip(*cut, strict=True))
    return node.make(
        "strided_slice", [data], begin=begin, end=stop, strides=stride, axes=kept
    )


@converter("Pad")
def pad_by_paddings(node: OnnxNode) -> Value:
    """Convert Pad-1, whose attribute is named paddings."""
    return _padded_by_attribute(node, "paddings")


@converter("Pad", since=2)
def pad_by_attribute(node: OnnxNode) -> Value:
    """Convert Pad-2, whose borders are an attribute."""
    return _padded_by_attribute(node, "pads")


def _padded_by_attribute(node: OnnxNode, name: str) -> Value:
    if name not in node.attributes:
        raise UserError(f"its attribute {name} is missing")
    return _padded(node, node.attributes[name], None, node.attributes["value"])


@converter("Pad", since=11)
def pad(node: OnnxNode) -> Value:
    """Convert Pad, whose borders are inputs."""
    pads = node.integers(node.required(1), "pads")
    axes = node.optional_integers(3, "axes")
    value = node.input(2)
    if value is None or node.attributes["mode"] != "constant":
        return _padded(node, pads, axes, 0)
    if value.dtype.is_float:
        return _padded(node, pads, axes, node.number(value, "constant_value"))
    elements = node.known(value)
    if elements.size != 1:
        raise UserError(f"its constant_value has {elements.size} elements, not one")
    return _padded(node, pads, axes, int(elements.reshape(-1)[0]))


def _padded(
    node: OnnxNode, pads: Sequence[int], axes: Sequence[int] | None, value: int | float
) -> Value:
    data = node.required(0)
    rank = len(data.shape)
    mode = node.attributes["mode"]
    modes = ("constant", "reflect", "edge", "wrap")
    if mode not in modes:
        remedy = advise(str(mode), modes, f"modes: {', '.join(modes)}")
        raise UserError(f"its mode is {mode!r}", remedy=remedy)
    places = [node.axis(axis, rank) for axis in (range(rank) if axes is None else axes)]
    if len(pads) != 2 * len(places):
        raise UserError(f"it has {len(pads)} pads for {len(places)} axes of {data}")
    before = [0] * rank
    after = [0] * rank
    for number, place in enumerate(places):
        before[place] = pads[number]
        after[place] = pads[number + len(places)]
        are_elements_added = min(before[place], after[place]) >= 0
        is_free = before[place] == after[place] == 0
        if not is_free and not (mode == "constant" and are_elements_added):
            node.extent(data, place)
    attributes: dict[str, Attribute] = {"pad_value": value} if value else {}
    return node.make(
        "pad",
        [data],
        pad_before=tuple(before),
        pad_after=tuple(after),
        mode=mode,
        **attributes,
    )


@converter("CenterCropPad")
def center_crop_pad(node: OnnxNode) -> Value:
    """Convert CenterCropPad."""
    data = node.required(0)
    shape = node.integers(node.required(1), "shape")
    axes = node.attributes.get("axes", tuple(range(len(data.shape))))
    for axis in axes:
        node.extent(data, axis)
    return node.make("center_crop_pad", [data], shape=shape, axes=axes)


@converter("ReverseSequence")
def reverse_sequence(node: OnnxNode) -> Value:
    """Convert ReverseSequence of any version."""
    return node.make_fitting(
        "reverse_sequence",
        [node.required(0), node.required(1)],
        seq_axis=node.attributes["time_axis"],
        batch_axis=node.attributes["batch_axis"],
    )


@converter("Trilu")
def trilu(node: OnnxNode) -> Value:
    """Convert Trilu."""
    given = node.input(1)
    diagonal = 0 if given is None else node.integer(given, "k")
    is_upper = bool(node.attributes["upper"])
    return node.make("trilu", [node.required(0)], k=diagonal, upper=is_upper)
