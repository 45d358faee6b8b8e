import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import NodeCase, check, graph_of, is_deferred

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
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
CASES = [*SLICES]


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
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)
