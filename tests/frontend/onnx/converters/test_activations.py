import numpy as np
import pytest

from tests.frontend.onnx.converters.cases import NodeCase, check

X = np.array([[1.5, -2, 0], [3, -0.5, 4]], np.float32)
OLD = {"consumed_inputs": [0]}
CASES = [
    *(NodeCase("Relu", v, [X], OLD if v < 6 else {}, [np.maximum(X, 0)]) for v in (1, 6, 13, 14)),
    *(
        NodeCase("Sigmoid", v, [X], OLD if v < 6 else {}, [1 / (1 + np.exp(-X))])
        for v in (1, 6, 13)
    ),
    *(NodeCase("Tanh", v, [X], OLD if v < 6 else {}, [np.tanh(X)]) for v in (1, 6, 13)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)
