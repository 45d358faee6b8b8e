"""`refcomp debug` names the first wrong node, compares with peers, and writes recordings."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from refcomp.cli import debug as debug_module
from refcomp.graph.debug.executor import DebugExecutor
from refcomp.graph.debug.recording import load_recording
from tests.graph.debug.test_comparing import wrong_operator
from tests.graph.debug.wrong_code import code_of_wrong
from tests.strategies.operands import floats

onnx = pytest.importorskip("onnx")

Cli = Callable[..., Result]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = softmax(relu(x w)) over f32[N, 4]."""
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        make.make_node("MatMul", ["x", "w"], ["m"]),
        make.make_node("Relu", ["m"], ["r"]),
        make.make_node("Softmax", ["r"], ["y"]),
    ]
    x, y = (make.make_tensor_value_info(name, kind, ["N", 4]) for name in "xy")
    weights = [onnx.numpy_helper.from_array(floats(1, 4, 4), "w")]
    graph = make.make_graph(nodes, "net", [x], [y], weights)
    path = tmp_path / "net.onnx"
    opsets = [make.make_opsetid("", 17)]
    onnx.save(make.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def wrong_softmax(monkeypatch) -> None:
    """Let the code of each softmax be wrong."""
    right = debug_module.create

    def create(*args, **given) -> DebugExecutor:
        module = right(*args, **given).module
        return DebugExecutor(code_of_wrong(module, "softmax", wrong_operator("softmax")))

    monkeypatch.setattr(debug_module, "create", create)


def test_a_right_model_is_right(cli: Cli, model: Path) -> None:
    result = cli("debug", model, "--target", "interp")
    assert result.exit_code == 0, result.output
    header, first, second, sizes, verdict = result.stdout.splitlines()
    assert header.split()[:5] == ["node", "operator", "elements", "error", "/"]
    assert first.split()[:3] == ["r", "matmul+relu", "4"]
    assert second.split()[:3] == ["y", "softmax", "4"]
    assert sizes == "sizes: N = 1"
    assert verdict == "verdict: no node of 2 leaves its bound"


def test_a_wrong_kernel_is_named(cli: Cli, model: Path, wrong_softmax: None) -> None:
    result = cli("debug", model, "--target", "interp", "--symbol", "N=3")
    assert result.exit_code == 1
    assert result.stdout.endswith(
        "verdict: the first wrong node is y (softmax): the kernel is wrong\n"
    )
    row = result.stdout.splitlines()[2]
    assert "[0, 0]" in row


def test_the_report_is_json(cli: Cli, model: Path, wrong_softmax: None) -> None:
    result = cli("debug", model, "--target", "interp", "--symbol", "N=3", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["sizes"] == {"N": 3}
    assert [node["node"] for node in report["nodes"]] == ["r", "y"]
    first = report["first_wrong"]
    assert (first["node"], first["cause"], first["against"]) == ("y", "the kernel", "evaluate")
    assert first["first_wrong"]["index"] == [0, 0]
    assert first["error_over_bound"] > 1
    assert report["inside"] is None


@pytest.mark.parametrize("peer", ["interp", "onnxruntime"])
def test_peers_agree(cli: Cli, model: Path, peer: str) -> None:
    if peer == "onnxruntime":
        pytest.importorskip("onnxruntime")
    result = cli("debug", model, "--target", "interp", "--against", peer, "--unfused", "--json")
    assert result.exit_code == 0, result.output
    name = {"interp": "interp", "onnxruntime": "ONNX Runtime"}[peer]
    assert {node["against"] for node in json.loads(result.stdout)["nodes"]} == {name}


def test_a_recording_is_written_and_read(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "recording.npz"
    result = cli("debug", model, "--target", "interp", "--unfused", "-o", path)
    assert result.exit_code == 0, result.output
    loaded = load_recording(str(path))
    assert list(loaded.outputs) == ["m", "r", "y"]
    assert list(loaded.times) == ["m", "r", "y"]
    again = cli("debug", model, "--target", "interp", "--unfused", "--against", path)
    assert again.exit_code == 0, again.output


def test_arrays_of_a_foreign_tool_are_compared(cli: Cli, model: Path, tmp_path: Path) -> None:
    x, path = floats(0, 2, 4), tmp_path / "foreign.npz"
    np.savez(tmp_path / "in.npz", x=x)
    r = np.maximum(x @ floats(1, 4, 4), 0)
    y = np.exp(r) / np.exp(r).sum(axis=1, keepdims=True)
    y[1, 2] *= 1.01
    np.savez(path, r=r, y=y.astype(np.float32))
    args = ("debug", model, "--target", "interp", "-i", tmp_path / "in.npz", "--against", path)
    result = cli(*args)
    assert result.exit_code == 1
    assert "the first wrong node is y (softmax): the peer is wrong" in result.stdout
    assert "[1, 2]" in result.stdout


def test_wrong_peers_are_refused(cli: Cli, model: Path, tmp_path: Path) -> None:
    def refusal(against: object) -> str:
        result = cli("debug", model, "--target", "interp", "--against", against)
        assert result.exit_code == 4, result.output
        return result.stderr

    assert "did you mean onnxruntime?" in refusal("onxruntime")
    assert "--against takes evaluate, interp, onnxruntime or an .npz file" in refusal("banana")
    assert "cannot be read" in refusal(tmp_path / "missing.npz")
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(b"PK\x03\x04")
    assert "is not an .npz file of plain arrays" in refusal(damaged)
    other = tmp_path / "other.npz"
    np.savez(other, z=np.ones(1))
    assert "is a value that the model computes" in refusal(other)
    np.savez(other, r=np.ones((1, 4)), y=np.ones((1, 4), np.float32))
    assert "the array r of" in refusal(other)


def test_a_missing_peer_names_its_extra(cli: Cli, model: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = cli("debug", model, "--target", "interp", "--against", "onnxruntime")
    assert result.exit_code == 4
    assert 'pip install "refcomp[onnx,bench]"' in result.stderr
