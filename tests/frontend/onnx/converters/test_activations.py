import math

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check, versions

X = np.array([[1.5, -2, 0], [3, -0.5, 4]], np.float32)
IMAGE = np.array([[[[1, -1], [-2, 2]], [[-3, -4], [4, 3]]]], np.float32)
BF16 = ml_dtypes.bfloat16


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def elu(x, alpha):
    return np.where(x > 0, x, alpha * (np.exp(x) - 1))


def gelu(x):
    return x * np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.flat]).reshape(x.shape)


# operator -> pairs of attributes and of what they mean; the first one has the defaults
MEANINGS = {
    "Celu": [
        ({}, lambda x: np.maximum(x, 0) + np.minimum(0, np.exp(x) - 1)),
        ({"alpha": 2.0}, lambda x: np.maximum(x, 0) + np.minimum(0, 2 * (np.exp(x / 2) - 1))),
        ({"alpha": -2.0}, lambda x: np.maximum(x, 0) + np.minimum(0, -2 * (np.exp(x / -2) - 1))),
    ],
    "Elu": [({}, lambda x: elu(x, 1)), ({"alpha": 2.0}, lambda x: elu(x, 2))],
    "Gelu": [
        ({}, gelu),
        (
            {"approximate": "tanh"},
            lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
    ],
    "HardSigmoid": [
        ({}, lambda x: (0.2 * x + 0.5).clip(0, 1)),
        ({"alpha": 0.5, "beta": 0.6}, lambda x: (0.5 * x + 0.6).clip(0, 1)),
    ],
    "HardSwish": [({}, lambda x: x * (x / 6 + 0.5).clip(0, 1))],
    "LeakyRelu": [
        ({}, lambda x: np.where(x < 0, 0.01 * x, x)),
        ({"alpha": 0.1}, lambda x: np.where(x < 0, 0.1 * x, x)),
    ],
    "Mish": [({}, lambda x: x * np.tanh(np.log1p(np.exp(x))))],
    "Relu": [({}, lambda x: np.maximum(x, 0))],
    "Selu": [({"alpha": 2.0, "gamma": 3.0}, lambda x: 3 * elu(x, 2))],
    "Shrink": [
        ({}, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
        (
            {"lambd": 1.0, "bias": 0.25},
            lambda x: np.where(x < -1, x + 0.25, np.where(x > 1, x - 0.25, 0)),
        ),
    ],
    "Sigmoid": [({}, sigmoid)],
    "Softplus": [({}, lambda x: np.log1p(np.exp(x)))],
    "Softsign": [({}, lambda x: x / (1 + np.abs(x)))],
    "Swish": [
        ({}, lambda x: x * sigmoid(x)),
        ({"alpha": 0.5}, lambda x: x * sigmoid(0.5 * x)),
    ],
    "Tanh": [({}, np.tanh)],
    "ThresholdedRelu": [
        ({}, lambda x: np.where(x > 1, x, 0)),
        ({"alpha": 2.0}, lambda x: np.where(x > 2, x, 0)),
    ],
}


def activations():
    for name, meanings in MEANINGS.items():
        for version in versions(name):
            has_consumed = version < 6 and name not in ("Softplus", "Softsign")
            old = {"consumed_inputs": [0]} if has_consumed else {}
            for place, (given, meaning) in enumerate(meanings):
                right = [meaning(X.astype(np.float64)).astype(np.float32)]
                attributes = {**given, **old}
                yield NodeCase(name, version, [X], attributes, right, label=f"{place}", rtol=1e-3)
    for version, alpha, gamma in ((1, 1.6732, 1.0507), (6, 1.67326319, 1.05070102)):
        old = {"consumed_inputs": [0]} if version < 6 else {}
        right = [(gamma * elu(X, alpha)).astype(np.float32)]
        yield NodeCase("Selu", version, [X], old, right, label="defaults")
    whole = np.array([-3, 0, 5], np.int32)
    yield NodeCase("Relu", 14, [whole], {}, [np.array([0, 0, 5], np.int32)], label="integers")


def shrink():
    whole = np.array([-5, -1, 0, 1, 5], np.int32)
    given = {"lambd": 1.0, "bias": 2.0}
    right = np.array([-3, 0, 0, 0, 3], np.int32)
    yield NodeCase("Shrink", 9, [whole], given, [right], label="integers")
    given = {"lambd": -1.0, "bias": 2.0}
    right = np.array([-2, 0.5, 2, 2.5], np.float32)
    data = np.array([-4, -1.5, 0, 0.5], np.float32)
    right = np.where(data < 1, data + 2, data - 2)
    yield NodeCase("Shrink", 9, [data], given, [right], label="negative lambd")


def prelu():
    slope = np.array([0.5, 2], np.float32)
    wide = slope.reshape(2, 1, 1)
    right = [np.where(IMAGE < 0, IMAGE * wide, IMAGE)]
    single = [np.where(IMAGE < 0, IMAGE * np.float32(0.5), IMAGE)]
    for version in (1, 6):
        old = {"consumed_inputs": [0]} if version < 6 else {}
        newer = {EVALUATOR: "it broadcasts the slopes as in numpy"} if version == 6 else {}
        yield NodeCase("PRelu", version, [IMAGE, slope], old, right, wrong=newer)
        yield NodeCase("PRelu", version, [IMAGE, slope[:1]], old, single, label="one slope")
        pair = [IMAGE[:, :, 0, 0], slope]
        flat = [right[0][:, :, 0, 0]]
        yield NodeCase("PRelu", version, pair, old, flat, label="matrix")
    for version in (7, 9, 16):
        yield NodeCase("PRelu", version, [IMAGE, wide], {}, right)
    for version in (9, 16):
        pair = [IMAGE.astype(np.int32), np.array([[[3]], [[2]]], np.int32)]
        right = [np.where(pair[0] < 0, pair[0] * pair[1], pair[0])]
        yield NodeCase("PRelu", version, pair, {}, right, label="integers")


def swiglu():
    gate, values = X, X[::-1].copy()
    for alpha in (1.0, 0.5):
        right = [gate * sigmoid(np.float32(alpha) * gate) * values]
        yield NodeCase("SwiGLU", 28, [gate, values], {"alpha": alpha}, right, label=f"{alpha}")


def bfloat16():
    data = X.astype(BF16)
    for name, version in (("Relu", 14), ("Sigmoid", 13), ("Tanh", 13), ("Elu", 22), ("Celu", 28)):
        meaning = MEANINGS[name][0][1]
        right = [meaning(X).astype(BF16)]
        yield NodeCase(name, version, [data], {}, right, rtol=2e-2, label="bf16")


CASES = [*activations(), *shrink(), *prelu(), *swiglu(), *bfloat16()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("Gelu", 20, [X], {"approximate": "tan"}), "approximate is 'tan'"),
        (NodeCase("PRelu", 6, [X, X]), "its slope is x1"),
        (NodeCase("Celu", 12, [X.astype(np.int32)], {"alpha": -2.0}), "Celu-12 takes tensor"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())
