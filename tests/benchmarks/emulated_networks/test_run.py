"""Whole networks on emulated GPUs: a small one is right without hazards, and rows are kept."""

import json
import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from benchmarks import light_models
from benchmarks.emulated_networks import run
from benchmarks.emulated_networks.run import (
    ARCHITECTURES,
    NetworkRow,
    errors_of,
    main,
    measure,
    save,
)
from refcomp.foundation.errors import UserError
from refcomp.graph.debug.comparing import Cause, NodeComparison

_MACHINE = {"cpu": "a processor", "load": 0.5}
_ROW = NetworkRow("net", "gfx942", 1.0, 2.0, 3.0, None, 0.5, 0.75, 1e-6, "MI300X", 0.1, 3, ())


def _residual() -> bytes:
    """Return a convolution, a residual block with 3x3 windows, a pooling and a dense layer."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w2"], ["e"]),
        helper.make_node("Add", ["b", "e"], ["f"]),
        helper.make_node("Relu", ["f"], ["g"]),
        helper.make_node("GlobalAveragePool", ["g"], ["h"]),
        helper.make_node("Flatten", ["h"], ["i"]),
        helper.make_node("Gemm", ["i", "w3"], ["y"], transB=1),
    ]
    shapes = {"w0": (16, 3, 3, 3), "w1": (16, 16, 3, 3), "w2": (16, 16, 1, 1), "w3": (10, 16)}
    return _model(nodes, shapes)


def _branches() -> bytes:
    """Return what AlexNet, Inception, DenseNet and ShuffleNet have beside that, in small."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], kernel_shape=[7, 7], strides=[2, 2]),
        helper.make_node("LRN", ["a"], ["b"], size=5, alpha=1e-4, beta=0.75),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1] * 4, group=2),
        helper.make_node("MaxPool", ["b"], ["d"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Conv", ["d", "w2"], ["e"]),
        helper.make_node("Concat", ["c", "e"], ["f"], axis=1),
        helper.make_node("BatchNormalization", ["f", "one", "half", "half", "one"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("Reshape", ["h", "split"], ["i"]),
        helper.make_node("Transpose", ["i"], ["j"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["j", "joined"], ["k"]),
        helper.make_node("Conv", ["k", "w3"], ["l"], pads=[1] * 4, strides=[2, 2], group=24),
        helper.make_node("AveragePool", ["k"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Add", ["l", "m"], ["n"]),
        helper.make_node("Flatten", ["n"], ["o"]),
        helper.make_node("Gemm", ["o", "w4", "bias"], ["p"], transB=1),
        helper.make_node("Softmax", ["p"], ["y"], axis=1),
    ]
    shapes = {"w0": (16, 3, 7, 7), "w1": (16, 8, 3, 3), "w2": (8, 16, 1, 1), "w3": (24, 1, 3, 3)}
    others = {
        "one": np.ones(24, np.float32),
        "half": np.full(24, 0.5, np.float32),
        "split": np.array([1, 4, 6, 6, 6]),
        "joined": np.array([1, 24, 6, 6]),
    }
    return _model(nodes, {**shapes, "w4": (10, 216), "bias": (10,)}, others)


def _model(
    nodes: list[onnx.NodeProto],
    shapes: dict[str, tuple[int, ...]],
    others: dict[str, np.ndarray] | None = None,
) -> bytes:
    """Return a model of one small image, with random weights of `shapes` and other constants."""
    random = np.random.default_rng(0)
    arrays = {name: random.random(shape, np.float32) - 0.5 for name, shape in shapes.items()}
    weights = [
        numpy_helper.from_array(array, name) for name, array in (arrays | (others or {})).items()
    ]
    infos = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", (1, 3, 18, 18)), ("y", (1, 10)))
    ]
    graph = helper.make_graph(nodes, "net", infos[:1], infos[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model.SerializeToString()


@pytest.mark.rocm
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("network", [_residual, _branches])
def test_a_small_network_is_right_and_has_no_hazard(
    network: Callable[[], bytes], arch: str
) -> None:
    row = measure("net", network(), arch, hazards=True)
    assert row.wrong == () and row.nodes >= 5
    assert 0 < row.error <= 1
    if arch.startswith("sm_"):
        assert row.useful is row.useful_of_layers is row.estimate_s is None
    else:
        assert 0 < row.useful <= row.useful_of_layers < 1
        assert row.estimate_s is not None and row.estimate_s > 0
    assert row.hazards_cpu_s is not None and row.hazards_cpu_s > 0


def test_the_error_is_that_of_a_wrong_node_unless_the_peer_is_wrong() -> None:
    right = NodeComparison("a", "conv2d", 8, 0, 0, 0.5, None, None, "peer")
    wrong = replace(right, name="b", wrong=1, ratio=2.0, cause=Cause.KERNEL)
    theirs = replace(right, name="c", wrong=1, ratio=9.0, cause=Cause.PEER)
    assert errors_of([right, wrong, theirs]) == (2.0, ("b",))
    assert errors_of([right, theirs]) == (0.5, ())
    assert errors_of([]) == (0.0, ())


def test_cpu_seconds_include_those_of_tools(monkeypatch) -> None:
    times = os.times_result((1.0, 2.0, 20.0, 4.0, 99.0))
    monkeypatch.setattr(run.os, "times", lambda: times)
    monkeypatch.setattr(run, "process_time", lambda: 3.0)
    assert run._cpu_seconds() == 27.0


_WRONG = [["alexnot"], ["squeezenet", "--arch", "gfx1"], ["--table", "no.json"]]


@pytest.mark.parametrize("given", _WRONG)
def test_wrong_arguments_have_their_exit_code(given: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(given)
    assert stopped.value.code == 2


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rows": [{"case": 1}]}', '{"rows": 3}'])
@pytest.mark.parametrize("option", ["--json", "--table"])
def test_a_file_of_other_contents_is_noticed_first(tmp_path, capsys, content, option) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(SystemExit) as stopped:
        main(["squeezenet", option, str(path)])
    assert stopped.value.code == 2
    assert f"{path} has no rows of emulated networks" in capsys.readouterr().err
    assert path.read_text() == content


def test_rows_replace_earlier_ones_of_the_same_network_and_gpu(tmp_path) -> None:
    path = tmp_path / "rows.json"
    for row in (_ROW, replace(_ROW, arch="gfx90a"), replace(_ROW, checked_cpu_s=9.0)):
        save(path, row, _MACHINE)
    rows = json.loads(path.read_text())["rows"]
    assert [(row["arch"], row["checked_cpu_s"]) for row in rows] == [
        ("gfx90a", 3.0),
        ("gfx942", 9.0),
    ]
    assert all(row["machine"] == _MACHINE for row in rows)


def test_a_wrong_node_fails(monkeypatch, tmp_path, capsys) -> None:
    wrong = replace(_ROW, wrong=("conv1",))
    monkeypatch.setattr(run, "measure", lambda *_, **__: wrong)
    monkeypatch.setattr(light_models, "make", lambda _: onnx.ModelProto())
    path = tmp_path / "rows.json"
    monkeypatch.setattr(run, "describe_machine", lambda: _MACHINE)
    assert main(["squeezenet", "--json", str(path)]) == 1
    assert "3 nodes, 1 wrong; estimate for MI300X: 1 us at least" in capsys.readouterr().out
    assert json.loads(path.read_text())["rows"][0]["wrong"] == ["conv1"]


def test_a_failure_does_not_stop_other_networks_and_gpus(monkeypatch, tmp_path, capsys) -> None:
    def fail_on_gfx90a(name: str, _model: bytes, arch: str, **_options: object) -> NetworkRow:
        if arch == "gfx90a":
            raise UserError("a kernel has a finding")
        return replace(_ROW, network=name, arch=arch)

    monkeypatch.setattr(run, "measure", fail_on_gfx90a)
    monkeypatch.setattr(light_models, "make", lambda _: onnx.ModelProto())
    monkeypatch.setattr(run, "describe_machine", lambda: _MACHINE)
    path = tmp_path / "rows.json"
    gpus = [word for arch in ("gfx90a", "gfx1100") for word in ("--arch", arch)]
    assert main([*gpus, "--json", str(path)]) == 1
    assert capsys.readouterr().out.count("a kernel has a finding") == len(light_models.names())
    rows = json.loads(path.read_text())["rows"]
    assert [row["network"] for row in rows] == light_models.names()
    assert {row["arch"] for row in rows} == {"gfx1100"}


def test_rows_are_printed_as_a_table(tmp_path, capsys) -> None:
    path = tmp_path / "rows.json"
    save(path, _ROW, _MACHINE)
    other = replace(_ROW, network="other", hazards_cpu_s=9.0, wrong=("a",))
    save(path, other, _MACHINE)
    assert main(["--table", str(path)]) == 0
    head, line, first, second = capsys.readouterr().out.splitlines()
    assert head.startswith("| network | GPU |") and line.startswith("| --- | --- |")
    assert first == "| net | gfx942 | 1.0 | 2.0 | 3.0 |  | 50% | 75% | 0.1 | 1 us, MI300X |"
    assert "| 9.0 |" in second and "| 0.1 (1 wrong) |" in second
    assert len({row.count("|") for row in (head, line, first, second)}) == 1
