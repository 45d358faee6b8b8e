"""Operators that give elements another shape or order, and those on shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.artifacts import Dim
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.extent_values import are_equal
from refcomp.graph.graph import Value
from refcomp.graph.macros import NotKnownError


@converter("Shape")
def shape(node: OnnxNode) -> Value:
    """Convert Shape of any version; the result is a constant, if the shape has no symbols."""
    data = node.required(0)
    rank = len(data.shape)
    start, end, _ = slice(
        node.attributes.get("start", 0), node.attributes.get("end", rank)
    ).indices(rank)
    wanted = data.shape[start:end]
    if all(isinstance(dim, int) for dim in wanted):
        return node.constant(wanted, np.int64)
    whole = _shape_of(node, data)
    return node.make("strided_slice", [whole], begin=(start,), end=(end,))


def _shape_of(node: OnnxNode, data: Value) -> Value:
    """Return the extents of a tensor, which have symbols."""
    if 0 in data.shape:
        raise NotKnownError
    return node.make("shape_of", [data])


@converter("Size")
def size(node: OnnxNode) -> Value:
    """Convert Size of any version; the result is a constant, if the shape has no symbols."""
    data = node.required(0)
    if all(isinstance(dim, int) for dim in data.shape):
        return node.constant(node.size(data), np.int64)
    return node.make("prod", [_shape_of(node, data)])


@converter("Reshape")
def reshape_by_attribute(node: OnnxNode) -> Value:
    """Convert Reshape-1, whose shape is an attribute."""
    return _reshaped(node, node.attributes.get("shape", ()))


@converter("Reshape", since=5)
def reshape(node: OnnxNode) -> Value:
    """Convert Reshape, whose shape is an input."""
    shape = node.extents_in(node.required(1), "shape")
    numbers = tuple(dim for dim in shape if isinstance(dim, int))
    if len(numbers) == len(shape):
        return _reshaped(node, numbers)
    return _reshaped_to_symbols(node, shape)


def _reshaped_to_symbols(node: OnnxNode, shape: tuple[Dim, ...]) -> Value:
    """Return the data in a shape with symbols; NotKnownError if a run has to find that it fits.

    A symbol is the extent at the same place, which 0 keeps, or the one extent that -1 stands for.
    """
    data = node.required(0)
    if node.attributes.get("allowzero", 0) and 0 in shape:
        raise NotKnownError
    wanted: list[int] = []
    for place, dim in enumerate(shape):
        if isinstance(dim, int):
            wanted.append(dim)
        else:
            is_kept = place < len(data.shape) and are_equal(dim, data.shape[place])
            wanted.append(0 if is_kept else -1)
    if wanted.count(-1) > 1:
        raise NotKnownError
    made = node.make_fitting("reshape", [data], shape=tuple(wanted))
    for dim, found in zip(shape, made.shape, strict=True):
        if not isinstance(dim, int) and not are_equal(dim, found):
            raise NotKnownError
    return made


def _reshaped(node: OnnxNode, shape: tuple[int, ...]) -> Value:
    data = node.required(0)
    keeps_zeros = bool(node.attributes.get("allowzero", 0))
    if not keeps_zeros or 0 not in shape:
        return node.make_fitting("reshape", [data], shape=shape)
    if -1 in shape:
        raise UserError("its shape has both 0 and -1, although allowzero is 1")
    if node.size(data) != 0:
        raise UserError(f"{data} has elements, but its shape {list(shape)} has none")
    # A 0 of `reshape` keeps an extent, which may be another one.
    return node.make("zeros", [], shape=shape, dtype=str(data.dtype))


@converter("Flatten")
def flatten(node: OnnxNode) -> Value:
    """Convert Flatten of any version."""
    return node.make("flatten", [node.required(0)], axis=node.attributes["axis"])


@converter("Transpose")
def transpose(node: OnnxNode) -> Value:
    """Convert Transpose of any version."""
    data = node.required(0)
    backwards = tuple(reversed(range(len(data.shape))))
    axes = node.attributes.get("perm", backwards)
    return node.make("transpose", [data], axes=axes)


@converter("Squeeze")
def squeeze_by_attribute(node: OnnxNode) -> Value:
    """Convert Squeeze before 13, whose axes are an attribute."""
    return _squeezed(node, node.attributes.get("axes"))


@converter("Squeeze", since=13)
def squeeze(node: OnnxNode) -> Value:
    """Convert Squeeze, whose axes are an input."""
    return _squeezed(node, node.optional_integers(1, "axes"))


def _squeezed(node: OnnxNode, axes: Sequence[int] | None) -> Value:
    data = node.required(0)
    if axes is None:
        sizes = node.extents(data)
        axes = [axis for axis, size in enumerate(sizes) if size == 1]
    for axis in axes:
        if node.extent(data, axis) != 1:
            raise UserError(f"it removes axis {axis} of {data}, whose extent is not 1")
    return node.make("squeeze", [data], axis=tuple(axes))


@converter("Unsqueeze")
def unsqueeze_by_attribute(node: OnnxNode) -> Value:
    """Convert Unsqueeze before 13, whose axes are an attribute."""
    if "axes" not in node.attributes:
        raise UserError("its attribute axes is missing")
    axes = node.attributes["axes"]
    return node.make("expand_dims", [node.required(0)], axis=axes)


@converter("Unsqueeze", since=13)
def unsqueeze(node: OnnxNode) -> Value:
    """Convert Unsqueeze, whose axes are an input."""
    axes = node.integers(node.required(1), "axes")
    return node.make("expand_dims", [node.required(0)], axis=axes)


@converter("Concat")
def concat_by_default(node: OnnxNode) -> Value:
    """Convert Concat-1, which joins along axis 1 by default."""
    return _concatenated(node, node.attributes.get("axis", 1))


@converter("Concat", since=4)
def concat(node: OnnxNode) -> Value:
    """Convert Concat, whose axis has no default."""
    if "axis" not in node.attributes:
        raise UserError("its attribute axis is missing")
    return _concatenated(node, node.attributes["axis"])


def _concatenated(node: OnnxNode, axis: int) -> Value:
    parts = node.all_inputs()
    if not parts:
        raise UserError("it has no tensors to join")
    for part in parts:
        node.extent(part, axis)
    return node.make_fitting("concatenate", parts, axis=axis)


@converter("Expand")
def expand(node: OnnxNode) -> Value:
    """Convert Expand of any version, which broadcasts in both directions."""
    data = node.required(0)
    wanted = node.extents_in(node.required(1), "shape")
    if any(isinstance(extent, int) and extent < 0 for extent in wanted):
        raise UserError(f"its shape {list(wanted)} has a negative extent")
    missing = len(wanted) - len(data.shape)
    if missing > 0:
        data = node.make("expand_dims", [data], axis=tuple(range(missing)))
    aligned = (*[1] * -missing, *wanted)
    counts: list[int] = []
    for axis, extent in enumerate(aligned):
        if extent == 1 or are_equal(data.shape[axis], extent):
            counts.append(1)
            continue
        if not isinstance(extent, int):
            raise NotKnownError
        if node.extent(data, axis) != 1:
            raise UserError(
                f"{node.required(0)} does not broadcast to the shape {list(wanted)}"
            )
        counts.append(extent)
    if all(count == 1 for count in counts):
        return data
    return node.make("tile", [data], reps=tuple(counts))


@converter("Tile")
def tile_along_an_axis(node: OnnxNode) -> Value:
    """Convert Tile-1, which repeats along one axis. Its count and axis may be floats."""
    data = node.required(0)
    count = node.truncated(node.required(1), "tiles")
    axis = node.truncated(node.required(2), "axis")
    counts = [1] * len(data.shape)
    counts[node.axis(axis, len(counts))] = count
    return node.make("tile", [data], reps=tuple(counts))


@converter("Tile", since=6)
def tile(node: OnnxNode) -> Value:
    """Convert Tile, which repeats along all axes."""
    data = node.required(0)
    counts = node.integers(node.required(1), "repeats")
    if len(counts) != len(data.shape):
        raise UserError(f"it has {len(counts)} repeats for {data}")
    return node.make("tile", [data], reps=counts)


@converter("Split")
def split_by_attribute(node: OnnxNode) -> list[Value]:
    """Convert Split before 13, whose sizes are an attribute; Split-1 may have an input instead."""
    sizes = node.attributes.get("split")
    given = node.input(1)
    if sizes is None and given is not None:
        # Split-1 gives sizes in the element type of the data.
        elements = node.known(given).reshape(-1)
        if not np.isfinite(elements).all():
            raise UserError(f"its sizes {elements.tolist()} are not integers")
        sizes = tuple(int(one) for one in elements)
    return _parts(node, sizes, node.attributes.get("axis", 0), must_be_equal=True)


@converter("Split", since=13)
def split(node: OnnxNode) -> list[Value]:
    """Convert Split-13, whose sizes are an input."""
    sizes = node.optional_integers(1, "split")
    return _parts(node, sizes, node.attributes["axis"], must_be_equal=True)


@converter("Split", since=18)
def split_by_number(node: OnnxNode) -> list[Value]:
    """Convert Split, whose last part may be smaller than the others."""
    sizes = node.optional_integers(1, "split")
    count = node.attributes.get("num_outputs")
    if count is not None and sizes is not None:
        raise UserError("it has both sizes and num_outputs")
    if count is not None and count != len(node.outputs):
        raise UserError(
            f"it has {len(node.outputs)} outputs, but num_outputs is {count}"
        )
    return _parts(node, sizes, node.attributes["axis"], must_be_equal=False)


def _parts(
    node: OnnxNode, sizes: Sequence[int] | None, axis: int, must_be_equal: bool
) -> list[Value]:
    data = node.required(0)
    extent = node.extent(data, axis)
    count = len(node.outputs)
    if sizes is None:
        if must_be_equal and extent % count:
            raise UserError(
                f"it cannot divide axis {axis} of {data} into {count} parts"
            )
        size = -(-extent // count)
        rest = extent - size * (count - 1)
        if rest < 0:
            raise UserError(
                f"it cannot divide axis {axis} of {data} into {count} parts"
            )
        sizes = [size] * (count - 1) + [rest]
    if len(sizes) != count:
        raise UserError(f"it has {len(sizes)} sizes and {count} outputs")
    if min(sizes) < 0 or sum(sizes) != extent:
        raise UserError(f"its sizes {list(sizes)} do not divide axis {axis} of {data}")
    return list(node.make_all("split", [data], axis=axis, sizes=tuple(sizes)))
