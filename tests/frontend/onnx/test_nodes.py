"""How nodes are converted: names, functions, subgraphs, and what is refused."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.importer import from_onnx
from refcomp.graph.graph import Graph
from tests.frontend.models import make_model, single

X = np.array([1, -2], np.float32)


def graph_of(nodes: list[Any], outputs: tuple[str, ...] = ("y",), **inputs: Any) -> Graph:
    model = make_model(nodes, inputs or {"x": [2]}, outputs)
    return from_onnx(model.SerializeToString())


def test_values_keep_their_names() -> None:
    nodes = [
        single("Relu", "x", outputs=["a"]),
        single("Identity", "a", outputs=["b"]),
        single("Softplus", "b"),
    ]
    graph = graph_of(nodes, ("y", "a"))
    names = [node.name for node in graph.nodes]
    assert names[:2] == ["a", "b"]
    assert [value.name for value in graph.outputs] == ["y", "a"]


def test_nodes_of_a_function_are_named_after_its_call() -> None:
    attention = single("GroupNormalization", "x", "s", "b", num_groups=1)
    attention.name = "norm"
    model = make_model([attention], {"x": ["N", 2, 3], "s": [2], "b": [2]}, ["y"], opset=21)
    names = [node.name for node in from_onnx(model.SerializeToString()).nodes]
    assert names[-1] == "y"


def test_an_input_that_is_an_output_gets_its_name() -> None:
    graph = graph_of([single("Identity", "x", outputs=["y"])])
    assert str(graph.nodes[0]) == "y: f32[2] = identity(x)"


def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    output = helper.make_empty_tensor_value_info(nodes[-1].output[0])
    return helper.make_graph(nodes, name, [], [output])


def conditional(then: onnx.GraphProto, other: onnx.GraphProto) -> onnx.NodeProto:
    node = single("If", "c", then_branch=then, else_branch=other)
    node.name = "choice"
    return node


def test_all_that_is_unknown_is_listed_at_once() -> None:
    unknown = [single(f"Unknown{k}", "x", outputs=[f"u{k}"]) for k in range(5)]
    for place, node in enumerate(unknown):
        node.name = f"n{place}"
        node.op_type = node.op_type if place < 2 else "Unknown"
    inner = conditional(branch("a", unknown[0]), branch("b", unknown[1]))
    nodes = [*unknown[2:], single("Relu", "u2", outputs=["r"]), inner]
    model = make_model(nodes, {"x": [2], "c": []}, ["y", "r"])
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    with pytest.raises(Unsupported) as caught:
        from_onnx(model.SerializeToString())
    assert str(caught.value).splitlines() == [
        "refcomp cannot run 5 nodes of this model",
        "  why: ",
        "    'Unknown' (3 nodes: 'n2', 'n3', 'n4'): refcomp does not support the operator",
        "    'Unknown0' (1 node: 'n0'): refcomp does not support the operator",
        "    'Unknown1' (1 node: 'n1'): refcomp does not support the operator",
        "  what to do: export the model with other operators, or add what is missing: "
        "refcomp.frontend.register_converter",
    ]


def test_a_subgraph_that_reads_what_is_lost_is_not_blamed() -> None:
    lost = single("Unknown", "x", outputs=["u"])
    lost.name = "n"
    relu = branch("a", single("Relu", "u", outputs=["r"]))
    model = make_model(
        [lost, conditional(relu, branch("b", single("Relu", "x", outputs=["s"])))],
        {"x": [2], "c": []},
        ["y"],
    )
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    with pytest.raises(Unsupported, match=r"cannot run 1 node of this model"):
        from_onnx(model.SerializeToString())


def test_damaged_nodes_are_named() -> None:
    with pytest.raises(UserError, match="node 'Relu' reads 'z', which nothing before it makes"):
        graph_of([single("Relu", "z")])
    with pytest.raises(UserError, match="two nodes of the model make 'y'"):
        graph_of([single("Relu", "x"), single("Relu", "x")])
    node = single("Relu", "x", domain="com.example")
    with pytest.raises(UserError, match="names no version of the operators of 'com.example'"):
        graph_of([node])
    node = single("Softmax", "x", axis=5)
    node.name = "bad"
    with pytest.raises(UserError) as caught:
        graph_of([node])
    assert caught.value.where == "node 'bad' (Softmax)"


def test_what_depends_on_a_macro_is_a_macro() -> None:
    nodes = [single("Reshape", "x", "s", outputs=["r"]), single("Relu", "r")]
    model = make_model(nodes, {"x": [2], "s": [2]}, ["y"])
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    graph = from_onnx(model.SerializeToString())
    assert [node.operator for node in graph.nodes] == ["onnx.Reshape", "onnx.Relu"]
    (y,) = onnx_backend.run_model(model, [X, np.array([2, 1])], "INTERP")
    assert y.tolist() == [[1], [0]]


def test_an_operator_has_as_many_outputs_as_its_nodes() -> None:
    nodes = [single("Relu", "x", outputs=["y", "z"])]
    with pytest.raises(UserError, match="it has 2 outputs, not 1"):
        graph_of(nodes)
    nodes = [single("Split", "x", outputs=[]), single("Relu", "x")]
    with pytest.raises(UserError, match="it has 0 outputs, not 1 to"):
        graph_of(nodes)
