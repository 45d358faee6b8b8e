"""A graph that is written node by node computes what its nodes say."""

import numpy as np
import onnx
import onnxruntime
import pytest

from benchmarks.real_models.onnx_writer import OnnxWriter


def test_a_written_model_runs() -> None:
    writer = OnnxWriter()
    two = writer.constant("two", np.float32(2))
    assert writer.constant("two", np.float32(2)) == two
    value = writer.node("Mul", "x", two, name="doubled")
    writer.node("ReduceSum", value, writer.integers(1), name="y", keepdims=0)
    model = writer.finish("net", {"x": (np.float32, ["N", 3])}, {"y": ["N"]})
    session = onnxruntime.InferenceSession(model)
    (y,) = session.run(None, {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})
    assert y.tolist() == [6, 24]


def test_an_illegal_model_is_refused() -> None:
    writer = OnnxWriter()
    writer.node("Mul", "x", "nothing", name="y")
    with pytest.raises(onnx.checker.ValidationError):
        writer.finish("net", {"x": (np.float32, ["N"])}, {"y": ["N"]})
