import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import (
    EVALUATOR,
    NodeCase,
    check,
    graph_of,
    is_deferred,
)

X = np.array([[[1, 2.5], [3, 0.5]], [[0.25, 4], [2, 1]]], np.float32)
WHOLE = np.array([[7, -3, 2], [-1, 5, -8]], np.int32)
BOOLS = np.array([[True, False], [True, True]])
NONE = np.zeros((2, 0, 3), np.float32)


def ints(*values):
    return np.array(values, np.int64)


# Each kind, with the first version whose axes are an input.
KINDS = {
    "ReduceL1": 18,
    "ReduceL2": 18,
    "ReduceLogSum": 18,
    "ReduceLogSumExp": 18,
    "ReduceMax": 18,
    "ReduceMean": 18,
    "ReduceMin": 18,
    "ReduceProd": 18,
    "ReduceSum": 13,
    "ReduceSumSquare": 18,
}
BY_ATTRIBUTE = [
    NodeCase(kind, version, [X], {"axes": [axis], "keepdims": keepdims})
    for kind, end in KINDS.items()
    for version, axis, keepdims in ((1, 1, 0), (11, -1, 1), (13, 0, 1))
    if version < end
]
BY_INPUT = [
    case
    for kind, since in KINDS.items()
    for case in (
        NodeCase(kind, since, [X, ints(1, -1)], {"keepdims": 0}, constants=[1]),
        NodeCase(kind, since, [X, ints(0)], label="run"),
        NodeCase(kind, since, [X], label="all"),
        NodeCase(kind, since, [X, ints()], constants=[1], label="no-axes"),
        NodeCase(kind, 20, [X], label="symbols", shapes={0: ["N", "M", 2]})
        if kind != "ReduceMean"
        else NodeCase(kind, 20, [X, ints(1)], constants=[1], shapes={0: ["N", 2, "M"]}),
    )
]
OF_NO_ELEMENTS = [
    NodeCase("ReduceSum", 13, [NONE, ints(1)], constants=[1], label="empty"),
    NodeCase("ReduceProd", 18, [NONE, ints(1)], constants=[1], label="empty"),
    NodeCase("ReduceLogSum", 18, [NONE, ints(1)], constants=[1], label="empty"),
    NodeCase(
        "ReduceMax",
        20,
        [NONE, ints(1)],
        expected=[np.full((2, 1, 3), -np.inf, "f4")],
        constants=[1],
        label="empty",
    ),
]
NO_AXES = {"noop_with_empty_axes": 1}
WITHOUT_REDUCTION = [
    NodeCase("ReduceSum", 13, [X], NO_AXES, expected=[X], label="noop"),
    NodeCase("ReduceL1", 18, [-X], NO_AXES, expected=[X], label="noop"),
    NodeCase("ReduceLogSum", 28, [X], NO_AXES, expected=[np.log(X)], label="noop"),
    NodeCase("ReduceSumSquare", 18, [X, ints()], NO_AXES, expected=[X * X], label="noop"),
    NodeCase("ReduceLogSumExp", 28, [X], NO_AXES, expected=[X], label="noop"),
]
OF_INTEGERS = [
    *[
        NodeCase(kind, 18, [WHOLE, ints(1)], constants=[1], label="integers")
        for kind in ("ReduceL1", "ReduceMax", "ReduceProd", "ReduceSum")
    ],
    NodeCase(
        "ReduceSumSquare",
        18,
        [WHOLE, ints(1)],
        expected=[np.array([[62], [90]], "i4")],
        constants=[1],
        wrong={EVALUATOR: "returns i64; the output has the type of the data"},
        label="integers",
    ),
    NodeCase(
        "ReduceMean",
        18,
        [WHOLE, ints(0)],
        expected=[np.array([[3, 1, -3]], "i4")],
        constants=[1],
        label="integers",
    ),
    NodeCase("ReduceL2", 18, [np.array([3, 4], "i8")], expected=[np.array([5], "i8")]),
    NodeCase("ReduceLogSum", 18, [np.array([3, 5], "u4")], expected=[np.array([2], "u4")]),
    NodeCase("ReduceLogSumExp", 18, [np.array([3, 5], "i8")], expected=[np.array([5], "i8")]),
    NodeCase("ReduceMax", 20, [BOOLS, ints(1)], constants=[1], label="bools"),
    NodeCase("ReduceMin", 20, [BOOLS, ints(1)], constants=[1], label="bools"),
    NodeCase("ReduceMax", 12, [np.array([[1, -7]], "i1")], label="bytes"),
    NodeCase("ReduceMin", 12, [np.array([[1, -7]], "i1")], label="bytes"),
]


def by_numpy(operator, data):
    """Return what a reduction of all elements along axis 1 gives, in f64."""
    wide = data.astype(float)
    ways = {
        "ReduceL1": lambda: np.abs(wide).sum(1),
        "ReduceL2": lambda: np.sqrt((wide * wide).sum(1)),
        "ReduceLogSum": lambda: np.log(wide.sum(1)),
        "ReduceLogSumExp": lambda: np.log(np.exp(wide).sum(1)),
        "ReduceMax": lambda: wide.max(1),
        "ReduceMean": lambda: wide.mean(1),
        "ReduceMin": lambda: wide.min(1),
        "ReduceProd": lambda: wide.prod(1),
        "ReduceSum": lambda: wide.sum(1),
        "ReduceSumSquare": lambda: (wide * wide).sum(1),
    }
    return ways[operator]().astype(data.dtype)


OF_16_BITS = [
    NodeCase(
        kind,
        28,
        [X[0].astype(dtype), ints(1)],
        {"keepdims": 0},
        expected=[by_numpy(kind, X[0].astype(dtype))],
        rtol=2**-7,
        label=np.dtype(dtype).name,
    )
    for kind in KINDS
    for dtype in (ml_dtypes.bfloat16, np.float16)
]
SUMS = [
    NodeCase("CumSum", 11, [X, np.array(1, "i4")], {"exclusive": 1}, constants=[1]),
    NodeCase("CumSum", 14, [X, np.array(-1)], {"reverse": 1}, label="run"),
    NodeCase("CumSum", 14, [WHOLE, np.array([0])], constants=[1], shapes={0: ["N", 3]}),
    NodeCase("CumProd", 26, [X, np.array(0)], constants=[1]),
    NodeCase("CumProd", 26, [WHOLE, np.array(1)], {"exclusive": 1, "reverse": 1}, label="run"),
]
CASES = [
    *SUMS,
    *OF_16_BITS,
    *BY_ATTRIBUTE,
    *BY_INPUT,
    *OF_NO_ELEMENTS,
    *WITHOUT_REDUCTION,
    *OF_INTEGERS,
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_mean_of_integers_over_a_symbol_is_converted_in_the_run():
    case = NodeCase("ReduceMean", 13, [WHOLE], {"axes": [0]}, shapes={0: ["N", 3]})
    assert is_deferred(case)
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("ReduceSum", 11, [X], {"axes": [3]}), "axis 3 is out of range"),
        (NodeCase("ReduceSum", 13, [X, ints(0, 0)], constants=[1]), "names an axis twice"),
        (NodeCase("CumSum", 14, [X, np.array(3)], constants=[1]), "axis 3 is out of range"),
        (NodeCase("ReduceSum", 13, [X, X], constants=[1]), "ReduceSum-13 takes tensor.int64."),
    ],
    ids=str,
)
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
