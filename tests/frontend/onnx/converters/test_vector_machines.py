"""Support vector machines of ai.onnx.ml, and refusals."""

from itertools import combinations

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check
from tests.strategies.operands import floats

ML = "ai.onnx.ml"
X = floats(0, 6, 2)
PARAMETERS = [0.5, 0.1, 2.0]
KERNELS = ("RBF", "POLY", "SIGMOID", "LINEAR")
LABELS = "lets the first class win where all coefficients are positive"
COUPLED = "begins its iteration from a wrong matrix"
LEFT = "does not transform the score"
SINGLE = "needs support vectors"


def kernel(kind, x, vectors):
    gamma, coefficient, degree = PARAMETERS
    dot = x @ vectors.T
    return {
        "RBF": np.exp(-gamma * ((x[:, None] - vectors) ** 2).sum(axis=2)),
        "POLY": (gamma * dot + coefficient) ** degree,
        "SIGMOID": np.tanh(gamma * dot + coefficient),
        "LINEAR": dot,
    }[kind]


def regressor(kind, *, transform="NONE", one_class=0, wrong=None):
    vectors, weights = floats(1, 3, 2), floats(2, 3)
    scores = kernel(kind, X, vectors) @ weights[:, None] + 0.2
    if one_class:
        scores = np.where(scores > 0, 1, -1)
    elif transform == "LOGISTIC":
        scores = 1 / (1 + np.exp(-scores))
    attributes = {
        "kernel_type": kind,
        "kernel_params": PARAMETERS,
        "n_supports": 3,
        "support_vectors": vectors.reshape(-1).tolist(),
        "coefficients": weights.tolist(),
        "rho": [0.2],
        "one_class": one_class,
        "post_transform": transform,
    }
    return NodeCase(
        "SVMRegressor",
        1,
        [X],
        attributes,
        expected=[scores.astype(np.float32)],
        domain=ML,
        label=f"{kind}_{transform}_{one_class}",
        wrong=wrong or {},
    )


def coupled(first, classes):
    """Return the probabilities that minimize the errors of all pairs, by a linear system."""
    table = np.zeros((classes, classes))
    for (i, j), p in zip(combinations(range(classes), 2), first, strict=True):
        table[i, j], table[j, i] = p, 1 - p
    matrix = -table * table.T + np.diag((table**2).sum(axis=0))
    system = np.block([[matrix, np.ones((classes, 1))], [np.ones(classes), np.zeros(1)]])
    return np.linalg.solve(system, [0] * classes + [1])[:classes]


def classifier(classes, *, kind="RBF", transform="NONE", has_proba=False, **attributes):
    """A case of SVMClassifier, which is also right by hand, unless scores are transformed."""
    counts = [2, 3, 1, 2][:classes]
    starts = np.cumsum([0, *counts])
    vectors = floats(3, sum(counts), 2)
    weights = floats(4, classes - 1, sum(counts))
    pairs = list(combinations(range(classes), 2))
    rho, slopes, offsets = (floats(seed, len(pairs)) for seed in (5, 6, 7))
    products = kernel(kind, X, vectors)
    votes = np.zeros((len(X), classes))
    columns = []
    for pair, (i, j) in enumerate(pairs):
        parts = [slice(starts[k], starts[k + 1]) for k in (i, j)]
        rows = (weights[j - 1], weights[i])
        terms = [products[:, p] @ row[p] for p, row in zip(parts, rows, strict=True)]
        score = sum(terms) + rho[pair]
        columns.append(score)
        votes[np.arange(len(X)), np.where(score > 0, i, j)] += 1
    scores = np.stack(columns, axis=1)
    if has_proba:
        first = 1 / (1 + np.exp(scores * slopes + offsets))
        scores = np.array([coupled(row, classes) for row in first])
    elif classes == 2:
        scores = np.concatenate([-scores, scores], axis=1)
    labels = np.arange(10, 10 + classes)[votes.argmax(axis=1)]
    is_stated = transform == "NONE"
    given = {
        "classlabels_ints": list(range(10, 10 + classes)),
        "kernel_type": kind,
        "kernel_params": PARAMETERS,
        "support_vectors": vectors.reshape(-1).tolist(),
        "vectors_per_class": counts,
        "coefficients": weights.reshape(-1).tolist(),
        "rho": rho.tolist(),
        "post_transform": transform,
        **({"prob_a": slopes.tolist(), "prob_b": offsets.tolist()} if has_proba else {}),
        **attributes,
    }
    wrong = {EVALUATOR: COUPLED} if has_proba and classes > 2 and is_stated else {}
    return NodeCase(
        "SVMClassifier",
        1,
        [X],
        given,
        expected=[labels, scores.astype(np.float32)] if is_stated else None,
        domain=ML,
        outputs=2,
        label=f"{classes}_{kind}_{transform}_{has_proba}",
        atol=5e-3 if has_proba else 1e-5,  # ONNX Runtime stops its iteration early
        wrong=wrong,
    )


def linear(classes):
    """A case without support vectors, whose scores are linear."""
    weights = floats(8, classes, 2)
    attributes = {
        "classlabels_ints": list(range(10, 10 + classes)),
        "coefficients": weights.reshape(-1).tolist(),
        "rho": [0.1],
    }
    scores = X @ weights.T + 0.1
    return NodeCase(
        "SVMClassifier",
        1,
        [X],
        attributes,
        expected=[10 + scores.argmax(axis=1), scores.astype(np.float32)],
        domain=ML,
        outputs=2,
        label=f"linear_{classes}",
        wrong={EVALUATOR: "returns 0 or 1 as the class"},
    )


CASES = [
    *(regressor(kind) for kind in KERNELS),
    regressor("RBF", one_class=1),
    regressor("RBF", transform="LOGISTIC", wrong={RUNTIME: LEFT, EVALUATOR: LEFT}),
    *(classifier(classes, kind=kind) for classes in (2, 4) for kind in KERNELS),
    *(classifier(classes, has_proba=True) for classes in (2, 3, 4)),
    classifier(3, transform="SOFTMAX"),
    classifier(3, transform="LOGISTIC"),
    classifier(2, transform="LOGISTIC"),
    classifier(2, transform="SOFTMAX", has_proba=True),
    linear(2),
    linear(3),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_a_linear_regressor_has_no_support_vectors():
    attributes = {"coefficients": [0.5, -2.0], "rho": [0.25]}
    expected = (X @ np.array([[0.5], [-2]]) + 0.25).astype(np.float32)
    check(NodeCase("SVMRegressor", 1, [X], attributes, expected=[expected], domain=ML))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (classifier(3, kernel_type="GAUSS"), "its kernel_type is 'GAUSS'"),
        (classifier(3, vectors_per_class=[2, 4]), r"its vectors_per_class are \[2, 4\]"),
        (classifier(3, vectors_per_class=[2, 4, 1]), "it has 6 support vectors"),
        (classifier(3, rho=[1.0]), "its rho has 1 numbers, but there are 3 pairs"),
        (classifier(3, coefficients=[1.0] * 18), "its coefficients have 3 rows, not 2"),
        (
            classifier(2, vectors_per_class=[5], classlabels_ints=[1]),
            "it has support vectors, but only one class",
        ),
        (
            classifier(3, has_proba=True, prob_b=[1.0]),
            "its prob_b has 1 numbers, but there are 3 pairs",
        ),
        (classifier(3, vectors_per_class=[0, 0, 0]), "are for 6 classes, but it has 3 labels"),
        (
            NodeCase("SVMRegressor", 1, [X], {"rho": [1.0, 2.0], "coefficients": [1.0]}, domain=ML),
            "its rho has 2 numbers, not one",
        ),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
