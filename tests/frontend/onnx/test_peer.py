"""ONNX Runtime as a peer: every value that it computes, and what it refuses."""

import sys

import numpy as np
import pytest

from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.frontend.onnx.peer import run_onnx_runtime

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

X = np.array([[-2, 3]], np.float32)


def model(second: str = "Exp") -> bytes:
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [make.make_node("Relu", ["x"], ["r/0"]), make.make_node(second, ["r/0"], ["y"])]
    x, y = (make.make_tensor_value_info(name, kind, ["N", 2]) for name in "xy")
    graph = make.make_graph(nodes, "net", [x], [y])
    opsets = [make.make_opsetid("", 17)]
    return make.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_intermediate_values_are_returned() -> None:
    found = run_onnx_runtime(model(), {"x": X})
    assert list(found) == ["x", "r/0", "y"]
    assert found["r/0"].tolist() == [[0, 3]]
    assert np.array_equal(found["x"], X)
    np.testing.assert_allclose(found["y"], np.exp([[0, 3]]), rtol=1e-6)


def test_what_it_refuses_is_a_failure_of_the_tool() -> None:
    with pytest.raises(ToolchainError, match="ONNX Runtime does not run the model") as info:
        run_onnx_runtime(model("Unheard"), {"x": X})
    assert "Unheard" in info.value.stderr
    assert info.value.remedy == "compare with --against evaluate"


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=f"needs the package {package}, which is not") as info:
        run_onnx_runtime(b"", {})
    assert 'pip install "refcomp[onnx,bench]"' in info.value.remedy
