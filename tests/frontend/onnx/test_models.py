"""Nodes of a model: their names, what is known of their inputs, and what happens if one is lost."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx, register_converter
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Graph
from tests.frontend.models import make_model, single

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def graph_of(nodes: list[Any], outputs: list[str], **constants: Any) -> Graph:
    stored = {name: np.asarray(value) for name, value in constants.items()}
    model = make_model(nodes, {"x": ("N", 2)}, outputs, stored)
    return from_onnx(model.SerializeToString())


def test_outputs_have_the_names_of_the_model() -> None:
    nodes = [
        single("Relu", "x", outputs=["a"]),
        single("Identity", "a", outputs=["b"]),
        single("Identity", "x", outputs=["c"]),
    ]
    graph = graph_of(nodes, ["a", "b", "c", "x"])
    assert [value.name for value in graph.outputs] == ["a", "b", "c", "x"]
    x = np.array([[-1, 2]], np.float32)
    made = evaluate_graph(graph, {"x": x})
    assert [one.tolist() for one in made] == [[[0, 2]], [[0, 2]], [[-1, 2]], [[-1, 2]]]


def test_a_shape_that_nodes_compute_of_constants_is_known() -> None:
    nodes = [
        single("Concat", "two", "rest", outputs=["shape"], axis=0),
        single("Reshape", "x", "shape"),
    ]
    graph = graph_of(nodes, ["y"], two=[2], rest=[-1])
    assert [node.operator for node in graph.nodes] == ["reshape"]


def test_a_shape_that_a_run_computes_is_deferred_to_it() -> None:
    nodes = [
        single("Shape", "x", outputs=["shape"]),
        single("Gather", "shape", "order", outputs=["turned"]),
        single("Abs", "turned", outputs=["sizes"]),  # elements are not followed through it
        single("Reshape", "x", "sizes", outputs=["y"]),
        single("Relu", "y", outputs=["z"]),
    ]
    graph = graph_of(nodes, ["z"], order=[1, 0])
    assert [node.operator for node in graph.nodes][-2:] == ["onnx.Reshape", "onnx.Relu"]
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert evaluate_graph(graph, {"x": x})[0].shape == (2, 3)


def test_nodes_behind_a_lost_one_are_checked_only() -> None:
    nodes = [
        single("Absent", "x", outputs=["a"]),
        single("Reshape", "a", "a", outputs=["b"]),
        single("Absent2", "b", outputs=["c"]),
        single("Relu", "x", outputs=["d"]),
    ]
    with pytest.raises(Unsupported, match="cannot run 2 nodes") as caught:
        graph_of(nodes, ["b", "c", "d"])
    assert "Reshape" not in str(caught.value)
    with pytest.raises(UserError, match="attribute 'axis' is not of type int"):
        graph_of([*nodes, single("Softmax", "b", outputs=["e"], axis=1.5)], ["e"])


def test_an_output_that_a_converter_leaves_out_must_not_be_used() -> None:
    register_converter("Some", lambda node: [node.required(0), None], domain="test.nodes")

    def graph(*outputs: str) -> Graph:
        node = helper.make_node("Some", ["x"], outputs, domain="test.nodes")
        model = make_model([node], {"x": (2,)}, [outputs[0]])
        model.opset_import.append(helper.make_opsetid("test.nodes", 1))
        return from_onnx(model.SerializeToString())

    assert [value.name for value in graph("y").outputs] == ["y"]
    assert [value.name for value in graph("y", "").outputs] == ["y"]
    for names, lost in ((("y", "z"), "z"), (("y", "", "w"), "w")):
        with pytest.raises(Unsupported, match=f"its output '{lost}' is used"):
            graph(*names)


def test_an_element_type_survives_a_node_that_moves_elements() -> None:
    float8 = TensorProto.FLOAT8E4M3FN
    nodes = [
        single("Cast", "x", outputs=["f"], to=float8),
        single("Transpose", "f", outputs=["t"]),
        single("Cast", "t", to=FLOAT),
    ]
    model = make_model(nodes, {"x": (1, 2)}, ["y"], opset=21)
    x = np.array([[0.3, 1e9]], np.float32)
    (made,) = evaluate_graph(from_onnx(model.SerializeToString()), {"x": x})
    assert made.tolist() == [[0.3125], [448]]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([single("Relu", "q")], "node 'Relu' reads 'q', which nothing before it makes"),
        (
            [single("Relu", "z", outputs=["y"]), single("Relu", "x", outputs=["z"])],
            "reads 'z', which nothing before it makes",
        ),
        ([single("Relu", "y")], "reads 'y', which nothing before it makes"),
        ([single("Relu", "x"), single("Neg", "x")], "two nodes of the model make 'y'"),
        ([single("Relu", "x", outputs=["x"])], "two nodes of the model make 'x'"),
        ([single("Split", "x", outputs=["y", "y"], axis=1)], "two values .* are named 'y'"),
        ([single("Relu", "")], "its input 0 is missing"),
        ([single("Relu", "x", outputs=[""])], "nothing makes the output 'y'"),
    ],
)
def test_names_that_make_no_sense_are_refused(nodes: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        graph_of(nodes, ["y"])


def body(nodes: list[Any], output: str = "z") -> Any:
    info = helper.make_tensor_value_info(output, FLOAT, None)
    return helper.make_graph(nodes, "body", [], [info])


def branch(then: Any, other: Any) -> list[Any]:
    return [
        single("ReduceMax", "x", outputs=["m"], keepdims=0),
        single("Less", "m", "m", outputs=["c"]),
        single("If", "c", then_branch=then, else_branch=other),
    ]


def test_a_subgraph_that_cannot_be_converted_loses_the_node() -> None:
    lost = body([single("Absent", "x", outputs=["z"])])
    good = body([single("Relu", "x", outputs=["z"])])
    with pytest.raises(Unsupported, match="'Absent' .1 node: 'Absent'.: refcomp does not"):
        graph_of(branch(lost, good), ["y"])


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (body([]), "nothing makes the output 'z'"),
        (body([single("Relu", "q", outputs=["z"])]), "reads 'q', which nothing before it"),
        (
            helper.make_graph([], "b", [helper.make_tensor_value_info("a", 1, None)], []),
            "its graph 'b' takes 1 inputs, not 0",
        ),
    ],
)
def test_subgraphs_that_make_no_sense_are_refused(then: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        graph_of(branch(then, body([single("Relu", "x", outputs=["z"])])), ["y"])


def test_subgraphs_in_each_other_are_converted() -> None:
    inner = body([single("Relu", "x", outputs=["z"])])
    for _ in range(8):
        other = body([single("Neg", "x", outputs=["z"])])
        inner = body([single("If", "c", outputs=["z"], then_branch=other, else_branch=inner)])
    graph = graph_of(branch(inner, inner), ["y"])
    x = np.array([[-1, 2]], np.float32)
    assert evaluate_graph(graph, {"x": x})[0].tolist() == [[0, 2]]
