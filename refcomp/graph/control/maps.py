"""Maps from integers or texts to elements, which only the executor knows.

A map of a run is a dictionary of Python. These operators move its elements into tensors, or those
of tensors into maps; kernels compute with them.

Source: the ONNX operator specification, ai.onnx.ml: CastMap, DictVectorizer, ZipMap.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from refcomp.foundation.dtype import STRING, DType, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.control.machine import RunValue, as_map, as_tensor
from refcomp.graph.control.operator import (
    Attributes,
    ControlCall,
    ControlOperator,
    NodeParts,
    check_kind,
    refuse,
)
from refcomp.graph.control.types import NodeType, element_dtype, unshaped
from refcomp.graph.graph import Array, Value, ValueKind
from refcomp.topi.operator import AttributeSpec

_MAPS = (ValueKind.INTEGER_MAP, ValueKind.STRING_MAP)
_TENSORS = (ValueKind.TENSOR, ValueKind.UNSHAPED)
_KEYS = AttributeSpec("keys", (str,), required=True)
# Elements of a tensor whose places are the keys of a map.
MAX_LENGTH = 1 << 24


def check_map(value: object, dtype: DType, keys_are_texts: bool, what: str) -> None:
    """Raise UserError unless a caller may give `value` as a map.

    Args:
        value: what the caller gave.
        dtype: that of the elements.
        keys_are_texts: False if the keys are integers.
        what: names the value in the message.
    """
    if not isinstance(value, Mapping):
        raise UserError(
            f"{what} cannot be a {type(value).__name__}", remedy="pass a dictionary"
        )
    kind = "texts" if keys_are_texts else "integers"
    for key in value:
        if not (isinstance(key, str) if keys_are_texts else _is_integer(key)):
            raise UserError(
                f"{what} cannot have the key {key!r:.40}", remedy=f"use {kind}"
            )
    for element in value.values():
        if not _fits(element, dtype):
            raise UserError(
                f"{what} cannot have the element {element!r:.40}",
                why=f"its elements are {dtype}",
            )


def _is_integer(one: object) -> bool:
    is_integer = isinstance(one, int | np.integer) and not isinstance(one, bool)
    return is_integer and -(2**63) <= int(one) < 2**63  # type: ignore[call-overload]


def _fits(element: object, dtype: DType) -> bool:
    """Return True for an element that a tensor of the dtype can hold."""
    if dtype == STRING:
        return isinstance(element, str)
    if not dtype.is_int:
        return isinstance(element, float | np.floating) or _is_integer(element)
    if not _is_integer(element):
        return False
    limits = np.iinfo(to_numpy(dtype))
    number = int(element)  # type: ignore[call-overload]
    return bool(limits.min <= number <= limits.max)


def _keys(attributes: Attributes) -> list[Any]:
    """Return the keys of the attribute `keys`: texts or integers, each once."""
    text = str(attributes["keys"])
    try:
        keys = json.loads(text)
    except ValueError:
        keys = None
    is_list = isinstance(keys, list) and bool(keys)
    if not is_list or not (_are(keys, str) or _are(keys, int)):
        refuse(f"keys cannot be read from {text[:40]!r}", "give a list: [1, 2]")
    return keys  # type: ignore[no-any-return]


def _are(keys: list[Any], kind: type) -> bool:
    return all(type(key) is kind for key in keys)


def _map(operator: str, node: NodeParts, *kinds: ValueKind) -> Value:
    """Return the map that a node reads, whose dtype its attribute must name."""
    given = check_kind(operator, "map", node.inputs[0], *kinds)
    dtype = element_dtype(str(node.attributes["dtype"]))
    if dtype != given.dtype:
        refuse(f"{operator} cannot read {dtype} from {given}", f"say {given.dtype}")
    return given


def _lookup_types(node: NodeParts) -> list[NodeType]:
    given = _map("map_lookup", node, *_MAPS)
    keys = _keys(node.attributes)
    if _are(keys, str) != (given.kind is ValueKind.STRING_MAP):
        refuse(f"map_lookup cannot find {keys[0]!r} in {given}", "use keys of the map")
    if given.dtype == STRING:
        return [unshaped(STRING)]
    return [NodeType(given.dtype, (1, len(keys)))]


def _lookup(call: ControlCall) -> list[RunValue]:
    """Return the element of each key [1, keys]; 0 or an empty text for a key without one."""
    found = as_map(call.inputs[0], "map")
    dtype = _dtype_of(call)
    missing: object = "" if dtype.kind == "O" else 0
    elements = [found.get(key, missing) for key in _keys(call.attributes)]
    return [call.machine.tensor(_row(elements, dtype))]


def _dtype_of(call: ControlCall) -> np.dtype[Any]:
    """Return the dtype of the elements, which the attribute `dtype` says."""
    dtype = element_dtype(str(call.attributes["dtype"]))
    return np.dtype(object) if dtype == STRING else to_numpy(dtype)


def _row(elements: list[Any], dtype: np.dtype[Any]) -> Array:
    return np.array(elements, dtype).reshape(1, len(elements))


def _values_types(node: NodeParts) -> list[NodeType]:
    given = _map("map_values", node, ValueKind.INTEGER_MAP)
    length = node.attributes.get("length", -1)
    if not isinstance(length, int) or length > MAX_LENGTH:
        refuse(
            f"map_values cannot make a tensor of {length} elements",
            f"give a length of at most {MAX_LENGTH}",
        )
    return [unshaped(given.dtype)]


def _values(call: ControlCall) -> list[RunValue]:
    """Return the elements in the order of their keys, or at the places that the keys say."""
    found = as_map(call.inputs[0], "map")
    dtype = _dtype_of(call)
    length = call.attributes.get("length", -1)
    assert isinstance(length, int)
    if length < 0:
        elements = [found[key] for key in sorted(found)]
        return [call.machine.tensor(_row(elements, dtype))]
    is_text = dtype.kind == "O"
    missing = str(call.attributes.get("missing", "")) if is_text else 0
    row = np.full((1, length), missing, dtype)
    for key, element in found.items():
        if not 0 <= key < length:
            raise UserError(
                f"a map has the key {key}, but its tensor has {length} places",
                remedy=f"use keys from 0 to {length - 1}",
            )
        row[0, key] = element
    return [call.machine.tensor(row)]


def _zip_types(node: NodeParts) -> list[NodeType]:
    data = check_kind("zip_map", "data", node.inputs[0], *_TENSORS)
    keys = _keys(node.attributes)
    if data.dtype == STRING:
        refuse(f"zip_map cannot take {data}", "give a tensor of numbers")
    if data.kind is ValueKind.TENSOR and len(data.shape) not in (1, 2):
        refuse(f"zip_map cannot take {data}", "give a tensor [rows, keys] or [keys]")
    is_text = _are(keys, str)
    kind = ValueKind.STRING_MAPS if is_text else ValueKind.INTEGER_MAPS
    return [NodeType(data.dtype, (), kind)]


def _zip(call: ControlCall) -> list[RunValue]:
    """Return a map for each row, from the keys to its elements."""
    data = call.machine.read(as_tensor(call.inputs[0], "data"))
    keys = _keys(call.attributes)
    if data.ndim not in (1, 2) or data.shape[-1] != len(keys):
        raise UserError(
            f"zip_map has {len(keys)} keys for a tensor of the shape {list(data.shape)}",
            remedy="give a column for each key",
        )
    rows = data.reshape(-1, len(keys)).tolist()
    return [tuple(dict(zip(keys, row, strict=True)) for row in rows)]


_DTYPE = AttributeSpec("dtype", (str,), required=True)

MAP_OPERATORS = (
    ControlOperator(
        "map_lookup",
        inputs=("map",),
        attributes=(_KEYS, _DTYPE),
        rule=_lookup_types,
        run=_lookup,
    ),
    ControlOperator(
        "map_values",
        inputs=("map",),
        attributes=(
            _DTYPE,
            AttributeSpec("length", (int,), -1),
            AttributeSpec("missing", (str,), ""),  # the text at a place without a key
        ),
        rule=_values_types,
        run=_values,
    ),
    ControlOperator(
        "zip_map", inputs=("data",), attributes=(_KEYS,), rule=_zip_types, run=_zip
    ),
)
