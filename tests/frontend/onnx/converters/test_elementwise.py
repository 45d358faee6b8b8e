import numpy as np
import pytest

from tests.frontend.onnx.converters.cases import NodeCase, check

A = np.array([[1, 5, -3], [4, 2, 2]], np.float32)
B = np.array([1, 4, -5], np.float32)
OLD = {"broadcast": 1}
CASES = [
    *(NodeCase("Add", v, [A, B], OLD if v < 7 else {}, [A + B]) for v in (1, 6, 7, 13, 14)),
    *(NodeCase("Sub", v, [A, B], OLD if v < 7 else {}, [A - B]) for v in (1, 6, 7, 13, 14)),
    *(NodeCase("Mul", v, [A, B], OLD if v < 7 else {}, [A * B]) for v in (1, 6, 7, 13, 14)),
    *(NodeCase("Div", v, [A, B], OLD if v < 7 else {}, [A / B]) for v in (1, 6, 7, 13, 14)),
    *(
        NodeCase("Div", v, [A.astype(np.int64), B.astype(np.int64)], label="integers")
        for v in (7, 13, 14)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)
