"""Made networks: refcomp runs them, and their outputs depend on what they read."""

import numpy as np
import onnx
import pytest

import refcomp as rc
from benchmarks.made_models import NETWORKS, lstm, main, mobilenet_v2


def test_mobilenet_has_the_layers_of_the_paper() -> None:
    graph = rc.from_onnx(mobilenet_v2(32).SerializeToString())
    convolutions = [node for node in graph.nodes if node.operator == "conv2d"]
    # 17 blocks of three, the first without expansion; one before and one behind them.
    assert len(convolutions) == 3 * 17 - 1 + 2
    weights = sum(a.size for a in graph.constants.values())
    assert 3.4e6 < weights < 3.6e6  # "3.4M parameters", table 4
    assert sum(node.operator == "add" for node in graph.nodes) == 10
    rng = np.random.default_rng(0)
    images = [rng.uniform(-1, 1, (1, 3, 32, 32)).astype(np.float32) for _ in range(2)]
    first, second = (rc.graph.evaluate_graph(graph, {"image": image})[0] for image in images)
    assert np.isfinite(first).all()
    assert not np.allclose(first, second, rtol=1e-2)


def test_lstm_computes_the_recurrence() -> None:
    model = lstm(steps=3, size=4, hidden=5)
    graph = rc.from_onnx(model.SerializeToString())
    w, r, b, h, c = (onnx.numpy_helper.to_array(t) for t in model.graph.initializer[:5])
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4)).astype(np.float32)
    for row in x:
        i, f, o, g = np.split(row[None] @ w + b + h @ r, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = i * c + f * np.tanh(g)
        h = o * np.tanh(c)
    (found,) = rc.graph.evaluate_graph(graph, {"x": x})
    np.testing.assert_allclose(found, h, rtol=1e-5)


def test_the_files_are_written(tmp_path, capsys) -> None:
    assert main([str(tmp_path), "lstm"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'lstm.onnx'}\n"
    onnx.checker.check_model(onnx.load(tmp_path / "lstm.onnx"))
    with pytest.raises(SystemExit):
        main([str(tmp_path), "gru"])
    assert list(NETWORKS) == ["mobilenet_v2", "lstm"]
