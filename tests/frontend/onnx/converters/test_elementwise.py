import numpy as np
import pytest

from tests.frontend.onnx.converters.cases import NodeCase, check

X = np.array([[1.5, -2, 0], [3, -0.5, 4]], np.float32)
CASES = [NodeCase("Relu", version, [X]) for version in (6, 13, 14)] + [
    NodeCase("Relu", 1, [X], {"consumed_inputs": [0]}, expected=[np.maximum(X, 0)])
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)
