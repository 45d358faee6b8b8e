import numpy as np
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from tests.frontend.models import make_model, single
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.array([7], np.float32)
WORDS = np.array(["a", "b"], object)
ROWS = "Its sequence is an array of rows."
CASES = [
    NodeCase("SequenceConstruct", 11, [X, Y], expected=[[X, Y]]),
    NodeCase("SequenceConstruct", 11, [WORDS], expected=[[WORDS]], label="strings"),
    NodeCase("SequenceEmpty", 11, [], expected=[[]]),
    NodeCase("SequenceEmpty", 11, [], {"dtype": 7}, expected=[[]], label="i64"),
    NodeCase("SequenceAt", 11, [[X, Y], np.array(-1)], expected=[Y]),
    NodeCase("SequenceInsert", 11, [[X], Y], expected=[[X, Y]]),
    NodeCase("SequenceInsert", 11, [[X], Y, np.array(-1)], expected=[[Y, X]], label="place"),
    NodeCase("SequenceErase", 11, [[X, Y]], expected=[[X]]),
    NodeCase("SequenceErase", 11, [[X, Y], np.array(0, np.int32)], expected=[[Y]], label="place"),
    NodeCase("SequenceLength", 11, [[X, Y]], expected=[np.array(2)]),
    NodeCase("ConcatFromSequence", 11, [[X, X]], {"axis": -1}),
    NodeCase("ConcatFromSequence", 11, [[X, X]], {"axis": 1, "new_axis": 1}, label="new"),
    NodeCase("SplitToSequence", 11, [X], {"axis": 1}),
    NodeCase("SplitToSequence", 11, [X], {"keepdims": 0}, expected=[list(X)], label="rows"),
    NodeCase(
        "SplitToSequence",
        11,
        [X, np.array(2)],
        {"axis": 1, "keepdims": 0},
        expected=[[X[:, :2], X[:, 2:]]],
        label="equal",
        wrong={EVALUATOR: "keepdims is ignored if the sizes are given"},
    ),
    NodeCase("SplitToSequence", 24, [X, np.array([1, 0, 2])], {"axis": 1}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def body(name: str, node: object, inputs: dict[str, int], output: str) -> object:
    """A graph of one node, whose inputs have no shape."""
    return helper.make_graph(
        [node],
        name,
        [helper.make_tensor_value_info(k, code, None) for k, code in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
    )


def test_a_map_gives_its_body_elements_tensors_and_captured_values() -> None:
    inner = helper.make_graph(
        [single("Concat", "a", "b", "outer", outputs=["c"], axis=0)],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ab"],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, None)],
    )
    nodes = [
        single("SequenceConstruct", "x", "y", outputs=["s"]),
        single("SequenceMap", "s", "y", outputs=["t"], body=inner),
        single("ConcatFromSequence", "t", axis=0),
    ]
    model = make_model(nodes, {"x": (2,), "y": ("N",), "outer": (1,)}, ["y2"][:0] or ["y_"])
    model.graph.node[2].output[0] = "y_"
    x, y, outer = (np.array(one, np.float32) for one in ([1, 2], [3], [4]))
    (made,) = onnx_backend.run_model(model, [x, y, outer], "INTERP")
    assert made.tolist() == [1, 2, 3, 4, 3, 3, 4]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (single("SequenceConstruct", outputs=["y"]), "element types none, not one type"),
        (single("SequenceConstruct", "x", "i"), "element types float32 and int64"),
        (
            single("SequenceMap", "x", body=helper.make_graph([], "b", [], [])),
            "its input 0 is x: f32.2., a tensor",
        ),
        (single("SequenceAt", "x", "i"), "its input 0 is x: f32.2., a tensor"),
        (single("SequenceEmpty", dtype=15), "its sequence has the element type complex128"),
        (single("SequenceAt", "x"), "its input 1 is missing"),
    ],
)
def test_what_is_ill_formed(node, message) -> None:
    model = make_model([node], {"x": (2,)}, ["y"], {"i": np.array(0)})
    with pytest.raises(UserError, match=message) as caught:
        onnx_backend.prepare(model, "INTERP")
    assert "node" in caught.value.where


def test_a_place_that_a_run_finds_missing() -> None:
    nodes = [
        single("SequenceConstruct", "x", outputs=["s"]),
        single("SequenceAt", "s", "i"),
    ]
    model = make_model(nodes, {"x": (2,)}, ["y"], {"i": np.array(1)})
    with pytest.raises(UserError, match="asks for element 1 of a sequence of 1"):
        onnx_backend.run_model(model, [np.zeros(2, np.float32)], "INTERP")
