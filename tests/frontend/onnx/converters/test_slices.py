import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import NodeCase, check, graph_of, is_deferred

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
FAR = 2**31 - 1


def ints(*values):
    return np.array(values, np.int64)


SLICES = [
    NodeCase("Slice", 1, [X], {"starts": [0, 1], "ends": [1, -1], "axes": [1, 2]}),
    NodeCase("Slice", 1, [X], {"starts": [1], "ends": [1000]}, label="no-axes"),
    NodeCase("Slice", 10, [X, ints(3, -1), ints(0, -9), ints(2, 1), ints(-2, -1)]),
    NodeCase("Slice", 10, [X, ints(1), ints(3), ints(2)], constants=[1, 2, 3], label="steps"),
    NodeCase("Slice", 11, [X, ints(1), ints(3), ints(-1)], constants=[1, 2, 3]),
    NodeCase("Slice", 13, [X > 5, ints(-1), ints(-1000), ints(-1), ints(-3)], label="bools"),
    NodeCase("Slice", 13, [X, ints(3), ints(1), ints(1)], constants=[1, 2, 3], label="empty"),
    NodeCase("Slice", 13, [X, ints(1), ints(FAR), ints(1)], constants=[1, 2, 3],
             shapes={0: ["N", 3, "M"]}, label="symbols"),
]  # fmt: skip
PADS = [
    NodeCase("Pad", 1, [ROWS], {"paddings": [0, 1, 2, 0], "value": 1.5},
             expected=[np.pad(ROWS, ((0, 2), (1, 0)), constant_values=1.5)]),
    NodeCase("Pad", 2, [ROWS], {"pads": [0, -1, 2, 1], "value": 1.5}),
    NodeCase("Pad", 2, [ROWS], {"pads": [1, 2, 1, 0], "mode": "reflect"}, label="reflect"),
    NodeCase("Pad", 11, [ROWS, ints(0, 1, 2, 0), np.float32(7)], constants=[1, 2]),
    NodeCase("Pad", 11, [ROWS, ints(1, 1, 1, 1)], {"mode": "edge"}, label="run"),
    NodeCase("Pad", 13, [ROWS > 1, ints(0, 1, 2, 0), np.array(True)], label="bools"),
    NodeCase("Pad", 13, [ROWS.astype("i8"), ints(0, 1, 2, 0), np.array([2**62 + 1])],
             label="large"),
    NodeCase("Pad", 18, [ROWS, ints(-1, 2), None, ints(-1)], constants=[1, 3]),
    NodeCase("Pad", 19, [ROWS, ints(3, 4), None, ints(1)], {"mode": "wrap"}, constants=[1, 3],
             expected=[np.pad(ROWS, ((0, 0), (3, 4)), "wrap")]),
    NodeCase("Pad", 21, [ROWS.astype("u1"), ints(0, 1, 2, 0), np.uint8(250)]),
    NodeCase("Pad", 23, [ROWS, ints(0, 1, 2, 0)], constants=[1], shapes={0: ["N", 3]}),
    NodeCase("Pad", 24, [ROWS, ints(2, 1), None, np.array([0], "i4")], {"mode": "edge"}),
    NodeCase("Pad", 25, [ROWS, ints(1, 1, 1, 1), np.float32(-np.inf)], constants=[1, 2]),
]  # fmt: skip
OTHERS = [
    NodeCase("CenterCropPad", 18, [X, ints(3, 2)], {"axes": [0, -1]}, constants=[1]),
    NodeCase("CenterCropPad", 18, [X, ints(3, 2, 5)], label="run"),
    NodeCase("ReverseSequence", 10, [X, ints(2, 0, 1)]),
    NodeCase("ReverseSequence", 10, [X, ints(3, 1)], {"time_axis": 1, "batch_axis": 0},
             label="axes"),
    NodeCase("ReverseSequence", 28, [X, ints(2, 0, 1)]),
    NodeCase("Trilu", 14, [X]),
    NodeCase("Trilu", 14, [X, np.array(-1)], {"upper": 0}, constants=[1], label="k"),
    NodeCase("Trilu", 14, [X, np.array(2)], shapes={0: ["N", 3, 4]}, label="run"),
]  # fmt: skip
SMALL = ROWS.astype(ml_dtypes.float8_e5m2)
OTHER_TYPES = [
    NodeCase("Pad", 25, [SMALL, ints(0, 1, 0, 0), SMALL[1, 1]], label="float8",
             expected=[np.pad(ROWS, ((0, 0), (1, 0)), constant_values=4).astype(SMALL.dtype)]),
    NodeCase("Pad", 25, [SMALL, ints(0, 1, 0, 0)], {"mode": "edge"}, label="float8-edge",
             expected=[np.pad(ROWS, ((0, 0), (1, 0)), "edge").astype(SMALL.dtype)]),
    NodeCase("ReverseSequence", 28, [ROWS.astype(ml_dtypes.bfloat16), ints(2, 1, 2)],
             expected=[np.array([[3, 1, 5], [0, 4, 2]], ml_dtypes.bfloat16)], label="bf16"),
]  # fmt: skip
CASES = [*OTHER_TYPES, *SLICES, *PADS, *OTHERS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_whole_axis_of_a_symbolic_extent_is_left_alone():
    inputs = [X, ints(0, 1), ints(FAR, 3), ints(0, 1)]
    case = NodeCase("Slice", 13, inputs, constants=[1, 2, 3], shapes={0: ["N", 3, 4]})
    assert not is_deferred(case)
    check(case)


def test_part_of_a_symbolic_axis_is_taken_in_the_run():
    inputs = [X, ints(-1), ints(FAR), ints(0)]
    case = NodeCase("Slice", 13, inputs, constants=[1, 2, 3], shapes={0: ["N", 3, 4]})
    assert is_deferred(case)
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("Slice", 1, [X], {"ends": [1]}), "its attribute starts is missing"),
        (NodeCase("Slice", 13, [X, ints(0), ints(1, 2)], constants=[1, 2]),
         "it has 1 starts, 2 ends, 1 axes and 1 steps"),
        (NodeCase("Slice", 13, [X, ints(0), ints(2), ints(0), ints(0)], constants=[1, 2, 3, 4]),
         "has a stride of 0"),
        (NodeCase("Slice", 13, [X, ints(0), ints(1), ints(3)], constants=[1, 2, 3]),
         "axis 3 is out of range"),
        (NodeCase("Pad", 1, [ROWS]), "its attribute paddings is missing"),
        (NodeCase("Pad", 2, [ROWS]), "its attribute pads is missing"),
        (NodeCase("Pad", 2, [ROWS], {"pads": [1, 1]}), "it has 2 pads for 2 axes"),
        (NodeCase("Pad", 2, [ROWS], {"pads": [0] * 4, "mode": "edges"}), "its mode is 'edges'"),
        (NodeCase("Pad", 2, [ROWS], {"pads": [-3, 0, 0, 0]}), "pad cannot remove 3 of the 2"),
        (NodeCase("Pad", 13, [ROWS.astype("i8"), ints(1, 1, 1, 1), ints(1, 2)],
                  constants=[1, 2]), "its constant_value has 2 elements, not one"),
        (NodeCase("CenterCropPad", 18, [X, ints(3)], {"axes": [3]}, constants=[1]),
         "axis 3 is out of range"),
        (NodeCase("ReverseSequence", 10, [X, ints(2)]), "number of seq_lengths"),
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
