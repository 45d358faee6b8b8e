import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import EVALUATOR, RUNTIME, NodeCase, check, graph_of

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def ints(*values):
    return np.array(values, np.int64)


GATHERS = [
    NodeCase("Gather", 1, [X, np.array([[1, 0]], "i4")]),
    NodeCase("Gather", 11, [X, ints(-1, 0)], {"axis": -2}),
    NodeCase("Gather", 13, [X, np.int64(2)], {"axis": 2}),
    NodeCase("Gather", 13, [X, ints(1, 1)], shapes={0: ["N", 3, "M"], 1: ["K"]}, label="symbols"),
]
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
PLACES = np.array([[1, -1, 0], [0, 0, 1]])
ELEMENTS = [
    NodeCase("GatherElements", 11, [ROWS, PLACES]),
    NodeCase("GatherElements", 13, [ROWS, PLACES[:, :1]], {"axis": 1}),
    NodeCase("GatherND", 11, [X, np.array([[0, 1], [1, -1]])]),
    NodeCase("GatherND", 12, [X, np.array([[1], [0]])], {"batch_dims": 1}),
    NodeCase("GatherND", 13, [X, np.array([[1, 2, 3]])], shapes={0: ["N", 3, "M"]}),
]
NEW = np.array([[10, 20, 30], [40, 50, 60]], np.float32)
UNIQUE_PLACES = np.array([[1, 0, 1], [0, 1, 0]])
SCATTERS = [
    *[
        NodeCase(operator, version, [ROWS, UNIQUE_PLACES, NEW])
        for operator, version in (
            ("Scatter", 9),
            ("ScatterElements", 11),
            ("ScatterElements", 13),
        )
    ],
    NodeCase("Scatter", 11, [ROWS, UNIQUE_PLACES, NEW], expected=[
        np.array([[40, 20, 60], [10, 50, 30]], "f4")]),
    NodeCase("ScatterElements", 16, [ROWS, PLACES, NEW], {"axis": 1, "reduction": "mul"}),
    NodeCase("ScatterElements", 16, [ROWS, PLACES, NEW], {"reduction": "add"}, label="add"),
    NodeCase("ScatterElements", 18, [ROWS, PLACES, -NEW], {"reduction": "min"}),
    NodeCase("ScatterElements", 18, [ROWS, PLACES, NEW], {"reduction": "max"}, label="max"),
    NodeCase("ScatterND", 11, [ROWS, np.array([[1], [0]]), NEW]),
    NodeCase("ScatterND", 13, [ROWS, np.array([[1, -1], [0, 0]]), NEW[0, :2]]),
    NodeCase("ScatterND", 16, [ROWS, np.array([[1], [1]]), NEW], {"reduction": "add"}),
    NodeCase("ScatterND", 18, [ROWS, np.array([[1], [1]]), -NEW], {"reduction": "min"}),
    NodeCase("ScatterND", 18, [ROWS, np.array([[1], [0]]), NEW], shapes={0: ["N", 3]},
             label="symbols"),
]  # fmt: skip
CACHE = np.zeros((2, 4, 2), np.float32)
UPDATE = np.arange(1, 9, dtype=np.float32).reshape(2, 2, 2)
CUT_OFF = CACHE.copy()
CUT_OFF[0, 3] = UPDATE[0, 0]
CUT_OFF[1, :2] = UPDATE[1]
CACHES = [
    NodeCase("TensorScatter", 24, [CACHE, UPDATE]),
    NodeCase("TensorScatter", 24, [CACHE, UPDATE, ints(3, 1)], {"mode": "circular"},
             label="circular"),
    NodeCase("TensorScatter", 24, [CACHE, UPDATE, ints(2, 1)], {"axis": 1},
             shapes={0: ["N", 4, 2]}, label="symbols"),
    NodeCase("TensorScatter", 24, [CACHE, UPDATE, ints(3, 0)], expected=[CUT_OFF],
             label="beyond-the-end"),
]  # fmt: skip
MASK = np.array([[0, 1, 0], [2, 0, np.nan]], np.float32)
CHOICES = [
    NodeCase("NonZero", 9, [MASK]),
    NodeCase("NonZero", 13, [MASK > 0], shapes={0: ["N", 3]}),
    NodeCase("Compress", 9, [X, np.array([False, True, True])], {"axis": 1}),
    NodeCase("Compress", 9, [ROWS, np.array([False, True, True])], label="flat"),
    NodeCase("Compress", 11, [X, np.array([True])], {"axis": -1}),
    NodeCase("Compress", 28, [X, np.array([True])], {"axis": 0}, shapes={0: ["N", 3, 4]}),
]
DEPTH = np.array(4)
OFF_ON = np.array([2, 5], np.float32)
ONE_HOTS = [
    NodeCase("OneHot", 9, [ints(1, 3, 4), DEPTH, OFF_ON], constants=[1]),
    NodeCase("OneHot", 9, [ints(1, -3, 4), DEPTH, OFF_ON], constants=[1],
             expected=[np.array([[2, 5, 2, 2], [2] * 4, [2] * 4], "f4")],
             wrong={RUNTIME: "counts a negative index from the end",
                    EVALUATOR: "counts a negative index from the end"}, label="negative"),
    NodeCase("OneHot", 11, [ints(1, -1, 4, -5), DEPTH, OFF_ON], {"axis": 0}, label="run"),
    NodeCase("OneHot", 11, [np.array([[1.7, -1]], "f4"), np.float32(3), np.array([0, 9], "i8")],
             {"axis": 1}, [np.array([[[0, 0], [9, 0], [0, 9]]])], constants=[1],
             wrong={EVALUATOR: "does not convert 1.7 to an integer"}, label="floats"),
    NodeCase("OneHot", 11, [np.array([2], "u1"), np.array([3]), np.array([False, True])],
             expected=[np.array([[False, False, True]])], label="bools"),
    NodeCase("OneHot", 28, [ints(0, 2), DEPTH, OFF_ON], constants=[1], shapes={0: ["N"]}),
]  # fmt: skip
HALF = ROWS.astype(ml_dtypes.bfloat16)
SMALL = CACHE.astype(ml_dtypes.int4)
FILLED = SMALL.copy()
FILLED[:, :2] = UPDATE.astype(SMALL.dtype)
OTHER_TYPES = [
    NodeCase("Compress", 28, [HALF, np.array([False, True])], {"axis": 0}, [HALF[1:]],
             label="bf16"),
    NodeCase("OneHot", 28, [ints(1), np.array(2), np.array([2, 5], HALF.dtype)],
             expected=[np.array([[2, 5]], HALF.dtype)], label="bf16"),
    NodeCase("TensorScatter", 24, [SMALL, UPDATE.astype(SMALL.dtype)], expected=[FILLED],
             label="int4"),
    NodeCase("ScatterElements", 18, [HALF, PLACES, NEW.astype(HALF.dtype)], {"reduction": "max"},
             [np.array([[40, 50, 30], [10, 20, 60]], HALF.dtype)], label="bf16"),
]  # fmt: skip
CASES = [*OTHER_TYPES, *GATHERS, *ELEMENTS, *SCATTERS, *CACHES, *CHOICES, *ONE_HOTS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("Gather", 13, [X, ints(0)], {"axis": 3}), "axis 3 is out of range"),
        (NodeCase("Gather", 13, [X, X]), "Gather-13 takes tensor.int32."),
        (NodeCase("GatherElements", 13, [ROWS, ints(0)]), "gather_elements"),
        (NodeCase("GatherND", 13, [X, np.array(1)]), "axis -1 is out of range"),
        (NodeCase("ScatterElements", 18, [ROWS, PLACES, NEW], {"reduction": "sub"}), "'sub'"),
        (NodeCase("ScatterND", 18, [ROWS, np.array([[0]]), NEW]), "scatter_nd"),
        (NodeCase("TensorScatter", 24, [CACHE, UPDATE], {"mode": "round"}), "mode is 'round'"),
        (NodeCase("TensorScatter", 24, [CACHE, UPDATE], {"axis": 0}), "that of the batch"),
        (NodeCase("TensorScatter", 24, [CACHE, UPDATE[..., :1]]), "does not fit into"),
        (NodeCase("TensorScatter", 24, [CACHE, UPDATE, ints(1)]), "not one for each of 2"),
        (NodeCase("TensorScatter", 24, [UPDATE, CACHE]), "it writes 4 elements into 2"),
        (NodeCase("Compress", 11, [ROWS, np.array([True] * 3)], {"axis": 0}), "compress"),
        (
            NodeCase("OneHot", 11, [ints(0), DEPTH, ints(1, 2, 3)], constants=[1]),
            "not the values for off and on",
        ),
    ],
    ids=str,
)
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
