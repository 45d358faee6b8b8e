"""Linear models in ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.converters.labels import values_at
from refcomp.frontend.onnx.converters.scores import (
    best_class,
    transformed,
    two_scores,
    with_labels,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Array, Value

ML = "ai.onnx.ml"


def floats_of(node: OnnxNode, name: str) -> Array:
    """Return an attribute as a vector of f32, empty if it is left out."""
    return np.array(node.attributes.get(name, ()), np.float32)


def rows_of(node: OnnxNode) -> Value:
    """Return the input as f32 [rows, features]."""
    data = node.cast(node.required(0), F32)
    if len(data.shape) == 1:
        return node.make("expand_dims", [data], axis=0)
    if len(data.shape) != 2:
        raise UserError(
            f"its input is {node.required(0)}", remedy="give a tensor [rows, features]"
        )
    return data


def attribute_matrix(node: OnnxNode, name: str, columns: int) -> Array:
    """Return an attribute as a matrix with a number of columns."""
    numbers = floats_of(node, name)
    if columns < 1 or not numbers.size or numbers.size % columns:
        raise UserError(
            f"its {name} has {numbers.size} numbers, not a multiple of {columns}",
            why=f"the input is {node.required(0)}",
        )
    return numbers.reshape(-1, columns)


def _linear(node: OnnxNode) -> tuple[Value, int]:
    """Return x @ coefficients + intercepts [rows, targets], and the number of targets."""
    data = rows_of(node)
    weight = attribute_matrix(node, "coefficients", node.extent(data, 1))
    scores = node.make("matmul", [data, node.constant(weight)], trans_b=True)
    intercepts = floats_of(node, "intercepts")
    if len(intercepts) not in (0, len(weight)):
        raise UserError(
            f"it has {len(intercepts)} intercepts for {len(weight)} targets",
            remedy="give one for each target, or none",
        )
    if len(intercepts):
        scores = node.make("add", [scores, node.constant(intercepts)])
    return scores, len(weight)


@converter("LinearRegressor", domain=ML)
def linear_regressor(node: OnnxNode) -> Value:
    """Convert LinearRegressor."""
    scores, targets = _linear(node)
    if targets != node.attributes["targets"]:
        raise UserError(
            f"its coefficients are for {targets} targets, but it has "
            f"{node.attributes['targets']}"
        )
    return transformed(node, scores, node.attributes["post_transform"])


@converter("LinearClassifier", domain=ML)
def linear_classifier(node: OnnxNode) -> list[Value]:
    """Convert LinearClassifier: the class of each row, and the scores."""
    return with_labels(node, "classlabels_ints", _linear_classes)


def _linear_classes(node: OnnxNode, labels: Array) -> list[Value]:
    scores, targets = _linear(node)
    transform = node.attributes["post_transform"]
    if targets == 1 and len(labels) == 2:
        places = _second_of_two(node, scores, 0.0)
        both = two_scores(node, scores, transform, is_probability=True)
        return [values_at(node, places, labels), both]
    if targets != len(labels):
        raise UserError(
            f"its coefficients are for {targets} classes, but it has {len(labels)} labels",
            remedy="give a label for each class",
        )
    winners = values_at(node, best_class(node, scores), labels)
    return [winners, transformed(node, scores, transform)]


def _second_of_two(node: OnnxNode, score: Value, limit: float) -> Value:
    """Return 1 for each row [rows, 1] whose score is greater than a limit, else 0."""
    flat = node.make("squeeze", [score], axis=1)
    is_second = node.make("greater", [flat, node.constant(limit, np.float32)])
    return node.cast(is_second, "int64")
