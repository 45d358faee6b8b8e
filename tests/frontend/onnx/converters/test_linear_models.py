"""Linear models of ai.onnx.ml, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check
from tests.strategies.operands import floats

ML = "ai.onnx.ml"
X = floats(0, 5, 2)
SECOND = np.array([[0.5, 0.25]]), np.array([0.1])
BOTH = "completes the score of two classes by its opposite for all transforms"
KIND = "returns the element type of the input, not floats"
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def logistic(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)


def regressor(label, x=X, weight=SECOND, *, wrong=None, transform="NONE"):
    coefficients, intercepts = weight
    scores = x.astype(np.float32) @ coefficients.T + intercepts
    scores = {"NONE": scores, "SOFTMAX": softmax(scores)}[transform]
    attributes = {
        "coefficients": coefficients.reshape(-1).tolist(),
        "intercepts": intercepts.tolist(),
        "targets": len(coefficients),
        "post_transform": transform,
    }
    return NodeCase(
        "LinearRegressor",
        1,
        [x],
        attributes,
        expected=[scores.astype(np.float32)],
        domain=ML,
        label=label,
        wrong=wrong or {},
    )


def of_two(transform, labels):
    """A case of two classes, of which the second has a score."""
    score = X @ SECOND[0].T + SECOND[1]
    other = -score if transform == "LOGISTIC" else 1 - score
    scores = np.concatenate([other, score], axis=1)
    scores = logistic(scores) if transform == "LOGISTIC" else scores
    names = np.array(next(iter(labels.values())))
    attributes = {
        "coefficients": [0.5, 0.25],
        "intercepts": [0.1],
        "post_transform": transform,
        **labels,
    }
    return NodeCase(
        "LinearClassifier",
        1,
        [X],
        attributes,
        expected=[names[(score[:, 0] > 0).astype(int)], scores.astype(np.float32)],
        domain=ML,
        outputs=2,
        label=f"{transform}_{len(labels)}_{names.dtype.kind}",
        wrong={} if transform == "LOGISTIC" else {EVALUATOR: BOTH},
    )


def of_three(x=X, transform="NONE", **attributes):
    given = {
        "classlabels_ints": [5, 6, 7],
        "coefficients": [0.5, 0.25, -0.5, 0.1, 0.2, 0.3],
        "intercepts": [0.1, 0.2, 0.3],
        "post_transform": transform,
        **attributes,
    }
    kept = {name: value for name, value in given.items() if value is not None}
    return NodeCase(
        "LinearClassifier", 1, [x], kept, domain=ML, outputs=2, label=f"three_{transform}"
    )


TWO = floats(1, 3, 2), floats(2, 3)
CASES = [
    regressor("one"),
    regressor("three", weight=TWO),
    regressor("softmax", weight=TWO, transform="SOFTMAX"),
    regressor("integers", np.array([[1, 2], [3, -4]]), wrong={EVALUATOR: KIND}),
    *(of_two(transform, {"classlabels_ints": [5, 6]}) for transform in TRANSFORMS),
    of_two("NONE", {"classlabels_strings": ["no", "yes"]}),
    *(of_three(transform=transform) for transform in TRANSFORMS),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_one_row_without_a_batch():
    check(of_three(X[:1]))


def test_intercepts_may_be_left_out():
    attributes = {"coefficients": [0.5, 0.25]}
    expected = (X @ SECOND[0].T).astype(np.float32)
    wrong = {EVALUATOR: "adds NaN for intercepts that are left out"}
    check(NodeCase("LinearRegressor", 1, [X], attributes, [expected], domain=ML, wrong=wrong))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (of_three(X[None]), r"its input is x0: f32\[1, 5, 2\]"),
        (of_three(coefficients=[1.0] * 5), "has 5 numbers, not a multiple of 2"),
        (of_three(intercepts=[1.0]), "it has 1 intercepts for 3 targets"),
        (of_three(classlabels_ints=[1, 2]), "are for 3 classes, but it has 2 labels"),
        (of_three(classlabels_strings=["a"]), "it has 1 classlabels_strings and 3"),
        (of_three(transform="LOGIT"), "its post_transform is 'LOGIT'"),
        (
            NodeCase("LinearRegressor", 1, [X], {"coefficients": [1.0] * 4}, domain=ML),
            "are for 2 targets, but it has 1",
        ),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
