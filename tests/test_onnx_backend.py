"""ONNX's backend interface, on each device."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported, UserError


def model_of(node: onnx.NodeProto, inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    infos = [
        [helper.make_tensor_value_info(name, *given) for name, given in side.items()]
        for side in (inputs, outputs)
    ]
    sets = [helper.make_opsetid("", 21)]
    return helper.make_model(helper.make_graph([node], "net", *infos), opset_imports=sets)


RELU = model_of(
    helper.make_node("Relu", ["x"], ["y"]),
    {"x": (TensorProto.FLOAT, ["N"])},
    {"y": (TensorProto.FLOAT, ["N"])},
)
X = np.array([1, -2], np.float32)


@pytest.mark.parametrize(
    "device",
    [
        pytest.param("CPU", marks=pytest.mark.llvm),
        "INTERP",
        pytest.param("OPENCL", marks=pytest.mark.pocl),
        pytest.param("EMULATOR:gfx942", marks=pytest.mark.rocm),
    ],
)
def test_a_model_runs_on_each_device(device: str) -> None:
    assert onnx_backend.supports_device(device)
    prepared = onnx_backend.prepare(RELU, device)
    assert prepared.run([X])[0].tolist() == [1, 0]
    assert prepared.run({"x": X[:1]})[0].tolist() == [1]
    assert prepared.launches == 2


def test_models_and_nodes_run_at_once() -> None:
    assert onnx_backend.run_model(RELU, [X], "INTERP")[0].tolist() == [1, 0]
    node = helper.make_node("Relu", ["a"], ["b"])
    assert onnx_backend.run_node(node, [X], "INTERP", opset_version=13)[0].tolist() == [1, 0]


def test_narrow_types_are_those_of_ml_dtypes() -> None:
    for code, dtype in (
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TensorProto.INT4, ml_dtypes.int4),
    ):
        node = helper.make_node("Reshape", ["x", "s"], ["y"])
        kinds = {"x": (code, [2]), "s": (TensorProto.INT64, [2])}
        model = model_of(node, kinds, {"y": (code, None)})
        x = np.array([1, -2], dtype)
        (y,) = onnx_backend.run_model(model, [x, np.array([1, 2])], "INTERP")
        assert y.dtype == dtype
        assert y.astype(float).tolist() == [[1, -2]]


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(UserError, match="(?s)no device is called 'CPV'.*did you mean CPU"):
        onnx_backend.prepare(RELU, "CPV")
    with pytest.raises(UserError, match="1 is not a device"):
        onnx_backend.prepare(RELU, 1)  # type: ignore[arg-type]
    assert not onnx_backend.supports_device("TPU")
    with pytest.raises(UserError, match="a bytes is not a model"):
        onnx_backend.prepare(b"", "INTERP")
    with pytest.raises(UserError, match="2 inputs are given, but the model has 1"):
        onnx_backend.run_model(RELU, [X, X], "INTERP")
    with pytest.raises(UserError, match="the node reads 1 values, but 2 are given"):
        onnx_backend.run_node(RELU.graph.node[0], [X, X], "INTERP")
    unknown = helper.make_node("Nonsense", ["x"], ["y"], name="n", domain="com.example")
    with pytest.raises(Unsupported, match=r"'com.example.Nonsense' \(1 node: 'n'\)"):
        onnx_backend.run_node(unknown, [X], "INTERP", opset_version=1)
