import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import (
    RUNTIME,
    NodeCase,
    check,
    graph_of,
    is_deferred,
)

X = np.array([[3, 1, 4, 1], [5, 9, 2, 6]], np.float32)
TIES = np.array([[2, 7, 7], [1, 1, 0]], np.float32)


def ints(*values):
    return np.array(values, np.int64)


BEST = [
    case
    for operator in ("ArgMax", "ArgMin")
    for case in (
        NodeCase(operator, 1, [TIES], {"axis": 1, "keepdims": 0}),
        NodeCase(operator, 11, [TIES], {"axis": -1}),
        NodeCase(operator, 12, [TIES], {"axis": 1, "select_last_index": 1}),
        NodeCase(operator, 13, [TIES.astype("i4")], shapes={0: ["N", 3]}),
    )
]
TOP = [
    NodeCase("TopK", 1, [X], {"k": 2}, outputs=2),
    NodeCase("TopK", 10, [X, ints(2)], {"axis": 0}, outputs=2, constants=[1]),
    NodeCase("TopK", 10, [TIES, ints(3)], outputs=2, label="run"),
    NodeCase("TopK", 11, [X.astype("i8"), ints(3)], {"largest": 0, "sorted": 1}, outputs=2),
    NodeCase("TopK", 24, [X, ints(0)], outputs=2, shapes={0: ["N", 4]}),
]
SLICES = np.array([[[1, 1], [0, 1], [2, 1], [0, 1]], [[1, 1], [0, 1], [2, 1], [0, 0]]], "f4")
MANY = np.random.default_rng(3).integers(0, 2, (7, 5)).astype(np.int8)
UNIQUES = [
    NodeCase("Unique", 11, [X], outputs=4),
    NodeCase("Unique", 11, [X], {"sorted": 0}, outputs=4, label="unsorted"),
    NodeCase("Unique", 11, [X > 2], label="bools"),
    NodeCase("Unique", 11, [SLICES], {"axis": 1}, outputs=4, label="slices"),
    NodeCase("Unique", 11, [SLICES.astype("i8")], {"axis": 0, "sorted": 0}, outputs=4,
             label="unsorted-slices"),
    NodeCase("Unique", 11, [MANY], {"axis": 0}, outputs=4, label="rows"),
    NodeCase("Unique", 11, [MANY], {"axis": -1}, outputs=4, label="columns"),
    NodeCase("Unique", 28, [X], outputs=2, shapes={0: ["N", 4]}),
    NodeCase("Unique", 28, [np.zeros((3, 0), "f4")], {"axis": 0}, outputs=4, label="empty",
             expected=[np.zeros((1, 0), "f4"), ints(0), ints(0, 0, 0), ints(3)],
             wrong={RUNTIME: "aborts the process"}),
]  # fmt: skip
HALVES = X.astype(ml_dtypes.bfloat16)
UNIQUES += [
    NodeCase("Unique", 28, [HALVES], expected=[np.unique(X).astype(HALVES.dtype)], label="bf16"),
    NodeCase("TopK", 24, [HALVES, ints(2)], outputs=2, label="bf16",
             expected=[np.array([[4, 3], [9, 6]], HALVES.dtype), np.array([[2, 0], [1, 3]])]),
]  # fmt: skip
# Zeros of both signs are equal, NaN equals itself and is the greatest.
ODD = np.array([[np.nan, 0], [-0.0, 5], [0.0, 5], [-1, np.inf], [-1, -np.inf]], np.float32)
UNIQUES.append(
    NodeCase(
        "Unique",
        11,
        [ODD],
        {"axis": 0},
        expected=[ODD[[4, 3, 1, 0]], ints(4, 3, 1, 0), ints(3, 2, 2, 1, 0), ints(1, 1, 2, 1)],
        outputs=4,
        wrong={RUNTIME: "takes a slice with NaN for equal to all others"},
        label="nan",
    )
)
CASES = [*BEST, *TOP, *UNIQUES]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_best_of_a_symbolic_axis_are_found_in_the_run():
    case = NodeCase("TopK", 11, [X, ints(2)], outputs=2, constants=[1], shapes={0: [2, "N"]})
    assert is_deferred(case)
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("ArgMax", 13, [X], {"axis": 2}), "axis 2 is out of range"),
        (NodeCase("ArgMax", 13, [X[:, :0]], {"axis": 1}), "argmax"),
        (NodeCase("TopK", 1, [X], outputs=2), "its attribute k is missing"),
        (NodeCase("TopK", 11, [X, ints(5)], outputs=2, constants=[1]), "topk"),
        (NodeCase("TopK", 11, [X, ints(1, 2)], outputs=2, constants=[1]), "K has 2 elements"),
        (NodeCase("Unique", 11, [X], {"axis": 2}), "axis 2 is out of range"),
    ],
    ids=str,
)
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
