"""Operators of ai.onnx.ml on maps: CastMap, DictVectorizer and ZipMap."""

from __future__ import annotations

import json

from refcomp.foundation.dtype import STRING
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.converters.labels import add_node
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value, ValueKind
from refcomp.topi.operator import Attribute

ML = "ai.onnx.ml"
_CASTS = {"TO_FLOAT": "f32", "TO_INT64": "i64", "TO_STRING": "string"}


@converter("CastMap", domain=ML, control=True)
def cast_map(node: OnnxNode) -> Value:
    """Convert CastMap: the elements by ascending keys, or at the places that the keys say."""
    given = node.required(0)
    form, wanted = node.attributes["map_form"], node.attributes["cast_to"]
    for name, one, known in (
        ("map_form", form, ("DENSE", "SPARSE")),
        ("cast_to", wanted, tuple(_CASTS)),
    ):
        if one not in known:
            raise UserError(
                f"its {name} is {one!r}",
                remedy=advise(one, known, f"use one of {', '.join(known)}"),
            )
    attributes: dict[str, Attribute] = {"dtype": str(given.dtype)}
    if form == "SPARSE":
        attributes["length"] = max(node.attributes["max_map"], 0)
        attributes["missing"] = "" if wanted == "TO_STRING" else "0"
    elements = node.builder.node("map_values", [given], attributes)
    dtype = _CASTS[wanted]
    if str(elements.dtype) == dtype:
        return elements
    if dtype == "string":
        return node.make("cast_to_string", [elements])
    if elements.dtype == STRING:
        return node.make("cast_from_string", [elements], to=dtype)
    return add_node(node, "cast", [elements], dtype, dtype=dtype)


@converter("DictVectorizer", domain=ML, control=True)
def dict_vectorizer(node: OnnxNode) -> Value:
    """Convert DictVectorizer: the element of each word of a vocabulary, 0 for a missing one."""
    given = node.required(0)
    is_text = given.kind is ValueKind.STRING_MAP
    name = "string_vocabulary" if is_text else "int64_vocabulary"
    keys = node.attributes.get(name, ())
    if not keys:
        raise UserError(
            f"its input is {given}, but it has no {name}",
            remedy="give the keys that become columns",
        )
    attributes = {"keys": json.dumps(keys), "dtype": str(given.dtype)}
    return node.builder.node("map_lookup", [given], attributes)


@converter("ZipMap", domain=ML, control=True)
def zip_map(node: OnnxNode) -> Value:
    """Convert ZipMap: a map for each row, from labels to its elements."""
    texts = node.attributes.get("classlabels_strings", ())
    numbers = node.attributes.get("classlabels_int64s", ())
    if bool(texts) == bool(numbers):
        raise UserError(
            f"it has {len(texts)} classlabels_strings and {len(numbers)} "
            "classlabels_int64s",
            remedy="give one of the two lists, with a label for each column",
        )
    keys = json.dumps(texts or numbers)
    return node.builder.node("zip_map", [node.required(0)], {"keys": keys})
