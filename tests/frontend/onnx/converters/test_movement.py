import ml_dtypes
import numpy as np
import pytest

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.extent_values import are_equal
from refcomp.graph.graph import is_macro
from tests.frontend.models import make_model, single
from tests.frontend.onnx.converters.cases import NodeCase, check, graph_of, is_deferred

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def ints(*values):
    return np.array(values, np.int64)


RESHAPES = [
    NodeCase("Reshape", 1, [X], {"shape": [0, -1]}, expected=[X.reshape(2, 12)]),
    NodeCase("Reshape", 5, [X, ints(4, -1)], label="run"),
    NodeCase("Reshape", 5, [X, ints(4, -1)], constants=[1]),
    NodeCase("Reshape", 13, [X, ints(0, 12)], constants=[1]),
    NodeCase("Reshape", 14, [np.zeros((0, 3, 4), "f4"), ints(3, 0)], {"allowzero": 1}),
    NodeCase("Reshape", 21, [X.astype("i8"), ints(2, 2, -1)]),
    NodeCase("Flatten", 1, [X], {"axis": 2}, expected=[X.reshape(6, 4)]),
    NodeCase("Flatten", 9, [X.astype("i4")], {"axis": 0}),
    NodeCase("Flatten", 11, [X], {"axis": -1}),
    *[NodeCase("Flatten", version, [X]) for version in (13, 21, 23, 24, 25)],
    NodeCase("Transpose", 1, [X]),
    NodeCase("Transpose", 13, [X], {"perm": [1, 0, 2]}),
    *[NodeCase("Transpose", version, [X]) for version in (21, 23, 24, 25)],
    *[NodeCase("Reshape", version, [X, ints(2, 12)]) for version in (19, 23, 24, 25)],
]
AXES = [
    NodeCase("Squeeze", 1, [X[:, None, :, None]], {"axes": [1]}),
    NodeCase("Squeeze", 1, [X[:, None, :, None]], label="all"),
    NodeCase("Squeeze", 11, [X[:, None]], {"axes": [-3]}),
    NodeCase("Squeeze", 13, [X[:, None], ints(-3)], constants=[1]),
    NodeCase("Squeeze", 13, [X[:, None], ints(-3)], label="run"),
    NodeCase("Squeeze", 13, [X[:, None]], label="all"),
    NodeCase("Squeeze", 21, [X[:, None], None]),
    NodeCase("Unsqueeze", 1, [X], {"axes": [0, 2]}),
    NodeCase("Unsqueeze", 11, [X], {"axes": [-1, 0]}),
    NodeCase("Unsqueeze", 13, [X, ints(-1)], constants=[1]),
    NodeCase("Unsqueeze", 13, [X, ints(1, -1)], label="run"),
    *[NodeCase("Squeeze", version, [X[None], ints(0)]) for version in (23, 24, 25)],
    *[NodeCase("Unsqueeze", version, [X, ints(-2)]) for version in (21, 23, 24, 25)],
]
JOINS = [
    NodeCase("Concat", 1, [ROWS, ROWS], expected=[np.concatenate([ROWS, ROWS], 1)]),
    NodeCase("Concat", 1, [ROWS, ROWS], {"axis": 0}, [np.vstack([ROWS] * 2)], label="axis"),
    NodeCase("Concat", 4, [ROWS, ROWS[:, :1], ROWS[:, :0]], {"axis": 1}),
    NodeCase("Concat", 11, [ROWS, ROWS[:1]], {"axis": -2}),
    NodeCase(
        "Concat", 13, [ROWS, ROWS[:1]], {"axis": 0}, shapes={0: ["N", 3], 1: ["M", "K"]}
    ),
    NodeCase("Split", 1, [X], {"axis": 2, "split": [1, 3]}, outputs=2,
             expected=[X[..., :1], X[..., 1:]]),
    NodeCase("Split", 1, [X, np.array([3, 1], "f4")], {"axis": 2}, outputs=2,
             expected=[X[..., :3], X[..., 3:]], label="input"),
    NodeCase("Split", 2, [X], {"axis": 2}, outputs=2),
    NodeCase("Split", 2, [X], {"axis": 2, "split": [0, 4]}, outputs=2, label="sizes"),
    NodeCase("Split", 11, [X], {"axis": -2}, outputs=3),
    NodeCase("Split", 13, [X, ints(3, 1)], {"axis": -1}, outputs=2, constants=[1]),
    NodeCase("Split", 13, [X, ints(3, 1)], {"axis": -1}, outputs=2, label="run"),
    NodeCase("Split", 18, [X[:, :, :3]], {"axis": 2, "num_outputs": 2}, outputs=2),
    NodeCase("Split", 18, [X], {"num_outputs": 2}, outputs=2, shapes={0: ["N", 3, "M"]},
             label="symbolic"),
]  # fmt: skip
REPETITIONS = [
    NodeCase("Expand", 8, [ROWS[:, None], ints(4, 1, 3, 1)[1:]], label="run"),
    NodeCase("Expand", 8, [ROWS[:, :1], ints(4, 1, 3)], constants=[1]),
    NodeCase("Expand", 13, [X, ints(4)], constants=[1], shapes={0: ["N", 3, 4]}),
    NodeCase("Expand", 13, [ROWS > 2, ints(2, 2, 3)], constants=[1], label="bools"),
    NodeCase("Expand", 13, [ROWS[:1], ints(0, 3)], constants=[1], label="empty"),
    NodeCase("Tile", 1, [ROWS, np.float32(2), np.float32(1)],
             expected=[np.tile(ROWS, (1, 2))]),
    NodeCase("Tile", 6, [ROWS, ints(2, 3)], constants=[1]),
    NodeCase("Tile", 13, [ROWS, ints(2, 0)], label="run"),
]  # fmt: skip
SHAPES = [
    *[NodeCase("Shape", version, [X]) for version in (1, 13, 21, 24, 25)],
    NodeCase("Shape", 15, [X], {"start": -2, "end": 9}),
    NodeCase("Shape", 19, [X], {"start": 2, "end": 1}),
    NodeCase("Shape", 23, [X], {"start": 1}, shapes={0: ["N", "M", 4]}),
    *[NodeCase("Size", version, [X]) for version in (1, 13, 19, 21, 23, 24, 25)],
    NodeCase("Size", 13, [X], shapes={0: ["N", 3, "M"]}, label="symbolic"),
]
SMALL = [[1, 2, 3], [4, 0, 6]]


def of_a_narrow_type(dtype):
    """Return cases of elements that a graph holds in bytes."""
    data = np.array(SMALL).astype(dtype)
    name = np.dtype(dtype).name
    return [
        NodeCase("Transpose", 25, [data], expected=[data.T], label=name),
        NodeCase("Reshape", 25, [data, ints(3, -1)], expected=[data.reshape(3, 2)], label=name),
        NodeCase("Flatten", 25, [data], {"axis": 0}, [data.reshape(1, 6)], label=name),
        NodeCase("Squeeze", 25, [data[None]], expected=[data], label=name),
        NodeCase("Unsqueeze", 25, [data, ints(0)], expected=[data[None]], label=name),
        NodeCase("Size", 25, [data], expected=[np.array(6)], label=name),
    ]


NARROW = [
    case
    for dtype in (
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float4_e2m1fn,
        ml_dtypes.int4,
        ml_dtypes.uint2,
    )
    for case in of_a_narrow_type(dtype)
]
CASES = [*RESHAPES, *AXES, *JOINS, *REPETITIONS, *SHAPES, *NARROW]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


IN_A_RUN = [
    NodeCase("Reshape", 13, [X, ints(4, 6)], constants=[1], shapes={0: ["N", "M", 4]}),
    NodeCase("Squeeze", 13, [X[:1]], shapes={0: ["N", 3, 4]}),
    NodeCase("Squeeze", 13, [X[:1], ints(0)], constants=[1], shapes={0: ["N", 3, 4]}),
    NodeCase("Concat", 13, [ROWS, ROWS], {"axis": 1}, shapes={0: ["N", 3], 1: ["M", 3]}),
    NodeCase("Expand", 13, [X[:1], ints(5, 3, 4)], constants=[1], shapes={0: ["N", 3, 4]}),
    NodeCase("Expand", 13, [X[:1], ints(5, 3, 4)], shapes={0: ["N", 3, 4]}, label="run"),
]


@pytest.mark.parametrize("case", IN_A_RUN, ids=str)
def test_what_symbols_hide_is_converted_in_the_run(case):
    assert is_deferred(case)
    check(case)


AT_ONCE = [
    NodeCase("Shape", 13, [X], shapes={0: ["N", 3, "M"]}),
    NodeCase("Shape", 15, [X], {"start": -2}, shapes={0: ["N", 3, "M"]}, label="start"),
    NodeCase("Size", 13, [X], shapes={0: ["N", 3, "M"]}),
    NodeCase("Reshape", 13, [X, ints(0, -1)], constants=[1], shapes={0: ["N", 3, 4]}),
    NodeCase("Flatten", 13, [X], shapes={0: ["N", 3, 4]}),
    NodeCase("Shape", 15, [X], {"start": 1}, shapes={0: ["N", 3, 4]}),
    NodeCase("Expand", 13, [X, ints(2, 1, 3, 1)], constants=[1], shapes={0: ["N", 3, 4]}),
    NodeCase("Concat", 13, [X, X], {"axis": 1}, shapes={0: ["N", 3, 4], 1: ["N", 3, 4]}),
]


def test_symbols_beside_an_extent_of_0_are_found_in_the_run():
    for operator in ("Shape", "Size"):
        case = NodeCase(operator, 13, [X[:, :0]], shapes={0: ["N", 0, 4]})
        assert is_deferred(case)
        check(case)


@pytest.mark.parametrize("case", AT_ONCE, ids=str)
def test_symbols_that_do_not_matter_are_kept(case):
    assert not is_deferred(case)
    check(case)


def transposed_heads(by_constant):
    """Return a model that divides the last axis of [N, S, 8] in two, and joins it again."""
    nodes = [
        single("Shape", "x", outputs=["shape"]),
        single("Gather", "shape", "zero", outputs=["n"], axis=0),
        single("Gather", "shape", "one", outputs=["s"], axis=0),
        single("Unsqueeze", "n", "axes", outputs=["n1"]),
        single("Unsqueeze", "s", "axes", outputs=["s1"]),
        single("Concat", "n1", "s1", "two", "rest", outputs=["wide"], axis=0),
        single("Reshape", "x", "wide", outputs=["heads"]),
        single("Transpose", "heads", outputs=["moved"], perm=[0, 2, 1, 3]),
        single("Transpose", "moved", outputs=["back"], perm=[0, 2, 1, 3]),
        single("Mul", "n", "s", outputs=["rows"]),
        single("Unsqueeze", "rows", "axes", outputs=["rows1"]),
        single("Concat", "rows1", "eight", outputs=["narrow"], axis=0),
        single("Reshape", "back", "narrow"),
    ]
    constants = {
        "zero": np.array(0),
        "one": np.array(1),
        "axes": ints(0),
        "two": ints(2),
        "rest": ints(by_constant),
        "eight": ints(8),
    }
    return make_model(nodes, {"x": ["N", "S", 8]}, ["y"], constants)


@pytest.mark.parametrize("by_constant", [4, -1])
def test_shapes_that_a_model_computes_are_followed(by_constant):
    model = transposed_heads(by_constant)
    graph = from_onnx(model.SerializeToString())
    assert not any(is_macro(node.operator) for node in graph.nodes)
    assert are_equal(graph.outputs[0].shape[0], ("mul", "N", "S"))
    data = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    (made,) = onnx_backend.run_model(model, [data], "INTERP")
    np.testing.assert_array_equal(made, data.reshape(6, 8))


def test_a_shape_of_other_symbols_is_compared_in_the_run():
    nodes = [single("Shape", "x", outputs=["shape"]), single("Reshape", "z", "shape")]
    model = make_model(nodes, {"x": ["N", "M"], "z": ["K", 4]}, ["y"])
    graph = from_onnx(model.SerializeToString())
    assert [node.operator for node in graph.nodes][-1] == "onnx.Reshape"
    (made,) = onnx_backend.run_model(
        model, [np.zeros((2, 6), "f4"), np.ones((3, 4), "f4")], "INTERP"
    )
    assert made.shape == (2, 6)


def test_whole_axes_by_computed_shapes():
    nodes = [
        single("Shape", "x", outputs=["shape"]),
        single("Slice", "shape", "zero", "one", outputs=["n"]),
        single("Slice", "x", "zero", "n", outputs=["same"]),
        single("Expand", "same", "shape"),
    ]
    constants = {"zero": ints(0), "one": ints(1)}
    graph = from_onnx(make_model(nodes, {"x": ["N", 2]}, ["y"], constants).SerializeToString())
    assert [node.operator for node in graph.nodes] == ["identity"] * 2


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("Reshape", 14, [X, ints(0, -1)], {"allowzero": 1}, constants=[1]),
         "both 0 and -1"),
        (NodeCase("Reshape", 14, [X, ints(0, 2)], {"allowzero": 1}, constants=[1]),
         r"its shape \[0, 2\] has none"),
        (NodeCase("Reshape", 14, [X, ints(5, 5)], constants=[1]), "reshape cannot make 5"),
        (NodeCase("Reshape", 14, [X, X], constants=[1]), "Reshape-14 takes tensor.int64."),
        (NodeCase("Squeeze", 1, [X], {"axes": [1]}), "removes axis 1 .* is not 1"),
        (NodeCase("Squeeze", 1, [X], {"axes": [3]}), "axis 3 is out of range"),
        (NodeCase("Concat", 4, [], {"axis": 0}), "it has no tensors to join"),
        (NodeCase("Split", 1, [X, np.array([np.inf, 1], "f4")], outputs=2, constants=[1]),
         r"its sizes \[inf, 1.0\] are not integers"),
        (NodeCase("Unsqueeze", 1, [X]), "its attribute axes is missing"),
        (NodeCase("Concat", 4, [X]), "its attribute axis is missing"),
        (NodeCase("Concat", 4, [X, X[:, :1]], {"axis": 0}), "extent 1 of operand 1 is 1"),
        (NodeCase("Expand", 8, [ROWS, ints(-1)], constants=[1]), "has a negative extent"),
        (NodeCase("Expand", 8, [ROWS, ints(2, 2)], constants=[1]), "does not broadcast to"),
        (NodeCase("Tile", 6, [ROWS, ints(2)], constants=[1]), "it has 1 repeats for"),
        (NodeCase("Split", 13, [X], {"axis": 2}, outputs=3), "cannot divide axis 2"),
        (NodeCase("Split", 18, [ROWS], {"num_outputs": 4}, outputs=4), "cannot divide axis 0"),
        (NodeCase("Split", 18, [ROWS], {"num_outputs": 1}, outputs=2), "num_outputs is 1"),
        (NodeCase("Split", 18, [ROWS, ints(1, 1)], {"num_outputs": 2}, outputs=2,
                  constants=[1]), "both sizes and num_outputs"),
        (NodeCase("Split", 13, [X, ints(2)], outputs=2, constants=[1]), "it has 1 sizes and 2"),
        (NodeCase("Split", 13, [X, ints(3, -1)], outputs=2, constants=[1]), "do not divide"),
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message) as info:
        graph_of(case)
    assert case.operator in info.value.where
