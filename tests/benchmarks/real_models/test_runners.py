"""Runners of models, and the comparison of both node by node."""

from typing import Any

import numpy as np
import pytest

from benchmarks.real_models import runners
from benchmarks.real_models.onnx_writer import OnnxWriter
from benchmarks.real_models.runners import (
    OnnxRuntimeRunner,
    RefcompRunner,
    compare,
    device_for,
)

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def model() -> bytes:
    writer = OnnxWriter()
    value = writer.node("Mul", "x", writer.constant("two", np.float32(2)), name="doubled")
    value = writer.node("Relu", value, name="positive")
    writer.node("ReduceSum", value, writer.integers(1), name="y", keepdims=0)
    return writer.finish("net", {"x": (np.float32, ["N", 3])}, {"y": ["N"]})


def test_onnx_runtime_runs_a_model_and_its_smallest_feeds_are_kept(model: bytes) -> None:
    runner = OnnxRuntimeRunner({"net": model})
    for rows in (2, 1, 2):
        (y,) = runner("net", {"x": X[-rows:]})
        assert y.tolist() == [0, 6][-rows:]
    assert runner.examples["net"]["x"].shape == (1, 3)
    assert runner.seconds["net"] > 0
    assert runner.run_seconds("net") > 0


@pytest.mark.llvm
def test_refcomp_runs_a_model_and_counts_its_launches(model: bytes) -> None:
    runner = RefcompRunner({"net": model})
    assert runner("net", {"x": X})[0].tolist() == [0, 6]
    assert runner.launches("net") == 1


def test_only_targets_for_amd_gpus_run_emulated() -> None:
    assert device_for("llvm") is None
    device = device_for("rocm -mcpu=gfx1100")
    assert device is not None and str(device) == "rocm_emulator_gfx1100:0"


@pytest.mark.llvm
def test_nodes_are_compared_within_derived_bounds(model: bytes) -> None:
    found = compare(model, {"x": X})
    assert not found.wrong
    assert dict(found.against) == {"ONNX Runtime": 1}
    assert str(found) == "no node leaves its bound (1 against ONNX Runtime)"


@pytest.mark.llvm
def test_a_wrong_node_is_named(model: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runners.run_onnx_runtime

    def wrong(*arguments: Any) -> dict[str, Any]:
        arrays = run(*arguments)
        return {**arrays, "y": arrays["y"] + np.float32(1e-3)}

    monkeypatch.setattr(runners, "run_onnx_runtime", wrong)
    found = compare(model, {"x": X})
    assert [one.name for one in found.wrong] == ["y"]
    assert str(found) == "1 nodes leave their bounds, first y: the peer"
