"""Operators that read or write elements at indices."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("Gather")
def gather(node: OnnxNode) -> Value:
    """Convert Gather of any version; an index that is out of range is taken modulo the extent."""
    inputs = [node.required(0), node.required(1)]
    axis = node.axis(node.attributes["axis"], len(inputs[0].shape))
    return node.make("take", inputs, axis=axis, mode="wrap")


@converter("GatherElements")
def gather_elements(node: OnnxNode) -> Value:
    """Convert GatherElements; an index that is out of range is moved to the nearest."""
    inputs = [node.required(0), node.required(1)]
    return node.make_fitting("gather_elements", inputs, axis=node.attributes["axis"])


@converter("GatherND")
def gather_nd(node: OnnxNode) -> Value:
    """Convert GatherND of any version; version 11 has no batches."""
    data = node.required(0)
    indices = node.required(1)
    node.extent(indices, -1)
    batches = node.attributes.get("batch_dims", 0)
    return node.make_fitting("gather_nd", [data, indices], batch_dims=batches)


@converter("Scatter")
@converter("ScatterElements")
def scatter_elements(node: OnnxNode) -> Value:
    """Convert Scatter and ScatterElements; before 16, they only replace elements."""
    return node.make_fitting(
        "scatter_elements",
        [node.required(place) for place in range(3)],
        axis=node.attributes["axis"],
        reduction=node.attributes.get("reduction", "none"),
    )


@converter("ScatterND")
def scatter_nd(node: OnnxNode) -> Value:
    """Convert ScatterND of any version; before 16, it only replaces slices."""
    inputs = [node.required(place) for place in range(3)]
    node.extent(inputs[1], -1)
    reduction = node.attributes.get("reduction", "none")
    return node.make_fitting("scatter_nd", inputs, reduction=reduction)


@converter("TensorScatter")
def tensor_scatter(node: OnnxNode) -> Value:
    """Convert TensorScatter: write an update into each row of a batch, from an index on.

    Each place of the cache finds the element of the update that goes there. A linear update that
    goes beyond the end of the cache is cut off.
    """
    cache = node.required(0)
    update = node.required(1)
    mode = node.attributes["mode"]
    if mode not in ("linear", "circular"):
        raise UserError(f"its mode is {mode!r}", remedy="use linear or circular")
    rank = len(cache.shape)
    axis = node.axis(node.attributes["axis"], rank)
    if axis == 0:
        raise UserError("its axis is 0, which is that of the batch")
    batch, *_ = node.extents(cache)
    length = node.extent(cache, axis)
    count = node.extent(update, axis)
    are_other_extents_equal = all(
        place == axis or one == other
        for place, (one, other) in enumerate(
            zip(node.extents(cache), node.extents(update), strict=False)
        )
    )
    if len(update.shape) != rank or not are_other_extents_equal:
        raise UserError(f"its update {update} does not fit into {cache}")
    if count > length:
        raise UserError(f"it writes {count} elements into {length} of {cache}")
    places = node.constant(np.arange(length)[None, :], np.int64)
    start = node.input(2)
    if start is None:
        start = node.constant(np.zeros(batch), np.int64)
    if node.extents(start) != (batch,):
        raise UserError(f"its write_indices {start} are not one for each of {batch}")
    column = node.make("expand_dims", [start], axis=1)
    source = node.make("subtract", [places, column])
    if mode == "circular":
        source = node.make("floor_mod", [source, node.constant(length, np.int64)])
    zero = node.constant(0, np.int64)
    is_after = node.make("greater_equal", [source, zero])
    is_before = node.make("less", [source, node.constant(count, np.int64)])
    is_written = node.make("logical_and", [is_after, is_before])
    # A place that keeps its element reads any one of the update, which is not used.
    rows = node.make("moveaxis", [update], source=axis, destination=1)
    pairs = node.make("expand_dims", [source], axis=2)
    found = node.make("gather_nd", [rows, pairs], batch_dims=1)
    moved = node.make("moveaxis", [found], source=1, destination=axis)
    shape = [1] * rank
    shape[0], shape[axis] = batch, length
    mask = node.make("reshape", [is_written], shape=tuple(shape))
    return node.make("where", [mask, moved, cache])


@converter("NonZero")
def nonzero(node: OnnxNode) -> Value:
    """Convert NonZero of any version."""
    data = node.required(0)
    indices, count = node.make_all("nonzero", [data])
    return node.builder.narrow(indices, count, 1)


@converter("Compress")
def compress(node: OnnxNode) -> Value:
    """Convert Compress of any version."""
    data = node.required(0)
    node.extents(data)
    inputs = [data, node.required(1)]
    node.extents(inputs[1])
    axis = node.attributes.get("axis")
    if axis is None:
        kept, count = node.make_all("compress", inputs)
        return node.builder.narrow(kept, count)
    kept, count = node.make_all("compress", inputs, axis=axis)
    return node.builder.narrow(kept, count, axis)


@converter("OneHot")
def one_hot_from_the_front(node: OnnxNode) -> Value:
    """Convert OneHot-9, for which a negative index is out of range."""
    indices = _whole(node, node.required(0))
    if indices.dtype.min_value != 0:
        indices = node.cast(indices, "int64")
        is_negative = node.make("less", [indices, node.constant(0, np.int64)])
        none = node.constant(np.iinfo(np.int64).max, np.int64)
        indices = node.make("where", [is_negative, none, indices])
    return _one_hot(node, indices)


@converter("OneHot", since=11)
def one_hot(node: OnnxNode) -> Value:
    """Convert OneHot, whose negative indices count from the end."""
    return _one_hot(node, _whole(node, node.required(0)))


def _whole(node: OnnxNode, value: Value) -> Value:
    """Return indices as integers."""
    return value if value.dtype.is_int else node.cast(value, "int64")


def _one_hot(node: OnnxNode, indices: Value) -> Value:
    depth = node.truncated(node.required(1), "depth")
    axis = node.attributes["axis"]
    mask = node.make("one_hot", [indices], depth=depth, axis=axis, dtype="bool")
    values = node.required(2)
    if node.extents(values) != (2,):
        raise UserError(f"its values are {values}, not the values for off and on")
    first, second = (node.constant(place, np.int64) for place in (0, 1))
    off = node.make("take", [values, first], axis=0, mode="clip")
    on = node.make("take", [values, second], axis=0, mode="clip")
    return node.make("where", [mask, on, off])
