import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import NodeCase, check, graph_of

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(*values):
    return np.array(values, np.int64)


GATHERS = [
    NodeCase("Gather", 1, [X, np.array([[1, 0]], "i4")]),
    NodeCase("Gather", 11, [X, ints(-1, 0)], {"axis": -2}),
    NodeCase("Gather", 13, [X, np.int64(2)], {"axis": 2}),
    NodeCase("Gather", 13, [X, ints(1, 1)], shapes={0: ["N", 3, "M"], 1: ["K"]}, label="symbols"),
]
CASES = [*GATHERS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("Gather", 13, [X, ints(0)], {"axis": 3}), "axis 3 is out of range"),
        (NodeCase("Gather", 13, [X, X]), "takes integer tensors, not f32"),
    ],
    ids=str,
)
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
