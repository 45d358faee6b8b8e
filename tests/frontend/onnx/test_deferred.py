"""ONNX nodes that become macros, and what a run makes of them."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported
from refcomp.frontend.onnx import registry
from refcomp.frontend.onnx.importer import from_onnx
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import register_converter
from refcomp.graph.control.operators import find_control
from refcomp.graph.graph import Value
from refcomp.graph.parser import parse_graph


def model_of(node: onnx.NodeProto, inputs: dict[str, Any], code: int) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
    y = helper.make_tensor_value_info("y", code, None)
    graph = helper.make_graph([node], "net", infos, [y])
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("test", 1)]
    return helper.make_model(graph, opset_imports=sets)


SHAPE = (TensorProto.INT64, [2])


def test_the_macro_holds_what_the_node_is_converted_with() -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)
    model = model_of(node, {"x": (TensorProto.INT4, [4]), "s": SHAPE}, TensorProto.INT4)
    graph = from_onnx(model.SerializeToString())
    assert str(graph.nodes[0]) == (
        "y: i8[*] = onnx.Reshape(x, s) {allowzero=1, onnx_types=[22, 7], onnx_version=21}"
    )
    assert str(parse_graph(str(graph))) == str(graph)
    x = np.array([1, 2, 3, -4], ml_dtypes.int4)
    prepared = onnx_backend.prepare(model, "INTERP")
    for shape in ([2, 2], [4, 1]):
        (y,) = prepared.run([x, np.array(shape)])
        assert y.shape == tuple(shape)
        assert y.dtype == ml_dtypes.int4


def attributes_of(node: OnnxNode) -> Value:
    """A converter that needs elements, and all kinds of attributes."""
    count = node.integer(node.required(1), "count")
    total = count + sum(node.attributes["ints"]) + int(node.attributes["tensor"].sum())
    assert node.attributes["texts"] == ("a", "b,c")
    assert node.attributes["text"] == "t"
    return node.make("scale", [node.required(0)], factor=float(total))


def test_attributes_of_all_kinds_reach_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_CONVERTERS", dict(registry._CONVERTERS))
    register_converter("Relu", attributes_of)  # a schema tells the type of the output
    node = helper.make_node("Relu", ["x", "n"], ["y"])
    given = {
        "ints": [1, 2],
        "texts": ["a", "b,c"],
        "text": "t",
        "tensor": numpy_helper.from_array(np.array([10], np.int64)),
    }
    monkeypatch.setattr("refcomp.frontend.onnx.attributes._check_declared", lambda *_: None)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in given.items())
    inputs = {"x": (TensorProto.FLOAT, [1]), "n": (TensorProto.INT64, [])}
    model = model_of(node, inputs, TensorProto.FLOAT)
    prepared = onnx_backend.prepare(model, "INTERP")
    assert "onnx_tensors" in str(prepared.graph)
    (y,) = prepared.run([np.ones(1, np.float32), np.array(100)])
    assert y.tolist() == [113]


def test_a_type_that_nobody_knows_cannot_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_CONVERTERS", dict(registry._CONVERTERS))
    register_converter("Own", attributes_of, domain="test")
    node = helper.make_node("Own", ["x", "n"], ["y"], domain="test")
    inputs = {"x": (TensorProto.FLOAT, [1]), "n": (TensorProto.INT64, [])}
    with pytest.raises(Unsupported, match="needs values that only a run computes"):
        from_onnx(model_of(node, inputs, TensorProto.FLOAT).SerializeToString())


def test_no_macro_is_an_operator_of_control() -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    model = model_of(node, {"x": (TensorProto.FLOAT, [4]), "s": SHAPE}, TensorProto.FLOAT)
    graph = from_onnx(model.SerializeToString())
    assert all(find_control(one.operator) is None for one in graph.nodes)
