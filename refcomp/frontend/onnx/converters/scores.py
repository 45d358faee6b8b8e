"""Scores of classifiers and regressors in ai.onnx.ml: transform them, and find the best class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.converters.labels import values_at
from refcomp.frontend.onnx.deferred import defer
from refcomp.frontend.onnx.element_types import FLOAT, INT64
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.graph.graph import Array, Value

# Adds the nodes of a classifier, given the labels of its classes.
Classify = Callable[[OnnxNode, Array], list[Value]]

_ERF_INV = 0.147  # the constant of Winitzki's approximation
_ALMOST_ZERO = 1e-7


def class_labels(node: OnnxNode, integers: str) -> Array:
    """Return the labels of the classes, texts or integers.

    Args:
        node: the classifier.
        integers: the name of the attribute with integer labels.
    """
    texts = node.attributes.get("classlabels_strings", ())
    numbers = node.attributes.get(integers, ())
    if bool(texts) == bool(numbers):
        raise UserError(
            f"it has {len(texts)} classlabels_strings and {len(numbers)} {integers}",
            remedy="give one of the two lists, with a label for each class",
        )
    return np.array(texts, object) if texts else np.array(numbers, np.int64)


def with_labels(node: OnnxNode, integers: str, convert: Classify) -> list[Value]:
    """Return the class of each row and the scores, where labels may be texts.

    With texts, the classifier returns places among them, which are looked up. So it can be
    converted in a run, which knows no texts.

    Args:
        node: the classifier.
        integers: the name of the attribute with integer labels.
        convert: adds the nodes of a classifier with the given labels.
    """
    labels = class_labels(node, integers)
    if labels.dtype.kind != "O":
        return convert(node, labels)
    data = node.required(0)
    places = np.arange(len(labels))
    if data.is_tensor and data.shape and isinstance(data.shape[-1], int):
        winners, scores = convert(node, places)
    else:
        attributes = {**node.attributes, integers: tuple(places.tolist())}
        del attributes["classlabels_strings"]
        numbered = replace(node, attributes=attributes)
        winners, scores = defer(numbered, "ai.onnx.ml", "", [INT64, FLOAT])
    return [values_at(node, winners, labels), scores]


def best_class(node: OnnxNode, scores: Value) -> Value:
    """Return the place of the greatest score of each row, the first of equal ones."""
    return node.make("argmax", [scores], axis=1, keepdims=False)


def transformed(node: OnnxNode, scores: Value, transform: str) -> Value:
    """Return the scores of each row after a transform: SOFTMAX, LOGISTIC, ..."""
    return _function(transform)(node, scores)


def _function(transform: str) -> Callable[[OnnxNode, Value], Value]:
    found = _TRANSFORMS.get(transform)
    if found is None:
        raise UserError(
            f"its post_transform is {transform!r}",
            remedy=advise(
                transform, _TRANSFORMS, f"use one of {', '.join(_TRANSFORMS)}"
            ),
        )
    return found


def two_scores(
    node: OnnxNode, score: Value, transform: str, *, is_probability: bool
) -> Value:
    """Return scores of two classes, given that of the second one.

    The other score is the complement to 1 if the score is a probability, else the opposite. Of the
    transforms, LOGISTIC is applied to both signs of the score, and PROBIT to both scores.

    Args:
        node: the classifier.
        score: floats [rows, 1].
        transform: the attribute post_transform.
        is_probability: True if the score is meant to be one.
    """
    function = _function(transform)
    opposite = node.make("negative", [score])
    if transform == "LOGISTIC":
        both = node.make("concatenate", [opposite, score], axis=1)
        return function(node, both)
    if is_probability:
        opposite = _sum(node, opposite, 1.0)
    both = node.make("concatenate", [opposite, score], axis=1)
    return function(node, both) if transform == "PROBIT" else both


def _number(node: OnnxNode, number: float, like: Value) -> Value:
    return node.constant(number, like.dtype.dtype)


def _sum(node: OnnxNode, data: Value, number: float) -> Value:
    return node.make("add", [data, _number(node, number, data)])


def _product(node: OnnxNode, data: Value, number: float) -> Value:
    return node.make("multiply", [data, _number(node, number, data)])


def _softmax_zero(node: OnnxNode, scores: Value) -> Value:
    """Return the softmax of the scores that are not 0; a score of almost 0 stays almost 0."""
    greatest = node.make("max", [scores], axis=-1, keepdims=True)
    shifted = node.make("exp", [node.make("subtract", [scores, greatest])])
    scale = node.make("exp", [node.make("negative", [greatest])])
    scaled = node.make("multiply", [scores, scale])
    size = node.make("abs", [scores])
    is_zero = node.make("less_equal", [size, _number(node, _ALMOST_ZERO, scores)])
    terms = node.make("where", [is_zero, scaled, shifted])
    total = node.make("sum", [terms], axis=-1, keepdims=True)
    is_nothing = node.make("equal", [total, _number(node, 0.0, scores)])
    quotient = node.make("divide", [terms, total])
    return node.make("where", [is_nothing, _number(node, 0.5, scores), quotient])


def _probit(node: OnnxNode, scores: Value) -> Value:
    """Return sqrt(2) * erfinv(2 * x - 1), by the approximation that ONNX's evaluators use.

    Reference: S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
    """
    x = _sum(node, _product(node, scores, 2.0), -1.0)
    product = node.make(
        "multiply", [_sum(node, node.make("negative", [x]), 1.0), _sum(node, x, 1.0)]
    )
    log = node.make("log", [product])
    middle = _sum(node, _product(node, log, 0.5), 2 / (math.pi * _ERF_INV))
    square = node.make("multiply", [middle, middle])
    inner = node.make("subtract", [square, _product(node, log, 1 / _ERF_INV)])
    root = node.make("sqrt", [inner])
    size = node.make("sqrt", [node.make("subtract", [root, middle])])
    return _product(
        node, node.make("multiply", [node.make("sign", [x]), size]), math.sqrt(2)
    )


_TRANSFORMS: dict[str, Callable[[OnnxNode, Value], Value]] = {
    "NONE": lambda _, scores: scores,
    "SOFTMAX": lambda node, scores: node.make("softmax", [scores], axis=-1),
    "LOGISTIC": lambda node, scores: node.make("sigmoid", [scores]),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
