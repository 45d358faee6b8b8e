import numpy as np
import pytest

from tests.frontend.onnx.converters.cases import NodeCase, check

X = np.arange(6, dtype=np.float32).reshape(2, 3)
CASES = [
    NodeCase("Reshape", 1, [X], {"shape": [3, 2]}, expected=[X.reshape(3, 2)]),
    *(NodeCase("Reshape", version, [X, np.array([3, -1])]) for version in (5, 13, 14, 21)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)
