"""Operators that search by values: TopK, Unique, ArgMax and ArgMin."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value


@converter("ArgMax")
def argmax(node: OnnxNode) -> Value:
    """Convert ArgMax of any version."""
    return _index_of_best(node, "argmax")


@converter("ArgMin")
def argmin(node: OnnxNode) -> Value:
    """Convert ArgMin of any version."""
    return _index_of_best(node, "argmin")


def _index_of_best(node: OnnxNode, operator: str) -> Value:
    return node.make(
        operator,
        [node.required(0)],
        axis=node.attributes["axis"],
        keepdims=node.attributes["keepdims"] == 1,
        select_last_index=bool(node.attributes.get("select_last_index", 0)),
    )


@converter("TopK")
def topk_by_attribute(node: OnnxNode) -> Sequence[Value]:
    """Convert TopK-1, whose k is an attribute."""
    if "k" not in node.attributes:
        raise UserError("its attribute k is missing")
    return _best(node, node.attributes["k"])


@converter("TopK", since=10)
def topk(node: OnnxNode) -> Sequence[Value]:
    """Convert TopK, whose k is an input. Its results are sorted, asked or not."""
    return _best(node, node.integer(node.required(1), "K"))


def _best(node: OnnxNode, count: int) -> Sequence[Value]:
    data = node.required(0)
    axis = node.attributes["axis"]
    node.extent(data, axis)
    is_ascend = not node.attributes.get("largest", 1)
    return node.make_all(
        "topk", [data], k=count, axis=axis, is_ascend=is_ascend, dtype="int64"
    )


@converter("Unique")
def unique(node: OnnxNode) -> list[Value | None]:
    """Convert Unique of any version."""
    data = node.required(0)
    shape = node.extents(data)
    elements = node.cast(data, "uint8") if data.dtype.is_bool else data
    is_sorted = bool(node.attributes["sorted"])
    axis = node.attributes.get("axis")
    place = None if axis is None else node.axis(axis, len(shape))
    if place is not None:
        elements = _numbered_slices(node, elements, place)
    values, first, inverse, counts, count = node.make_all(
        "unique", [elements], is_sorted=is_sorted
    )
    narrow = node.builder.narrow
    first = narrow(first, count)
    if place is not None:
        values = node.make("take", [data, first], axis=place, mode="clip")
    else:
        values = node.cast(narrow(values, count), data.dtype)
    return [values, first, inverse, narrow(counts, count)]


def _numbered_slices(node: OnnxNode, data: Value, axis: int) -> Value:
    """Return a number for each slice along an axis; the numbers are ordered as the slices.

    Slices are compared element by element, from their first one on. `unique` numbers all elements
    in ascending order. Then each two neighbouring numbers of a slice become one, and so on, until
    one number is left.
    """
    shape = node.extents(data)
    rows = shape[axis]
    columns = math.prod(shape) // rows if rows else 0
    if columns == 0:
        return node.make("zeros", [], shape=(rows,), dtype="int64")
    moved = node.make("moveaxis", [data], source=axis, destination=0)
    table = node.make("reshape", [moved], shape=(rows, columns))
    while True:
        flat = node.make_all("unique", [table])[2]
        table = node.make("reshape", [flat], shape=(rows, columns))
        if columns == 1:
            return node.make("reshape", [table], shape=(rows,))
        if columns % 2:
            table = node.make("pad", [table], pad_before=(0, 0), pad_after=(0, 1))
            columns += 1
        columns //= 2
        pairs = node.make("reshape", [table], shape=(rows, columns, 2))
        # A number is less than that of all elements, so that no two pairs give the same.
        weights = node.constant([2 * rows * columns, 1], np.int64)
        weighted = node.make("multiply", [pairs, weights])
        table = node.make("sum", [weighted], axis=2)
