"""Numbers for strings: which operators run on them, and what a graph has in the end."""

import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import Unsupported
from refcomp.frontend.onnx import from_onnx
from tests.frontend.models import make_model, single


def model_of(node, opset=21):
    model = make_model([node], {"x": ("N",), "z": (2,)}, ["y"], None, TensorProto.STRING, opset)
    del model.graph.output[:]
    model.graph.output.append(helper.make_empty_tensor_value_info("y"))
    return model.SerializeToString()


def test_all_inputs_of_a_node_are_numbered_together() -> None:
    graph = from_onnx(model_of(single("Concat", "x", "z", axis=0)))
    codes, concat, lookup = graph.nodes
    assert [one.operator for one in graph.nodes] == ["string_codes", "onnx.Concat", "string_lookup"]
    assert (*concat.inputs, lookup.inputs[1]) == codes.outputs
    assert str(graph.outputs[0]) == "y: string[*]"


def test_an_output_that_is_no_text_is_not_looked_up() -> None:
    graph = from_onnx(model_of(single("Equal", "x", "z")))
    assert str(graph.outputs[0]) == "y: bool[*]"
    assert [one.operator for one in graph.nodes] == ["string_codes", "onnx.Equal"]


@pytest.mark.parametrize(
    "node",
    [
        single("RandomNormalLike", "x"),
    ],
    ids=lambda node: node.op_type,
)
def test_operators_that_compute_elements_are_not_run_on_numbers(node) -> None:
    with pytest.raises(Unsupported, match="(?s)cannot run 1 node.*cannot compute elements"):
        from_onnx(model_of(node))
