"""Support vector machines in ai.onnx.ml."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.frontend.onnx.converters.labels import values_at
from refcomp.frontend.onnx.converters.linear_models import (
    attribute_matrix,
    floats_of,
    rows_of,
)
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
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
# Newton's iteration doubles the right digits in each step. So many steps are enough for matrices
# whose condition is below 1e7.
_STEPS = 30
_LEAST_PROBABILITY = 1e-7


def _products(node: OnnxNode, data: Value, vectors: Array) -> Value:
    """Return the kernel function of each row and each vector [rows, vectors]."""
    kind = node.attributes["kernel_type"]
    if kind not in _KERNELS:
        raise UserError(
            f"its kernel_type is {kind!r}",
            remedy=advise(kind, _KERNELS, f"use one of {', '.join(_KERNELS)}"),
        )
    given = floats_of(node, "kernel_params")
    gamma, coefficient, degree = (*given.tolist(), 0.0, 0.0, 0.0)[:3]
    if kind == "RBF":
        rows = node.make("expand_dims", [data], axis=1)
        distances = node.make("squared_difference", [rows, node.constant(vectors)])
        total = node.make("sum", [distances], axis=2)
        return node.make("exp", [_scaled(node, total, -gamma)])
    products = node.make("matmul", [data, node.constant(vectors)], trans_b=True)
    if kind == "LINEAR":
        return products
    scaled = _scaled(node, products, gamma)
    moved = node.make("add", [scaled, node.constant(coefficient, np.float32)])
    if kind == "SIGMOID":
        return node.make("tanh", [moved])
    return node.make("power", [moved, node.constant(degree, np.float32)])


def _scaled(node: OnnxNode, data: Value, factor: float) -> Value:
    return node.make("multiply", [data, node.constant(factor, np.float32)])


@converter("SVMRegressor", domain=ML)
def svm_regressor(node: OnnxNode) -> Value:
    """Convert SVMRegressor; with one_class, the result is 1 for a score above 0, else -1."""
    data = rows_of(node)
    features = node.extent(data, 1)
    rho = floats_of(node, "rho")
    if len(rho) != 1:
        raise UserError(f"its rho has {len(rho)} numbers, not one")
    if node.attributes["n_supports"] > 0:
        vectors = attribute_matrix(node, "support_vectors", features)
        products = _products(node, data, vectors)
    else:
        vectors = np.zeros((features, 0))
        products = data
    weight = attribute_matrix(node, "coefficients", len(vectors))
    scores = node.make("matmul", [products, node.constant(weight)], trans_b=True)
    scores = node.make("add", [scores, node.constant(rho)])
    if node.attributes["one_class"]:
        is_inside = node.make("greater", [scores, node.constant(0.0, np.float32)])
        one, other = (node.constant(number, np.float32) for number in (1.0, -1.0))
        return node.make("where", [is_inside, one, other])
    return transformed(node, scores, node.attributes["post_transform"])


@converter("SVMClassifier", domain=ML)
def svm_classifier(node: OnnxNode) -> list[Value]:
    """Convert SVMClassifier: the class of each row, and the scores.

    Each pair of classes has a score, which votes for one of both. With `prob_a` and `prob_b`, the
    scores become probabilities of the classes.
    """
    return with_labels(node, "classlabels_ints", _vector_classes)


def _vector_classes(node: OnnxNode, labels: Array) -> list[Value]:
    data = rows_of(node)
    counts = node.attributes.get("vectors_per_class", ())
    if not sum(counts):
        return _without_vectors(node, data, labels)
    classes = len(labels)
    if len(counts) != classes or min(counts) < 0:
        raise UserError(
            f"its vectors_per_class are {list(counts)}, for {classes} classes",
            remedy="give a number >= 0 for each class",
        )
    if classes < 2:
        raise UserError("it has support vectors, but only one class")
    vectors = attribute_matrix(node, "support_vectors", node.extent(data, 1))
    if len(vectors) != sum(counts):
        raise UserError(
            f"it has {len(vectors)} support vectors, but vectors_per_class {list(counts)}"
        )
    products = _products(node, data, vectors)
    weight = _pair_weights(node, counts)
    pairs = len(weight)
    scores = node.make("matmul", [products, node.constant(weight)], trans_b=True)
    scores = node.make("add", [scores, node.constant(_of_pairs(node, "rho", pairs))])
    winners = values_at(node, best_class(node, _votes(node, scores, classes)), labels)
    transform = node.attributes["post_transform"]
    if node.attributes.get("prob_a"):
        probabilities = _probabilities(node, scores, classes)
        return [winners, transformed(node, probabilities, transform)]
    if classes == 2:
        is_probability = transform != "NONE"
        both = two_scores(node, scores, transform, is_probability=is_probability)
        return [winners, both]
    return [winners, transformed(node, scores, transform)]


def _of_pairs(node: OnnxNode, name: str, pairs: int) -> Array:
    numbers = floats_of(node, name)
    if len(numbers) != pairs:
        raise UserError(
            f"its {name} has {len(numbers)} numbers, but there are {pairs} pairs of classes"
        )
    return numbers


def _without_vectors(node: OnnxNode, data: Value, labels: Array) -> list[Value]:
    """Return the result of a linear machine: a weight for each class and feature."""
    weight = attribute_matrix(node, "coefficients", node.extent(data, 1))
    if len(weight) != len(labels):
        raise UserError(
            f"its coefficients are for {len(weight)} classes, but it has {len(labels)} labels"
        )
    scores = node.make("matmul", [data, node.constant(weight)], trans_b=True)
    rho = floats_of(node, "rho")[:1]
    if len(rho):
        scores = node.make("add", [scores, node.constant(rho)])
    winners = values_at(node, best_class(node, scores), labels)
    return [winners, transformed(node, scores, node.attributes["post_transform"])]


def _pair_weights(node: OnnxNode, counts: tuple[int, ...]) -> Array:
    """Return the weight of each vector [pairs, vectors] in the score of a pair of classes.

    Row r of the coefficients holds the weights of a class's vectors against the other class number
    r, counted without the class itself.
    """
    total = sum(counts)
    given = attribute_matrix(node, "coefficients", total)
    if len(given) != len(counts) - 1:
        raise UserError(
            f"its coefficients have {len(given)} rows, not {len(counts) - 1}",
            remedy="give a row for each class but one",
        )
    starts = np.cumsum([0, *counts])
    rows = []
    for first, second in combinations(range(len(counts)), 2):
        row = np.zeros(total, np.float32)
        for one, place in ((first, second - 1), (second, first)):
            part = slice(starts[one], starts[one + 1])
            row[part] = given[place, part]
        rows.append(row)
    return np.array(rows)


def _votes(node: OnnxNode, scores: Value, classes: int) -> Value:
    """Return how many pairs vote for each class: a score above 0 for the first, else the second."""
    is_first = node.make("greater", [scores, node.constant(0.0, np.float32)])
    chosen = node.cast(is_first, F32)
    change = np.zeros((len(list(combinations(range(classes), 2))), classes), np.float32)
    base = np.zeros(classes, np.float32)
    for pair, (first, second) in enumerate(combinations(range(classes), 2)):
        change[pair, first] = 1
        change[pair, second] = -1
        base[second] += 1
    moved = node.make("matmul", [chosen, node.constant(change)])
    return node.make("add", [moved, node.constant(base)])


def _probabilities(node: OnnxNode, scores: Value, classes: int) -> Value:
    """Return the probabilities of classes that fit best to those of all pairs.

    The probabilities p minimize p @ Q @ p, where their sum is 1. So they are the solution of
    (Q + 1) @ p = 1 for a matrix of ones, divided by its sum. The matrix is inverted by Newton's
    iteration in f64.

    Reference: T.-F. Wu, C.-J. Lin and R. Weng, "Probability Estimates for Multi-class
    Classification by Pairwise Coupling", 2004, section 4; LIBSVM stops its iteration earlier.
    """
    pairs = list(combinations(range(classes), 2))
    wide = node.cast(scores, "float64")
    slope, offset = (
        node.constant(_of_pairs(node, name, len(pairs)), np.float64)
        for name in ("prob_a", "prob_b")
    )
    value = node.make("add", [node.make("multiply", [wide, slope]), offset])
    first = node.make("sigmoid", [node.make("negative", [value])])
    first = node.make(
        "clip", [first], minimum=_LEAST_PROBABILITY, maximum=1 - _LEAST_PROBABILITY
    )
    spread = np.zeros((len(pairs), classes, classes))
    base = np.zeros((classes, classes))
    for pair, (one, other) in enumerate(pairs):
        spread[pair, one, other] = 1
        spread[pair, other, one] = -1
        base[other, one] = 1
    size = classes * classes
    flat = node.make("matmul", [first, node.constant(spread.reshape(-1, size))])
    flat = node.make("add", [flat, node.constant(base.reshape(size))])
    table = node.make("reshape", [flat], shape=(-1, classes, classes))
    squares = node.make("square", [table])
    diagonal = node.make("sum", [squares], axis=1, keepdims=True)
    mirrored = node.make("transpose", [table], axes=(0, 2, 1))
    others = node.make("negative", [node.make("multiply", [table, mirrored])])
    is_diagonal = node.constant(np.eye(classes, dtype=np.bool_))
    quadratic = node.make("where", [is_diagonal, diagonal, others])
    matrix = node.make("add", [quadratic, node.constant(1.0, np.float64)])
    inverse = _inverse(node, matrix, classes)
    solution = node.make("sum", [inverse], axis=2)
    total = node.make("sum", [solution], axis=1, keepdims=True)
    return node.cast(node.make("divide", [solution, total]), F32)


def _inverse(node: OnnxNode, matrix: Value, size: int) -> Value:
    """Return the inverses of symmetric positive definite matrices [n, size, size]."""
    sums = node.make("sum", [node.make("abs", [matrix])], axis=2, keepdims=True)
    norm = node.make("max", [sums], axis=1, keepdims=True)
    inverse = node.make("divide", [matrix, node.make("square", [norm])])
    twice = node.constant(2 * np.eye(size))
    for _ in range(_STEPS):
        product = node.make("matmul", [matrix, inverse])
        rest = node.make("subtract", [twice, product])
        inverse = node.make("matmul", [inverse, rest])
    return inverse
