"""Transforms of scores that no converter's case shows."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp import onnx_backend
from tests.frontend.onnx.converters.cases import RUNTIME, NodeCase, check

ML = "ai.onnx.ml"


def scores_of(rows, transform):
    """A model whose scores are its input."""
    attributes = {
        "coefficients": [1.0, 0.0, 0.0, 1.0],
        "intercepts": [0.0, 0.0],
        "classlabels_ints": [0, 1],
        "post_transform": transform,
    }
    x = np.array(rows, np.float32)
    return NodeCase("LinearClassifier", 1, [x], attributes, domain=ML, outputs=2, atol=1e-5)


def test_labels_that_are_texts_do_not_need_the_number_of_features():
    case = scores_of([[1, 2], [4, 3]], "NONE")
    attributes = {**case.attributes, "classlabels_strings": ["no", "yes"]}
    del attributes["classlabels_ints"]
    model = replace(case, attributes=attributes).model()
    for extent in model.graph.input[0].type.tensor_type.shape.dim:
        extent.Clear()
    labels, scores = onnx_backend.prepare(model, "INTERP").run(case.feeds())
    assert labels.tolist() == ["yes", "no"]
    assert scores.tolist() == [[1, 2], [4, 3]]


def test_probit_is_the_quantile_of_the_normal_distribution():
    check(scores_of([[0.25, 0.75], [0.1, 0.999], [0.6, 1e-4]], "PROBIT"))


def test_scores_of_zero_stay_zero():
    check(scores_of([[0, 2], [0.5, 0], [1, 2]], "SOFTMAX_ZERO"))
    halves = [np.array([0]), np.full((1, 2), 0.5, np.float32)]
    wrong = {RUNTIME: "divides 0 by 0 for scores that are all 0"}
    check(replace(scores_of([[0, 0]], "SOFTMAX_ZERO"), expected=halves, wrong=wrong))


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_great_scores_do_not_overflow(transform):
    check(scores_of([[900, -900], [1, 1]], transform))
