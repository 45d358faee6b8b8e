"""Operators of ai.onnx.ml on features: choose, join, replace and scale them."""

from __future__ import annotations

import math

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Value

ML = "ai.onnx.ml"


@converter("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: OnnxNode) -> Value:
    """Convert ArrayFeatureExtractor: the last axis is read at a list of indices."""
    data, indices = node.all_inputs()
    flat = node.make("reshape", [indices], shape=(-1,))
    taken = node.make("take", [data, flat], axis=-1)
    return taken if len(data.shape) > 1 else node.make("expand_dims", [taken], axis=0)


@converter("Binarizer", domain=ML)
def binarizer(node: OnnxNode) -> Value:
    """Convert Binarizer: 1 above the threshold, else 0."""
    data = node.required(0)
    number = limit = node.attributes["threshold"]
    if not data.dtype.is_float:
        limits = np.iinfo(to_numpy(data.dtype))
        if not limits.min <= limit < limits.max:
            none_or_all = "zeros_like" if limit > 0 else "ones_like"
            return node.make(none_or_all, [data])
        # An integer is greater than a number if it is greater than that number rounded down.
        number = math.floor(limit)
    is_greater = node.make("greater", [data, node.constant(number, data.dtype.dtype)])
    return node.cast(is_greater, data.dtype)


@converter("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: OnnxNode) -> Value:
    """Convert FeatureVectorizer: rows are joined, each cut or filled up to its dimension."""
    given = node.all_inputs()
    dimensions = node.attributes.get("inputdimensions", ())
    if len(dimensions) != len(given) or min(dimensions, default=0) < 0:
        raise UserError(
            f"it has {len(given)} inputs, but the inputdimensions {list(dimensions)}",
            remedy="give a dimension >= 0 for each input",
        )
    parts = []
    for value, size in zip(given, dimensions, strict=True):
        row = value
        if len(value.shape) == 1:
            row = node.make("expand_dims", [value], axis=0)
        row = node.make("flatten", [row], axis=1)
        missing = size - node.extent(row, 1)
        if missing:  # a negative number removes elements
            row = node.make("pad", [row], pad_before=(0, 0), pad_after=(0, missing))
        parts.append(node.cast(row, "float32"))
    return node.make("concatenate", parts, axis=1)


@converter("Imputer", domain=ML)
def imputer(node: OnnxNode) -> Value:
    """Convert Imputer: one value, which may be NaN, is replaced by values of each feature."""
    data = node.required(0)
    kind = "float" if data.dtype.is_float else "int64"
    wanted = node.attributes[f"replaced_value_{kind}"]
    values = node.attributes.get(f"imputed_value_{kind}s", ())
    features = node.extent(data, -1) if len(values) != 1 else 1
    if len(values) not in (1, features):
        raise UserError(
            f"it has {len(values)} values of imputed_value_{kind}s for {data}",
            remedy=f"give one, or one for each of the {features} features",
        )
    if not data.dtype.is_float:
        limits = np.iinfo(to_numpy(data.dtype))
        for number in (wanted, *values):
            if not limits.min <= number <= limits.max:
                raise UserError(f"{data} cannot hold {number}, which is to be replaced")
    if isinstance(wanted, float) and math.isnan(wanted):
        is_wanted = node.make("isnan", [data])
    else:
        one = node.constant(wanted, data.dtype.dtype)
        is_wanted = node.make("equal", [data, one])
    replacement = node.constant(values, data.dtype.dtype)
    return node.make("where", [is_wanted, replacement, data])


@converter("Normalizer", domain=ML)
def normalizer(node: OnnxNode) -> Value:
    """Convert Normalizer. A row whose norm is 0 stays as it is."""
    data = node.cast(node.required(0), "float32")
    axis = 0 if len(data.shape) == 1 else 1
    norm = node.attributes["norm"]
    if norm not in ("MAX", "L1", "L2"):
        raise UserError(f"its norm is {norm!r}", remedy="use MAX, L1 or L2")
    operator = {"MAX": "max", "L1": "l1_norm", "L2": "l2_norm"}[norm]
    size = node.make(operator, [data], axis=axis, keepdims=True)
    is_zero = node.make("equal", [size, node.constant(0.0, np.float32)])
    divisor = node.make("where", [is_zero, node.constant(1.0, np.float32), size])
    return node.make("divide", [data, divisor])


@converter("Scaler", domain=ML)
def scaler(node: OnnxNode) -> Value:
    """Convert Scaler: (x - offset) * scale, each for all features or one by one."""
    data = node.cast(node.required(0), "float32")
    moved = data
    for operator, name in (("subtract", "offset"), ("multiply", "scale")):
        values = node.attributes.get(name, ())
        features = node.extent(data, -1) if len(values) != 1 else 1
        if len(values) not in (1, features):
            raise UserError(
                f"its {name} has {len(values)} numbers for {data}",
                remedy=f"give one, or one for each of the {features} features",
            )
        moved = node.make(operator, [moved, node.constant(values, np.float32)])
    return moved
