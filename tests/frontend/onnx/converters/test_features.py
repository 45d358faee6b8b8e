"""Operators of ai.onnx.ml on features: the choices of each, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check

X = np.array([[1, -2, 3.5], [0, 0, 0], [2, 4, -6]], np.float32)
INTEGERS = X.astype(np.int64)
KIND = "returns the element type of the input, not floats"


def case(operator, inputs, label="", *, expected=None, wrong=None, **attributes):
    return NodeCase(
        operator,
        1,
        inputs,
        attributes,
        expected=expected,
        domain="ai.onnx.ml",
        label=label,
        wrong=wrong or {},
    )


CASES = [
    case("ArrayFeatureExtractor", [X, np.array([[2, 0]])]),
    case("ArrayFeatureExtractor", [X[0], np.array([1, 1])], "vector"),
    case(
        "ArrayFeatureExtractor",
        [np.array([["a", "b", "c"]], object), np.array([2, 0])],
        "texts",
        expected=[np.array([["c", "a"]], object)],
    ),
    case("Binarizer", [X], threshold=1.0),
    case("Binarizer", [INTEGERS], "integers", threshold=1.5),
    case("Binarizer", [INTEGERS], "above_all", threshold=1e30, expected=[0 * INTEGERS]),
    case("Binarizer", [INTEGERS], "below_all", threshold=-1e30, expected=[0 * INTEGERS + 1]),
    case("FeatureVectorizer", [X, X[:, :2]], inputdimensions=[2, 4]),
    case(
        "FeatureVectorizer",
        [INTEGERS],
        "integers",
        inputdimensions=[3],
        expected=[INTEGERS.astype(np.float32)],
        wrong={EVALUATOR: KIND},
    ),
    case("Imputer", [X], replaced_value_float=0.0, imputed_value_floats=[7.0, 8.0, 9.0]),
    case(
        "Imputer",
        [np.where(X == 0, np.float32(np.nan), X)],
        "nan",
        replaced_value_float=float("nan"),
        imputed_value_floats=[7.0],
    ),
    case("Imputer", [INTEGERS], "integers", replaced_value_int64=2, imputed_value_int64s=[7]),
    case(
        "Normalizer",
        [X],
        "greatest",
        norm="MAX",
        expected=[X / np.array([[3.5], [1], [4]], np.float32)],
        wrong={EVALUATOR: "divides by the greatest absolute value, not by the greatest one"},
    ),
    case("Normalizer", [X], "l1", norm="L1"),
    case("Normalizer", [X], "l2", norm="L2"),
    case("Normalizer", [X[0]], "vector", norm="L1"),
    case(
        "Normalizer",
        [INTEGERS],
        "integers",
        norm="L1",
        expected=[INTEGERS / np.array([[6], [1], [12]], np.float32)],
        wrong={EVALUATOR: "returns f64, not floats"},
    ),
    case("Scaler", [X], scale=[2.0, 3.0, 4.0], offset=[1.0, 2.0, 3.0]),
    case(
        "Scaler",
        [INTEGERS],
        "integers",
        scale=[2.0],
        offset=[1.0],
        expected=[(INTEGERS - np.float32(1)) * np.float32(2)],
        wrong={EVALUATOR: KIND},
    ),
]
for one in CASES:
    for place, right in enumerate(one.expected or ()):
        if right.dtype.kind == "f":
            one.expected[place] = right.astype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_batches_may_be_symbols():
    model = case("Scaler", [X], scale=[2.0], offset=[1.0]).model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    assert str(from_onnx(model.SerializeToString()).outputs[0]) == "y0: f32[N, 3]"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            case("FeatureVectorizer", [X], inputdimensions=[1, 2]),
            r"1 inputs, but the inputdimensions \[1, 2\]",
        ),
        (case("FeatureVectorizer", [X], inputdimensions=[-1]), r"the inputdimensions \[-1\]"),
        (
            case("Imputer", [X.astype(np.int32)], imputed_value_int64s=[2**40]),
            "cannot hold 1099511627776",
        ),
        (case("Imputer", [X], imputed_value_floats=[1.0, 2.0]), "it has 2 values of imputed"),
        (case("Imputer", [X]), "it has 0 values of imputed_value_floats"),
        (case("Normalizer", [X], norm="L3"), "its norm is 'L3'"),
        (case("Scaler", [X], scale=[1.0, 2.0], offset=[1.0]), "its scale has 2 numbers"),
    ],
)
def test_refusals(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
