"""Layers, networks and products of narrow numbers beside their peers: equal results, rows."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from benchmarks.narrow import workload
from benchmarks.narrow.workload import LAYERS, PRODUCTS, layer_model, measure, quantized


@pytest.mark.llvm
def test_a_layer_and_a_product_are_compared_and_timed() -> None:
    times = workload.time_layer(len(LAYERS) - 1, is_quick=True)
    assert set(times) == {"refcomp", "onnxruntime"}
    assert all(len(seconds) == 3 for seconds in times.values())
    assert set(workload.time_product(len(PRODUCTS) - 1, is_quick=True)) == {
        "refcomp",
        "refcomp, f32",
    }


def test_weights_have_seven_bits() -> None:
    for layer in LAYERS:
        held = {t.name: numpy_helper.to_array(t) for t in layer_model(layer).graph.initializer}
        assert np.abs(held["w"].astype(int)).max() == 64
        assert len(held["w"]) == layer.outs


def test_rows_say_what_was_timed(monkeypatch) -> None:
    peers = {"time_product": "refcomp, f32"}
    monkeypatch.setattr(
        workload,
        "call_fresh",
        lambda function, **_: {
            "refcomp": [1.0, 1.0],
            peers.get(function.__name__, "onnxruntime"): [2.0, 2.0],
        },
    )
    rows = measure(is_quick=True)
    cases = [row.case for row in rows]
    assert cases[1] == "QLinearConv 3x3, 64 -> 64 at 56x56"
    assert cases[4].endswith("96 groups")
    assert "squeezenet, 8 bits, qdq" in cases
    assert cases[-1] == "matmul 1x4096 @ 4096x4096 of bfloat16"
    assert all(row.ratio.median == 0.5 for row in rows)
    assert [row.bar.at_most for row in rows if row.bar] == [1.0] * 7 + [0.7] * 2


@pytest.mark.search
def test_a_network_is_quantized(tmp_path) -> None:
    model = onnx.load(quantized("squeezenet", "qoperator", tmp_path))
    assert "QLinearConv" in {node.op_type for node in model.graph.node}
