"""Operators of ai.onnx.ml that map labels: texts or numbers to texts or numbers.

A label first becomes its place in the list of keys. Kernels find the place of a number by a binary
search; the executor finds that of a text. Then the value at the place is taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import BOOL, F32, I64
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Array, Value
from refcomp.te.tensor import DTypeLike
from refcomp.topi.operator import Attribute

ML = "ai.onnx.ml"


def add_node(
    node: OnnxNode,
    operator: str,
    inputs: Sequence[Value],
    made: DTypeLike,
    **attributes: Attribute,
) -> Value:
    """Add a node whose inputs may be tensors without a shape; `made` is the dtype of its output."""
    return node.builder.node(operator, inputs, attributes, dtype=made)


def places_of(node: OnnxNode, data: Value, keys: Sequence[Any] | Array) -> Value:
    """Return the place of each element among the keys; their number for any other element.

    Of equal keys, the last one counts. NaN is equal to NaN.

    Args:
        node: gets the nodes.
        data: texts or numbers, maybe without a shape.
        keys: texts, or numbers that the dtype of `data` has.
    """
    if node.is_string(data):
        texts = json.dumps([str(key) for key in keys])
        return node.builder.node("label_index", [data], {"labels": texts})
    array = _as_keys(data, np.asarray(keys))
    # The first of equal keys after they are reversed is the last one.
    ordered, first = np.unique(array[::-1], return_index=True)
    order = np.append(len(array) - 1 - first, len(array)).astype(np.int64)
    if not len(ordered):
        ordered = np.zeros(1, array.dtype)
        order = np.zeros(2, np.int64)
    sequence = node.constant(ordered)
    found = add_node(node, "searchsorted", [sequence, data], I64)
    nearest = add_node(node, "take", [sequence, found], data.dtype, axis=0)
    is_equal = add_node(node, "equal", [nearest, data], BOOL)
    if data.dtype.is_float:
        is_nan = [add_node(node, "isnan", [one], BOOL) for one in (nearest, data)]
        both = add_node(node, "logical_and", is_nan, BOOL)
        is_equal = add_node(node, "logical_or", [is_equal, both], BOOL)
    place = add_node(node, "take", [node.constant(order), found], I64, axis=0)
    unknown = node.constant(len(array), np.int64)
    return add_node(node, "where", [is_equal, place, unknown], I64)


def _as_keys(data: Value, keys: Array) -> Array:
    """Return keys in the dtype of `data`; UserError if they are others than it can hold."""
    if keys.dtype.kind in "fiu":
        with np.errstate(all="ignore"):
            made = keys.astype(data.dtype.dtype)
        if np.array_equal(made, keys, equal_nan=keys.dtype.kind == "f"):
            return made
    elif not keys.size:
        return np.zeros(0, data.dtype.dtype)
    raise UserError(
        f"its input is {data}, but its keys are {keys.reshape(-1)[:4].tolist()}, ...",
        remedy="give keys that the elements of the input can be",
    )


def values_at(node: OnnxNode, places: Value, values: Array) -> Value:
    """Return the values at places. Texts are looked up by the executor."""
    if values.dtype == object:
        texts = json.dumps([str(value) for value in values])
        return node.builder.node("label_at", [places], {"labels": texts})
    table = node.constant(values)
    return add_node(node, "take", [table, places], table.dtype, axis=0)


def _mapped(
    node: OnnxNode, keys: Sequence[Any] | Array, values: Array, default: Any
) -> Value:
    if len(keys) != len(values):
        raise UserError(f"it has {len(keys)} keys, but {len(values)} values")
    table = np.append(values, np.array([default], values.dtype))
    return values_at(node, places_of(node, node.required(0), keys), table)


def _texts(values: Sequence[str]) -> Array:
    return np.array(values, object)


@converter("LabelEncoder", domain=ML)
def label_encoder_of_classes(node: OnnxNode) -> Value:
    """Convert LabelEncoder-1, between texts and their places in a list."""
    names = node.attributes.get("classes_strings", ())
    return _between(node, names, range(len(names)))


@converter("CategoryMapper", domain=ML)
def category_mapper(node: OnnxNode) -> Value:
    """Convert CategoryMapper, between texts and integers."""
    names = node.attributes.get("cats_strings", ())
    return _between(node, names, node.attributes.get("cats_int64s", ()))


def _between(node: OnnxNode, names: Sequence[str], numbers: Sequence[int]) -> Value:
    if node.is_string(node.required(0)):
        values = np.asarray(numbers, np.int64)
        return _mapped(node, names, values, node.attributes["default_int64"])
    return _mapped(node, numbers, _texts(names), node.attributes["default_string"])


@converter("LabelEncoder", since=2, domain=ML)
def label_encoder(node: OnnxNode) -> Value:
    """Convert LabelEncoder, between texts, integers and floats."""
    _, keys = _one_list(node, "keys")
    kind, values = _one_list(node, "values")
    attributes = node.attributes
    if kind != "tensor":
        return _mapped(node, keys, values, attributes[f"default_{kind[:-1]}"])
    given = attributes.get("default_tensor")
    if given is not None:
        default = np.asarray(given).reshape(-1)[0]
    elif values.dtype == object:
        default = "_Unused"
    else:
        default = -0.0 if values.dtype.kind == "f" else -1
    return _mapped(node, keys, values, default)


def _one_list(node: OnnxNode, stem: str) -> tuple[str, Array]:
    """Return the kind and the elements of the one attribute with this stem that is given."""
    dtypes = {"strings": object, "int64s": np.int64, "floats": np.float32}
    given = [
        kind for kind in (*dtypes, "tensor") if f"{stem}_{kind}" in node.attributes
    ]
    if len(given) != 1:
        raise UserError(
            f"it has {len(given)} attributes {stem}_*", remedy="give one of them"
        )
    elements = node.attributes[f"{stem}_{given[0]}"]
    if given[0] == "tensor":
        return given[0], elements.reshape(-1)
    return given[0], np.array(elements, dtypes[given[0]])


@converter("OneHotEncoder", domain=ML)
def one_hot_encoder(node: OnnxNode) -> Value:
    """Convert OneHotEncoder, of texts, or of numbers without their fractions."""
    data = node.required(0)
    kind = "cats_strings" if node.is_string(data) else "cats_int64s"
    labels = node.attributes.get(kind, ())
    if not labels:
        raise UserError(f"its input is {data}, but it has no {kind}")
    if not node.is_string(data) and str(data.dtype) != "i64":
        data = add_node(node, "cast", [data], I64, dtype="int64")
    places = places_of(node, data, labels)
    if not node.attributes["zeros"]:
        least = node.constant(len(labels), np.int64)
        is_known = add_node(node, "less", [places, least], BOOL)
        fault = "OneHotEncoder meets an element that is not in its list of categories"
        places = node.builder.node("checked", [places, is_known], {"fault": fault})
    return add_node(node, "one_hot", [places], F32, depth=len(labels), dtype="float32")
