import numpy as np
import pytest

from tests.frontend.onnx.converters.cases import NodeCase, check

A = np.array([[1, 5, -3], [4, 2, 2]], np.float32)
B = np.array([1, 4, -5], np.float32)
P = np.array([[True, False, True], [False, False, True]])
Q = np.array([True, True, False])
OLD = {"broadcast": 1}
CASES = [
    *(NodeCase("And", v, [P, Q], OLD if v < 7 else {}, [P & Q]) for v in (1, 7)),
    *(NodeCase("Or", v, [P, Q], OLD if v < 7 else {}, [P | Q]) for v in (1, 7)),
    *(NodeCase("Xor", v, [P, Q], OLD if v < 7 else {}, [P ^ Q]) for v in (1, 7)),
    *(NodeCase("Less", v, [A, B], OLD if v < 7 else {}, [A < B]) for v in (1, 7, 9, 13)),
    *(NodeCase("Greater", v, [A, B], OLD if v < 7 else {}, [A > B]) for v in (1, 7, 9, 13)),
    *(
        NodeCase(
            "Equal", v, [A.astype(np.int32), B.astype(np.int32)], OLD if v < 7 else {}, [A == B]
        )
        for v in (1, 7, 11, 13, 19)
    ),
    *(
        NodeCase("Equal", v, [P, Q], OLD if v < 7 else {}, [P == Q], label="of bools")
        for v in (1, 7, 19)
    ),
    NodeCase("Not", 1, [P], {}, [~P]),
    *(NodeCase("Where", v, [P, A, B], {}, [np.where(P, A, B)]) for v in (9, 16)),
    *(NodeCase("LessOrEqual", v, [A, B], {}, [A <= B]) for v in (12, 16)),
    *(NodeCase("GreaterOrEqual", v, [A, B], {}, [A >= B]) for v in (12, 16)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)
