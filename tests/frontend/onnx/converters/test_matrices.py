import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import NodeCase, check, graph_of, is_deferred

A = np.array([[1, -2, 0.5], [3, 0, -1]], np.float32)
BATCH = np.stack([A, A + 1, A - 2])
B = np.arange(12, dtype=np.float32).reshape(3, 4) / 4

PRODUCTS = [
    NodeCase("MatMul", 1, [A, B]),
    NodeCase("MatMul", 9, [A.astype("i4"), B.astype("i4")]),
    NodeCase("MatMul", 13, [BATCH, B[:, 0]], label="vector"),
    NodeCase("MatMul", 13, [A[0], B[:, 1]], label="vectors"),
    NodeCase("MatMul", 13, [BATCH, B], shapes={0: ["N", 2, 3]}, label="symbols"),
]
CASES = [*PRODUCTS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_two_symbols_of_a_product_are_compared_in_the_run():
    case = NodeCase("MatMul", 13, [A, B], shapes={0: [2, "K"], 1: ["L", 4]})
    assert is_deferred(case)
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [(NodeCase("MatMul", 13, [A, A]), "matmul: .* 2 instead of 3")],
    ids=str,
)
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
